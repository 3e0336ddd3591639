"""Draw calls that fit a signature: extents for its axes, attributes, and from them the shapes of the inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfreg.errors import RunError
from hfreg.ops.binding import Binding, ShapeError, bind
from hfreg.ops.manifest import Attribute, AttributeValue
from hfreg.ops.manifest_checks import value_problem
from hfreg.ops.patterns import Pattern
from hfreg.ops.signature import Attributes, Shape, Signature

Generator = np.random.Generator
ATTEMPTS = 200
WORK_LIMIT = 400_000
"""The largest product of all extents: what keeps a float64 reference in the range of milliseconds."""
UNUSUAL = (4, 5, 7, 8, 16)
"""Strides, groups and the like that are rare: a kernel may have a branch for each of them, or for none."""
UNUSUAL_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class SampledCall:
    """Shapes and attributes of one call."""

    shapes: tuple[Shape | None, ...]
    attributes: Attributes
    binding: Binding
    work: int
    """The product of the extents that were drawn; of an axis under a window, the positions where those are more."""


def sample_call(
    signature: Signature,
    rng: Generator,
    *,
    extents: Mapping[str, int | Shape] | None = None,
    attributes: Mapping[str, AttributeValue] | None = None,
    stretch: bool = False,
    drop_optional: bool = False,
) -> SampledCall | None:
    """Draw one call, or None where nothing was found that fits.

    Args:
        signature: what it has to fit.
        rng: the source of randomness.
        extents: extents that are wanted for some axes and groups.
        attributes: attribute values that are wanted.
        stretch: whether inputs leave out or shrink axes that broadcast.
        drop_optional: whether optional inputs are absent.
    """
    for _ in range(ATTEMPTS):
        chosen = _attributes(signature, rng, attributes or {})
        sizes = _extents(signature, rng, extents or {}, chosen)
        call = _call(signature, rng, sizes, chosen, stretch=stretch, drop_optional=drop_optional)
        if call and call.work <= WORK_LIMIT:
            return call
    return None


def try_call(signature: Signature, rng: Generator, extents: Mapping[str, int]) -> SampledCall | None:
    """Draw the rest of a call with these extents, of any size, or None where it does not fit."""
    given = {axis.attribute: extents[name] for name, axis in signature.axes.items() if name in extents}
    attributes = _attributes(signature, rng, {name: value for name, value in given.items() if name})
    return _call(signature, rng, _extents(signature, rng, extents, attributes), attributes)


def _call(
    signature: Signature,
    rng: Generator,
    sizes: Mapping[str, Shape],
    attributes: Attributes,
    *,
    stretch: bool = False,
    drop_optional: bool = False,
) -> SampledCall | None:
    attributes = attributes | _located(signature, sizes, rng)
    shapes = tuple(
        None
        if tensor.is_optional and drop_optional
        else _shape(signature, tensor.pattern, sizes, rng if stretch else None)
        for tensor in signature.inputs
    )
    try:
        binding = bind(signature, shapes, attributes)
    except (ShapeError, RunError):
        return None
    return SampledCall(shapes, binding.attributes, binding, _work(signature, sizes, binding))


def _work(signature: Signature, sizes: Mapping[str, Shape], binding: Binding) -> int:
    windows = signature.axes.items()
    positions = {axis.window.over: math.prod(binding.extents[name]) for name, axis in windows if axis.window}
    return math.prod(max(math.prod(size), positions.get(name, 0)) for name, size in sizes.items())


def _attributes(signature: Signature, rng: Generator, wanted: Mapping[str, AttributeValue]) -> Attributes:
    values: Attributes = {}
    for name, spec in signature.attributes.items():
        if name in signature.fixed:
            values[name] = signature.fixed[name]
        elif name in wanted:
            values[name] = wanted[name]
        elif not spec.optional and not spec.from_axes:
            values[name] = _attribute(spec, rng)
    return values


def _attribute(spec: Attribute, rng: Generator) -> AttributeValue:
    if spec.type == "ints":
        return [_number(spec, rng) for _ in range(spec.length or 0)]
    if spec.type == "int":
        return _number(spec, rng)
    if spec.type == "float":
        default = float(spec.default or 0.0)  # type: ignore[arg-type]
        near = (default, default / 2, default * 2, 1.0, -0.5)
        return float(
            np.float32(rng.choice(spec.allowed or [value for value in near if not value_problem(spec, value)]))
        )
    assert spec.default is not None
    return spec.default


def _number(spec: Attribute, rng: Generator) -> int:
    """One of the values that are allowed; the smallest or one or two more; or an unusual one."""
    if spec.allowed is not None:
        return int(rng.choice([int(value) for value in spec.allowed if not isinstance(value, str)]))
    low = spec.minimum if spec.minimum is not None else min(0, spec.maximum or 0)
    unusual = [value for value in UNUSUAL if low <= value and (spec.maximum is None or value <= spec.maximum)]
    if unusual and rng.random() < UNUSUAL_SHARE:
        return int(rng.choice(unusual))
    high = min(spec.maximum, low + 2) if spec.maximum is not None else low + 2
    return int(rng.integers(low, high + 1))


def _extents(
    signature: Signature, rng: Generator, wanted: Mapping[str, int | Shape], attributes: Attributes
) -> dict[str, Shape]:
    sizes: dict[str, Shape] = {}
    windows = {axis.window.size for axis in signature.axes.values() if axis.window}
    for name, axis in signature.axes.items():
        given = wanted.get(name)
        if axis.window:
            continue
        if given is not None:
            sizes[name] = given if isinstance(given, tuple) else (given,)
        elif name in signature.groups:
            sizes[name] = tuple(int(n) for n in rng.integers(1, 7, size=int(rng.integers(1, 4))))
        elif name in windows:
            sizes[name] = (int(rng.integers(1, 8)),)
        else:
            sizes[name] = (int(2 ** rng.uniform(0.6, 5.5)),)
        value = _of_attribute(axis.attribute, attributes)
        if value is not None:
            sizes[name] = (value,)
    return sizes


def _of_attribute(reference: str, attributes: Attributes) -> int | None:
    """The value of `group` or `kernel_shape[0]`, where the attribute is given."""
    name, _, index = reference.rstrip("]").partition("[")
    value: Any = attributes.get(name)
    if value is None:
        return None
    return int(value[int(index)] if index else value)


def _located(signature: Signature, sizes: Mapping[str, Shape], rng: Generator) -> Attributes:
    """The attribute that locates an axis, counted from the front or from the end."""
    if not signature.locator:
        return {}
    target = signature.attributes[signature.locator].locates
    for tensor in signature.inputs:
        if target in tensor.pattern.axes and len(tensor.pattern.items) > 1:
            counts = [len(sizes[item.axis]) if item.kind == "group" else item.takes for item in tensor.pattern.items]
            place = next(i for i, item in enumerate(tensor.pattern.items) if item.axis == target)
            position, rank = sum(counts[:place]), sum(counts)
            return {signature.locator: position if rng.random() < 0.5 else position - rank}
    return {}


def _shape(signature: Signature, pattern: Pattern, sizes: Mapping[str, Shape], rng: Generator | None) -> Shape:
    shape: list[int] = []
    for item in pattern.items:
        if item.kind == "split":
            shape.append(math.prod(sizes[name][0] for name in item.axes))
        elif item.kind == "one":
            shape.append(1)
        elif item.kind == "group" and signature.axes[item.axis].broadcast and rng is not None:
            shape.extend(_stretched(sizes[item.axis], rng))
        else:
            shape.extend(extent for name in item.axes for extent in sizes[name])
    return tuple(shape)


def _stretched(extents: Shape, rng: Generator) -> Shape:
    """The extents of an input that broadcasts: some are 1, and leading ones may be left out."""
    kept = tuple(1 if rng.random() < 0.4 else extent for extent in extents)
    return kept[int(rng.integers(0, len(kept) + 1)) :] if rng.random() < 0.4 else kept
