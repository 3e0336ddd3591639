"""Checks of a manifest that need more than one of its fields. Each yields (path of keys, message).

A check names the fields that it reads, so that it also runs on a manifest of which other fields are not valid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from hfreg.dtypes import DTYPES
from hfreg.ops.manifest import Attribute, AttributeValue, Manifest, Window
from hfreg.ops.patterns import Pattern
from hfreg.ops.toml_lines import Path

Finding = tuple[Path, str]
ATTRIBUTE_REFERENCE = re.compile(r"(?P<name>[a-z]\w*)(?:\[(?P<index>\d+)\])?")
FLOPS = re.compile(r"\s*(\d+|[a-z]\w*)(\s*\*\s*(\d+|[a-z]\w*))*\s*")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that change the direction of text: a terminal or a page would show another text."""
ELEMENT_LIMIT = 1 << 31
"""Elements that kernels can index: `frontend.c` has the same limit."""
MAX_VIEW, MAX_AXES, MAX_ITEMS, MAX_TENSORS = 8, 16, 8, 8


def check_manifest(manifest: Manifest, invalid: Collection[str | int] = ()) -> list[Finding]:
    """All problems that the model alone cannot see.

    Args:
        manifest: the manifest.
        invalid: the fields that it has not, since they are not valid. Checks that read one of them do not run.
    """
    return [
        finding
        for check, fields in _CHECKS.items()
        if not set(invalid) & set(fields.split())
        for finding in check(manifest)
    ]


def dotted(place: Path) -> str:
    """A path of keys as TOML has it, control characters escaped."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", ".".join(map(str, place)))


def check_texts(value: Any, place: Path = ()) -> Iterator[Finding]:
    """Problems of the texts in a parsed `op.toml`, keys included. Only a `doc` may have several lines."""
    if isinstance(value, str):
        line = value.replace("\n", " ") if place[-1:] == ("doc",) else value
        if found := CONTROL.search(line):
            yield place, f"{dotted(place)}: has the control character U+{ord(found[0]):04X}"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from check_texts(key, place)
            yield from check_texts(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from check_texts(item, (*place, index))


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
            if name in names[:index]:
                yield ("types", variable, index), f"{name!r} is there twice"
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


def _axes_in_use(manifest: Manifest) -> set[str]:
    """The axes of all patterns, and those of the windows that slide over them."""
    used = {axis for pattern in _patterns(manifest).values() for axis in pattern.axes}
    windows = [axis.window for name, axis in manifest.axes.items() if name in used and axis.window]
    return used | {name for window in windows for name in (window.over, window.size)}


def _check_axes(manifest: Manifest) -> Iterator[Finding]:
    used = _axes_in_use(manifest)
    groups = {axis for pattern in _patterns(manifest).values() for axis in pattern.groups}
    if len(used | set(manifest.axes)) > MAX_AXES:
        yield ("axes",), f"an operator has at most {MAX_AXES} axes"
    for name, axis in manifest.axes.items():
        place: Path = ("axes", name)
        if name not in used:
            yield place, f"no shape and no window has the axis {name!r}"
        elif name not in groups and (axis.broadcast or axis.rank > 1):
            yield place, f"{name!r} is no group; only groups broadcast or have a rank"
        if axis.attribute and (problem := _attribute_problem(manifest, axis.attribute)):
            yield (*place, "attribute"), problem
        if axis.window:
            yield from _check_window(manifest, (*place, "window"), axis.window)


def _check_window(manifest: Manifest, place: Path, window: Window) -> Iterator[Finding]:
    for name, per_axis, least in (("strides", 1, 1), ("dilations", 1, 1), ("pads", 2, 0)):
        attribute = manifest.attributes.get(name)
        if attribute is None:
            continue
        if (attribute.length or 0) // per_axis <= window.position:
            yield (*place, "position"), f"{window.position} is beyond the values of the attribute {name!r}"
        if attribute.minimum is None or attribute.minimum < least:
            yield ("attributes", name), f"{name} of a window have a minimum of at least {least}"


def _check_shapes(manifest: Manifest) -> Iterator[Finding]:
    """In every class, a name is one axis or a group, and each axis of an output has an extent from somewhere."""
    given = {name for name, axis in manifest.axes.items() if axis.attribute}
    windows = {name for name, axis in manifest.axes.items() if axis.window}
    findings: dict[Finding, None] = {}
    for shapes in _shapes_of_classes(manifest):
        groups = {axis for _, pattern in shapes.values() for axis in pattern.groups}
        for place, pattern in shapes.values():
            for axis in sorted(groups & set(pattern.axes) - set(pattern.groups)):
                findings[place, f"{axis!r} is one axis here and a group elsewhere"] = None
        inputs = {axis: place for place, pattern in (shapes[name] for name in manifest.inputs) for axis in pattern.axes}
        for axis in sorted(windows & set(inputs)):
            findings[inputs[axis], f"{axis!r} is an axis of window positions, which outputs have"] = None
        known = given | set(inputs)
        for place, pattern in (shapes[name] for name in manifest.outputs):
            for axis in sorted(set(pattern.axes) - known):
                findings |= dict.fromkeys(_extent_problems(manifest, place, axis, known))
    yield from findings


def _shapes_of_classes(manifest: Manifest) -> Iterator[dict[str, tuple[Path, Pattern]]]:
    """The operator's own shapes and those of each class, by tensor, if all of them parse."""
    patterns = _patterns(manifest)
    if len(patterns) < len(list(_pattern_texts(manifest))):
        return
    found = {place: (name, pattern) for (place, name), pattern in patterns.items()}
    own = {name: (place, pattern) for place, (name, pattern) in found.items() if place[0] != "classes"}
    yield own
    for index, _ in enumerate(manifest.classes):
        yield own | {name: (at, pattern) for at, (name, pattern) in found.items() if at[:2] == ("classes", index)}


