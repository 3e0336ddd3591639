"""Sliding windows over padded axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import halide as hl

from hfreg.lang.tensor import Expr, Extent, Map, Scalar, Tensor


@dataclass(eq=False)
class Window(Tensor):
    """A view of windows. `padded` is the input with fill around it, which can be read at any index."""

    padded: Any = None
    can_spread_over_lanes = False


def window(
    x: Tensor,
    axes: Sequence[int],
    sizes: Sequence[Extent],
    *,
    strides: Sequence[Extent],
    pads: Sequence[Extent],
    dilations: Sequence[Extent],
    fill: Scalar,
) -> Window:
    """Slide windows along axes: each becomes an axis of positions, and gets an axis at the end for the place within.

    The extents of the position axes are those of the output, since how many windows there are is the caller's matter.

    Args:
        x: the tensor.
        axes: the axes to slide along.
        sizes: the extent of the window along each.
        strides: the step from one window to the next.
        pads: elements of fill before each axis, then behind each (as ONNX orders them).
        dilations: the step from one element of a window to the next.
        fill: what the padding holds.
    """
    padded = Map.define(x.graph, "pad", x.axes, x.shape, lambda *i: _inside(x, axes, i, fill), (x,))

    def value(*index: Expr) -> Expr:
        place = list(index[: x.rank])
        for i, axis in enumerate(axes):
            place[axis] = place[axis] * strides[i] + index[x.rank + i] * dilations[i] - pads[i]
        return padded.load(place)

    shape = list(x.shape)
    for i, axis in enumerate(axes):
        reach = dilations[i] * (sizes[i] - 1) + 1
        shape[axis] = (x.shape[axis] + pads[i] + pads[len(axes) + i] - reach) / strides[i] + 1
    names = (*x.axes, *(f"in_{x.axes[axis]}" for axis in axes))
    return Window.define(x.graph, "window", names, [*shape, *sizes], value, (padded,), padded=padded.func)


def _inside(x: Tensor, axes: Sequence[int], index: Sequence[Expr], fill: Scalar) -> Expr:
    """`x` at an index, or the fill where the index is outside along one of the axes."""
    place = list(index)
    is_inside = hl.cast(hl.UInt(1), 1)
    for axis in axes:
        extent = x.shape[axis]
        is_inside = is_inside & (place[axis] >= 0) & (place[axis] < extent)
        place[axis] = hl.clamp(hl.likely(place[axis]), 0, extent - 1)
    return hl.select(hl.likely(is_inside), x.load(place), hl.cast(x.dtype, fill))
