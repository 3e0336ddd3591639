"""Checks of a manifest that need more than one of its fields. Each yields (path of keys, message)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hfreg.dtypes import DTYPES
from hfreg.ops.manifest import Attribute, AttributeValue, Manifest
from hfreg.ops.patterns import Pattern
from hfreg.ops.toml_lines import Path

Finding = tuple[Path, str]
ATTRIBUTE_REFERENCE = re.compile(r"(?P<name>[a-z]\w*)(?:\[(?P<index>\d+)\])?")
FLOPS = re.compile(r"\s*(\d+|[a-z]\w*)(\s*\*\s*(\d+|[a-z]\w*))*\s*")
MAX_VIEW, MAX_AXES, MAX_ITEMS, MAX_TENSORS = 8, 16, 8, 8


def check_manifest(manifest: Manifest) -> list[Finding]:
    """All problems that the model alone cannot see."""
    return [finding for check in _CHECKS for finding in check(manifest)]


def _patterns(manifest: Manifest) -> dict[tuple[Path, str], Pattern]:
    """Every pattern that parses, by its place and its tensor."""
    found: dict[tuple[Path, str], Pattern] = {}
    for place, name, text in _pattern_texts(manifest):
        try:
            found[place, name] = Pattern.parse(text)
        except ValueError:
            continue
    return found


def _pattern_texts(manifest: Manifest) -> Iterator[tuple[Path, str, str]]:
    for side, tensors in (("inputs", manifest.inputs), ("outputs", manifest.outputs)):
        for name, tensor in tensors.items():
            yield (side, name, "shape"), name, tensor.shape
    for index, entry in enumerate(manifest.classes):
        for name, text in entry.shapes.items():
            yield ("classes", index, "shapes", name), name, text


def _check_patterns(manifest: Manifest) -> Iterator[Finding]:
    for place, name, text in _pattern_texts(manifest):
        if name not in manifest.tensors:
            yield place, f"there is no input or output {name!r}"
            continue
        try:
            pattern = Pattern.parse(text)
        except ValueError as error:
            yield place, str(error)
            continue
        if len(pattern.items) > MAX_ITEMS:
            yield place, f"a pattern has at most {MAX_ITEMS} items"
        if len(pattern.groups) > 2:
            yield place, "a pattern has at most two groups"


def _check_types(manifest: Manifest) -> Iterator[Finding]:
    for side, tensors in (("inputs", manifest.inputs), ("outputs", manifest.outputs)):
        for name, tensor in tensors.items():
            if tensor.type not in manifest.types and tensor.type not in DTYPES:
                yield (side, name, "type"), f"{tensor.type!r} is neither a type variable of [types] nor an element type"
            if side == "outputs" and tensor.optional:
                yield (side, name, "optional"), "an output cannot be optional; leave it out of the manifest"
    for variable, names in manifest.types.items():
        for index, name in enumerate(names):
            if name not in DTYPES:
                yield ("types", variable, index), f"unknown element type {name!r}; known: {', '.join(DTYPES)}"


def _check_names(manifest: Manifest) -> Iterator[Finding]:
    for name in sorted(set(manifest.inputs) & set(manifest.outputs)):
        yield ("outputs", name), f"{name!r} is the name of an input too"
    if len(manifest.tensors) > MAX_TENSORS:
        yield ("inputs",), f"an operator has at most {MAX_TENSORS} inputs and outputs"
    seen: set[str] = set()
    for index, entry in enumerate(manifest.classes):
        if entry.name in seen:
            yield ("classes", index, "name"), f"the class {entry.name!r} is there twice"
        seen.add(entry.name)
    workloads = [workload.name for workload in manifest.workloads]
    for index, workload in enumerate(workloads):
        if workload in workloads[:index]:
            yield ("workloads", index, "name"), f"the workload {workload!r} is there twice"


def _check_axes(manifest: Manifest) -> Iterator[Finding]:
    patterns = _patterns(manifest)
    known = {axis for pattern in patterns.values() for axis in pattern.axes} | set(manifest.axes)
    groups = {axis for pattern in patterns.values() for axis in pattern.groups}
    if len(known) > MAX_AXES:
        yield ("axes",), f"an operator has at most {MAX_AXES} axes"
    for name, axis in manifest.axes.items():
        place: Path = ("axes", name)
        if name not in groups and (axis.broadcast or axis.rank > 1):
            yield place, f"{name!r} is no group; only groups broadcast or have a rank"
        if axis.attribute and (problem := _attribute_problem(manifest, axis.attribute)):
            yield (*place, "attribute"), problem
        if axis.window:
            for key, other in (("over", axis.window.over), ("size", axis.window.size)):
                if other not in known:
                    yield (*place, "window", key), f"there is no axis {other!r}"
    inputs = {axis for (place, _), pattern in patterns.items() if place[0] != "outputs" for axis in pattern.axes}
    for (place, name), pattern in patterns.items():
        for axis_name in pattern.axes if name in manifest.outputs else ():
            declared = manifest.axes.get(axis_name)
            if axis_name not in inputs and not (declared and (declared.attribute or declared.window)):
                yield place, f"nothing gives the extent of {axis_name!r}: no input has it, nor does [axes]"


def _attribute_problem(manifest: Manifest, reference: str) -> str:
    match = ATTRIBUTE_REFERENCE.fullmatch(reference)
    attribute = manifest.attributes.get(match["name"]) if match else None
    if match is None or attribute is None:
        return f"there is no attribute {reference!r}; write its name, or name[0] for one of a list"
    if (attribute.type == "ints") != (match["index"] is not None) or attribute.type not in ("int", "ints"):
        return f"{reference!r} is not one integer"
    if match["index"] and attribute.length is not None and int(match["index"]) >= attribute.length:
        return f"{reference!r} is beyond the {attribute.length} values of the attribute"
    return ""


def _check_attributes(manifest: Manifest) -> Iterator[Finding]:
    axes = {axis for pattern in _patterns(manifest).values() for axis in pattern.axes}
    for name, attribute in manifest.attributes.items():
        place: Path = ("attributes", name)
        if attribute.type == "ints" and attribute.length is None:
            yield place, "ints need a length"
        if attribute.default is not None and (problem := value_problem(attribute, attribute.default)):
            yield (*place, "default"), problem
        if attribute.from_axes and len(attribute.from_axes) != (attribute.length or 1):
            yield (*place, "from_axes"), "names as many axes as the attribute has values"
        for axis in attribute.from_axes:
            if axis not in axes:
                yield (*place, "from_axes"), f"there is no axis {axis!r}"
        if attribute.locates and attribute.locates not in axes:
            yield (*place, "locates"), f"there is no axis {attribute.locates!r}"
        if attribute.type_of and attribute.type_of not in manifest.types:
            yield (*place, "type_of"), f"there is no type variable {attribute.type_of!r}"
        if attribute.type == "string" and not _is_compiled_in(manifest, name):
            yield place, "a string cannot be a run-time attribute: let every class fix it, or make it optional"
    if sum(bool(attribute.locates) for attribute in manifest.attributes.values()) > 1:
        yield ("attributes",), "only one attribute can locate an axis"


def _is_compiled_in(manifest: Manifest, name: str) -> bool:
    attribute = manifest.attributes[name]
    single = attribute.allowed is not None and len(attribute.allowed) == 1
    fixed = all(name in entry.attributes for entry in manifest.classes)
    return single or fixed or attribute.optional or name == "auto_pad"


def _check_classes(manifest: Manifest) -> Iterator[Finding]:
    for index, entry in enumerate(manifest.classes):
        for name, value in entry.attributes.items():
            place: Path = ("classes", index, "attributes", name)
            attribute = manifest.attributes.get(name)
            problem = value_problem(attribute, value) if attribute else f"there is no attribute {name!r}"
            if problem:
                yield place, problem


def _check_workloads(manifest: Manifest) -> Iterator[Finding]:
    for index, workload in enumerate(manifest.workloads):
        place: Path = ("workloads", index)
        for name in workload.shapes:
            if name not in manifest.inputs:
                yield (*place, "shapes", name), f"there is no input {name!r}"
        for name, tensor in manifest.inputs.items():
            if name not in workload.shapes and not tensor.optional:
                yield (*place, "shapes"), f"the shape of {name!r} is missing"
        for name, value in workload.attributes.items():
            attribute = manifest.attributes.get(name)
            problem = value_problem(attribute, value) if attribute else f"there is no attribute {name!r}"
            if problem:
                yield (*place, "attributes", name), problem
        if workload.flops and not FLOPS.fullmatch(workload.flops):
            yield (*place, "flops"), f"{workload.flops!r} is no product of numbers and axis names"


def _check_accuracy(manifest: Manifest) -> Iterator[Finding]:
    if (manifest.accuracy.bound == "E2") != bool(manifest.accuracy.function):
        yield ("accuracy",), "a function is named for the bound E2, and for no other"


def _check_languages(manifest: Manifest) -> Iterator[Finding]:
    classes = {entry.name for entry in manifest.classes}
    for name, language in manifest.languages.items():
        for index, entry in enumerate(language.classes):
            if entry not in classes:
                yield ("languages", name, "classes", index), f"there is no class {entry!r}"


def value_problem(attribute: Attribute, value: AttributeValue) -> str:
    """Why a value does not fit an attribute; empty where it does."""
    if attribute.type == "ints":
        if not isinstance(value, list) or len(value) != attribute.length:
            return f"expected {attribute.length} integers, got {value!r}"
        return next((problem for item in value if (problem := _number_problem(attribute, item))), "")
    if attribute.type == "string":
        fits = isinstance(value, str)
    elif attribute.type == "float":
        fits = isinstance(value, (int, float))
    else:
        fits = isinstance(value, int)
    if not fits or isinstance(value, (bool, list)):
        return f"expected one {attribute.type}, got {value!r}"
    if attribute.allowed is not None and value not in attribute.allowed:
        return f"{value!r} is not served; served: {', '.join(map(repr, attribute.allowed))}"
    return _number_problem(attribute, value) if isinstance(value, int) else ""


def _number_problem(attribute: Attribute, value: int) -> str:
    if attribute.minimum is not None and value < attribute.minimum:
        return f"{value} is below the minimum of {attribute.minimum}"
    if attribute.maximum is not None and value > attribute.maximum:
        return f"{value} is above the maximum of {attribute.maximum}"
    return ""


_CHECKS: tuple[Callable[[Manifest], Iterator[Finding]], ...] = (
    _check_patterns,
    _check_types,
    _check_names,
    _check_axes,
    _check_attributes,
    _check_classes,
    _check_workloads,
    _check_accuracy,
    _check_languages,
)
