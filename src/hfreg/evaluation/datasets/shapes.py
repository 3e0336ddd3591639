"""D5: shapes. Sizes around vector and tile edges, size 0, every rank, strides, alignments, broadcasting, and windows at
the limit of what a kernel serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from hfreg.arrays import Array
from hfreg.evaluation.cases import Case
from hfreg.evaluation.datasets.values import fill_inputs
from hfreg.evaluation.sampling import sample_call
from hfreg.ops.binding import STEP_LIMIT
from hfreg.ops.manifest import AttributeValue, Manifest
from hfreg.ops.signature import Shape, Signature, Types

SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 129, 257, 4099)
GROUPS: tuple[Shape, ...] = (
    (),
    (1,),
    (5,),
    (3, 4),
    (1, 6, 1),
    (2, 3, 4),
    (0, 3),
    (2, 1, 3, 2),
    (2, 1, 2, 1, 2),
    (65, 67),
)
FAR = 1000
"""Elements of padding, much more than there are of the input."""


@dataclass(frozen=True)
class _Plan:
    """What is special about a case."""

    name: str
    extents: dict[str, int | Shape] = field(default_factory=dict)
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    change: Callable[[Array], Array] = lambda array: array
    shift: int = 0
    stretch: bool = False
    drop_optional: bool = False


def shape_cases(manifest: Manifest, signature: Signature, types: Types, rng: np.random.Generator) -> Iterator[Case]:
    """Each axis takes all sizes, each group all ranks; then layouts, alignments, broadcasting, absent inputs."""
    for plan in _plans(signature):
        call = sample_call(
            signature,
            rng,
            extents=plan.extents,
            attributes=plan.attributes,
            stretch=plan.stretch,
            drop_optional=plan.drop_optional,
        )
        if call is None:
            continue
        inputs = fill_inputs(manifest, signature, types, call.shapes, rng)
        laid_out = tuple(None if array is None else _lay_out(plan, array) for array in inputs)
        yield Case("D5", plan.name, laid_out, call.attributes, shift=plan.shift)


def _lay_out(plan: _Plan, array: Array) -> Array:
    """The array in the plan's layout; a scalar has only one."""
    return plan.change(array) if array.ndim else array


def _plans(signature: Signature) -> Iterator[_Plan]:
    for name, axis in signature.axes.items():
        if axis.window or axis.attribute:
            continue
        groups = GROUPS if name in signature.groups else ()
        for size in dict.fromkeys((*groups, *((length,) for length in SIZES))):
            yield _Plan(f"{name}-{'x'.join(map(str, size)) or 'none'}", {name: size})
    yield from _window_plans(signature)
    ranked: dict[str, int | Shape] = dict.fromkeys(sorted(signature.groups), (3, 4))
    for repeat, extents in enumerate((ranked, {})):
        yield from (_Plan(f"layout-{name}-{repeat}", extents, change=change) for name, change in _LAYOUTS.items())
    yield from (_Plan(f"alignment-{shift}", shift=shift) for shift in (1, 3, 7))
    yield from (_Plan(f"random-{repeat}") for repeat in range(4))
    if any(axis.broadcast for axis in signature.axes.values()):
        yield from (_Plan(f"broadcast-{repeat}", stretch=True) for repeat in range(24))
    if any(tensor.is_optional for tensor in signature.inputs):
        yield from (_Plan(f"absent-{repeat}", drop_optional=True) for repeat in range(3))


def _window_plans(signature: Signature) -> Iterator[_Plan]:
    """Along each axis, the largest stride, the largest dilation, and padding without end; the other axes are short."""
    windows = [axis.window for axis in signature.axes.values() if axis.window]
    under = {window.over for window in windows}
    short: dict[str, int | Shape] = {
        name: 2
        for name, axis in signature.axes.items()
        if not axis.window and not axis.attribute and name not in under | signature.groups
    }
    for window in windows:
        for name, value in (("strides", STEP_LIMIT), ("dilations", STEP_LIMIT), ("pads", FAR)):
            spec = signature.attributes.get(name)
            if spec is None or spec.length is None or name in signature.fixed or spec.maximum is not None:
                continue
            values = [spec.minimum or 0] * spec.length
            values[window.position] = value
            yield _Plan(f"{name}-{window.over}-{value}", short, {name: values})


def _in_memory(array: Array, order: tuple[int, ...]) -> Array:
    """The same values, laid out with the axes in another order."""
    return array.transpose(order).copy().transpose(tuple(int(i) for i in np.argsort(order)))


def _transposed(array: Array) -> Array:
    return _in_memory(array, tuple(reversed(range(array.ndim))))


def _rotated(array: Array) -> Array:
    return _in_memory(array, (*range(1, array.ndim), 0))


def _stepped(array: Array) -> Array:
    """Every second element of a larger array, along every axis."""
    larger = np.zeros([2 * n for n in array.shape], array.dtype)
    view = larger[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def _reversed(array: Array) -> Array:
    """Negative strides along every axis."""
    flipped = tuple(slice(None, None, -1) for _ in array.shape)
    return array[flipped].copy()[flipped]


def _padded_rows(array: Array) -> Array:
    """Rows with a gap behind them."""
    larger = np.zeros([*array.shape[:-1], array.shape[-1] + 5], array.dtype)
    view = larger[..., : array.shape[-1]]
    view[...] = array
    return view


def _repeated(array: Array) -> Array:
    """A stride of 0: the first slice stands for all."""
    return np.broadcast_to(array[:1], array.shape) if array.shape[0] else array


_LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "transposed": _transposed,
    "rotated": _rotated,
    "stepped": _stepped,
    "reversed": _reversed,
    "padded-rows": _padded_rows,
    "repeated": _repeated,
}