def _extent_problems(manifest: Manifest, place: Path, name: str, known: Collection[str]) -> Iterator[Finding]:
    window = manifest.axes[name].window if name in manifest.axes else None
    if window is None:
        yield place, f"nothing gives the extent of {name!r}: no input has it, nor does [axes]"
        return
    for key, other in (("over", window.over), ("size", window.size)):
        if other not in known:
            yield ("axes", name, "window", key), f"there is no axis {other!r} that an input or an attribute gives"


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
        yield from _check_values(manifest, name, attribute)
        if attribute.from_axes and len(attribute.from_axes) != (attribute.length or 1):
            yield (*place, "from_axes"), "names as many axes as the attribute has values"
        for axis in attribute.from_axes:
            if axis not in axes:
                yield (*place, "from_axes"), f"there is no axis {axis!r}"
        if attribute.locates and attribute.locates not in axes:
            yield (*place, "locates"), f"there is no axis {attribute.locates!r}"
        if attribute.type_of and attribute.type_of not in manifest.types:
            yield (*place, "type_of"), f"there is no type variable {attribute.type_of!r}"
    if sum(bool(attribute.locates) for attribute in manifest.attributes.values()) > 1:
        yield ("attributes",), "only one attribute can locate an axis"


def _check_values(manifest: Manifest, name: str, attribute: Attribute) -> Iterator[Finding]:
    place: Path = ("attributes", name)
    if attribute.type == "ints" and attribute.length is None:
        yield place, "ints need a length"
    elif attribute.default is not None and (problem := value_problem(attribute, attribute.default)):
        yield (*place, "default"), problem
    one = attribute.model_copy(update={"type": "int"}) if attribute.type == "ints" else attribute
    for index, value in enumerate(attribute.allowed or ()):
        if problem := value_problem(one, value):
            yield (*place, "allowed", index), problem
    if attribute.minimum is not None and attribute.maximum is not None and attribute.minimum > attribute.maximum:
        yield (*place, "maximum"), f"{attribute.maximum} is below the minimum of {attribute.minimum}"
    single = attribute.allowed is not None and len(attribute.allowed) == 1
    fixed = all(name in entry.attributes for entry in manifest.classes)
    if single or fixed or attribute.optional:
        return
    if attribute.type == "string" and name != "auto_pad":
        yield place, "a string cannot be a run-time attribute: let every class fix it, or make it optional"
    if attribute.type in ("float", "string") and attribute.default is None:
        yield place, f"a {attribute.type} needs a default, which evaluation takes"


