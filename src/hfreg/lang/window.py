"""Sliding windows: a view. What reads it (a contraction, a maximum) lowers the whole, so inner loops are vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import halide as hl

from hfreg.lang.tensor import Expr, Extent, Scalar, Tensor


@dataclass(frozen=True, slots=True)
class Slide:
    """How windows slide along one axis; numbers, or run-time attributes."""

    axis: int
    size: Extent
    stride: Extent
    before: Extent
    """Elements of padding before the axis."""
    after: Extent
    dilation: Extent


@dataclass(eq=False)
class Window(Tensor):
    """A view of windows: the axes of `source`, then one for the place within the window along each slide."""

    source: Tensor = None  # type: ignore[assignment]
    slides: tuple[Slide, ...] = ()
    fill: float = 0.0

    @property
    def place_axes(self) -> list[int]:
        """The axes for the place within the window."""
        return list(range(self.source.rank, self.rank))


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

    Args:
        x: the tensor.
        axes: the axes to slide along.
        sizes: the extent of the window along each.
        strides: the step from one window to the next.
        pads: elements of fill before each axis, then behind each (as ONNX orders them).
        dilations: the step from one element of a window to the next.
        fill: what the padding holds.
    """
    count = len(axes)
    columns = zip(axes, sizes, strides, pads[:count], pads[count:], dilations, strict=True)
    slides = tuple(Slide(*column) for column in columns)
    shape = list(x.shape)
    for slide in slides:
        reach = slide.dilation * (slide.size - 1) + 1
        shape[slide.axis] = (x.shape[slide.axis] + slide.before + slide.after - reach) / slide.stride + 1

    def value(*index: Expr) -> Expr:
        place = list(index[: x.rank])
        is_inside = hl.cast(hl.UInt(1), 1)
        for number, slide in enumerate(slides):
            extent = x.shape[slide.axis]
            at = place[slide.axis] * slide.stride + index[x.rank + number] * slide.dilation - slide.before
            is_inside = is_inside & (at >= 0) & (at < extent)
            place[slide.axis] = hl.clamp(hl.likely(at), 0, extent - 1)
        return hl.select(hl.likely(is_inside), x.load(place), hl.cast(x.dtype, fill))

    names = (*x.axes, *(f"in_{x.axes[axis]}" for axis in axes))
    return Window.define(
        x.graph, "window", names, [*shape, *sizes], value, (x,), source=x, slides=slides, fill=float(fill)
    )