def _check_classes(manifest: Manifest) -> Iterator[Finding]:
    for index, entry in enumerate(manifest.classes):
        for name, value in entry.attributes.items():
            place: Path = ("classes", index, "attributes", name)
            attribute = manifest.attributes.get(name)
            problem = value_problem(attribute, value) if attribute else f"there is no attribute {name!r}"
            if problem:
                yield place, problem


def _check_workloads(manifest: Manifest) -> Iterator[Finding]:
    axes = _axes_in_use(manifest)
    for index, workload in enumerate(manifest.workloads):
        place: Path = ("workloads", index)
        for name, shape in workload.shapes.items():
            if name not in manifest.inputs:
                yield (*place, "shapes", name), f"there is no input {name!r}"
            if math.prod(shape) >= ELEMENT_LIMIT:
                yield (*place, "shapes", name), f"{shape} has {math.prod(shape)} elements, more than kernels can index"
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
        elif unknown := set(re.findall(r"[a-z]\w*", workload.flops)) - axes:
            yield (*place, "flops"), f"there is no axis {min(unknown)!r}"


def _check_accuracy(manifest: Manifest) -> Iterator[Finding]:
    if (manifest.accuracy.bound == "E2") != bool(manifest.accuracy.function):
        yield ("accuracy",), "a function is named for the bound E2, and for no other"
    if manifest.accuracy.flushes_subnormals and manifest.accuracy.bound in ("E0", "E1", "E7"):
        yield ("accuracy", "flushes_subnormals"), f"results of {manifest.accuracy.bound} are exact"


def _check_languages(manifest: Manifest) -> Iterator[Finding]:
    classes = {entry.name for entry in manifest.classes}
    for name, language in manifest.languages.items():
        for index, entry in enumerate(language.classes):
            if entry not in classes:
                yield ("languages", name, "classes", index), f"there is no class {entry!r}"


def value_problem(attribute: Attribute, value: AttributeValue) -> str:
    """Why a value does not fit an attribute; empty where it does."""
    if attribute.type == "ints":
        if not isinstance(value, list) or len(value) != attribute.length or {type(item) for item in value} != {int}:
            return f"expected {attribute.length} integers, got {value!r}"
        return next((problem for item in value if (problem := _limit_problem(attribute, item))), "")
    if isinstance(value, (bool, list)) or not isinstance(value, _KINDS[attribute.type]):
        return f"expected one {attribute.type}, got {value!r}"
    return _limit_problem(attribute, value)


_KINDS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "string": (str,)}


def _limit_problem(attribute: Attribute, value: float | str) -> str:
    if attribute.allowed is not None and value not in attribute.allowed:
        return f"{value!r} is not served; served: {', '.join(map(repr, attribute.allowed))}"
    if isinstance(value, str):
        return ""
    if attribute.minimum is not None and not value >= attribute.minimum:
        return f"{value} is below the minimum of {attribute.minimum}"
    if attribute.maximum is not None and not value <= attribute.maximum:
        return f"{value} is above the maximum of {attribute.maximum}"
    return ""


_CHECKS: dict[Callable[[Manifest], Iterator[Finding]], str] = {
    _check_patterns: "inputs outputs classes",
    _check_types: "inputs outputs types",
    _check_names: "inputs outputs classes workloads",
    _check_axes: "inputs outputs classes axes attributes",
    _check_shapes: "inputs outputs classes axes",
    _check_attributes: "inputs outputs classes attributes types",
    _check_classes: "classes attributes",
    _check_workloads: "inputs outputs classes axes attributes workloads",
    _check_accuracy: "accuracy",
    _check_languages: "languages classes",
}
"""Each check, and the fields that it reads."""
