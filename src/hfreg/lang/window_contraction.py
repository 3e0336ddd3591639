"""Contractions of windows, such as convolutions, lowered so that every inner loop reads contiguous vectors.

The input is copied into a padded plane that is split by phase (position modulo stride). Then a step of the output is a
step of one in each phase, and the output at flat position p reads `plane[p + offset(k)]` for step k of the reduction:
one loop over k for any size, stride, pad and dilation, all of which may be run-time attributes. With stride 1, rows
share their padding: what is behind one is before the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import halide as hl

from hfreg.lang.elements import INT32
from hfreg.lang.tensor import Expr, Extent, Tensor, var
from hfreg.lang.window import Slide, Window

BLOCK = 64
"""Steps of the reduction that are summed before they are added to the rest: the error of one long sum would grow with
its length."""
CACHE_LINE = 16
"""float32 elements."""


@dataclass(eq=False)
class WindowContraction(Tensor):
    """The stages of the contraction."""

    plane: Any = None
    """[position in all channels and phases, outer axes]."""
    copy: Any = None
    """The reduction domain that fills the plane: column group, phase, rows, channel."""
    taps: Any = None
    offsets: Any = None
    """[k]: where step k of the reduction reads, from the output's flat position."""
    block: Any = None
    """[p, row, outer axes, part]: a register tile, summed over some steps of the reduction."""
    inner: Any = None
    blocks: Any = None
    sums: Any = None
    """[p, row, outer axes]: finished tiles."""
    row: str = ""
    """The axis of output channels."""
    strides: tuple[Extent, ...] = ()
    positions: tuple[Extent, ...] = ()
    """The extents of the output's spatial axes, outermost first."""
    row_pitch: Any = None
    """Flat positions from one index of the outermost spatial axis to the next."""
    last_row: Any = None
    """Flat positions that the last such index needs."""


def contract_windows(left: str, right: str, out: str, view: Window, w: Tensor) -> WindowContraction:
    """Contract windows with weights.

    Args:
        left: the axes of the windows: those of the source, then the places within.
        right: the axes of `w`; the reduced ones, channel first, are in parentheses at the end: `go(cyx)`.
        out: the axes of the result.
        view: the windows.
        w: the weights.

    Raises:
        ValueError: the reduced axes of `w` are not one axis at its end.
    """
    if not right.endswith(")"):
        raise ValueError(f"the reduced axes of the weights are one axis, in parentheses: {right!r}")
    return _Lowering(left, right[: right.index("(")], out, view, w).run()


def _product(values: Sequence[Extent]) -> Extent:
    return reduce(lambda a, b: b * a, values, 1)


def _total(values: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: b + a, values[1:], values[0]) if values else 0


class _Lowering:
    """One contraction of windows on the way to its stages."""

    def __init__(self, left: str, right: str, out: str, view: Window, w: Tensor) -> None:
        x = view.source
        self.view, self.x, self.w, self.out, self.right = view, x, w, out, right
        self.source_axes = left[: x.rank]
        self.slides = view.slides
        self.spatial = [self.source_axes[slide.axis] for slide in self.slides]
        self.channel = next(axis for axis in self.source_axes if axis not in out)
        self.rest = [axis for axis in self.source_axes if axis not in self.spatial and axis != self.channel]
        self.row = next(axis for axis in out if axis not in self.source_axes)
        self.rest_vars = [var(axis) for axis in reversed(self.rest)]
        self.extent = [x.shape[slide.axis] for slide in self.slides]
        self.positions = [view.shape[slide.axis] for slide in self.slides]
        self.channels = x.shape[self.source_axes.index(self.channel)]
        self.rows = w.shape[right.index(self.row)]
        self.width = self._widths()
        self.pitch = [_product(self.width[i + 1 :]) for i in range(len(self.slides))]
        self.phase_size = _product(self.width) + self.slides[-1].before
        phases = _product([slide.stride for slide in self.slides])
        # an odd number of cache lines, so that channels do not fall onto the same sets of the cache
        self.channel_size = ((self.phase_size * phases + CACHE_LINE - 1) / CACHE_LINE | 1) * CACHE_LINE

    def _widths(self) -> list[Expr]:
        """Positions of one phase along each axis."""

        def positions(slide: Slide, extent: Extent, outer: Extent) -> Expr:
            reach = (slide.size - 1) * slide.dilation / slide.stride
            return hl.max(outer + reach, (extent - 1 + slide.before) / slide.stride + 1)

        widths = [positions(*column) for column in zip(self.slides, self.extent, self.positions, strict=True)]
        last = self.slides[-1]
        widths[-1] = hl.select(last.stride == 1, self.extent[-1] + hl.max(last.before, last.after), widths[-1])
        return widths

    def run(self) -> WindowContraction:
        """The finished stage."""
        plane, copy = self.make_plane()
        taps, offsets = self.make_offsets()
        block, sums, inner, blocks = self.make_sums(plane, offsets)
        channels = [*zip(self.source_axes, self.x.shape, strict=True), *zip(self.spatial, self.positions, strict=True)]
        shape = dict(channels) | {self.row: self.rows}
        count = len(self.slides)
        behind = [(self.positions[i] - 1) * self.pitch[i] for i in range(1, count)]
        return WindowContraction.define(
            self.view.graph, "contract", list(self.out), [shape[axis] for axis in self.out],
            lambda *index: self.result(sums, index), (self.view, self.w),
            plane=plane, copy=copy, taps=taps, offsets=offsets, block=block, inner=inner, blocks=blocks, sums=sums,
            row=self.row, strides=tuple(slide.stride for slide in self.slides), positions=tuple(self.positions),
            row_pitch=self.pitch[0], last_row=_total(behind) + 1 if behind else 1,
        )  # fmt: skip

    def result(self, sums: Any, index: Sequence[Expr]) -> Expr:
        here = dict(zip(self.out, index, strict=True))
        position = _total([here[axis] * self.pitch[i] for i, axis in enumerate(self.spatial)])
        return sums[(position, here[self.row], *[here[axis] for axis in reversed(self.rest)])]

    def flat(self, place: Sequence[Expr]) -> Expr:
        """The position in a plane of padded coordinates along the first axes."""
        strides = [slide.stride for slide in self.slides]
        phases = [c % s * _product(strides[i + 1 :]) for i, (c, s) in enumerate(zip(place, strides, strict=False))]
        steps = [c / s * self.pitch[i] for i, (c, s) in enumerate(zip(place, strides, strict=False))]
        return _total(phases) * self.phase_size + _total(steps)

    def make_offsets(self) -> tuple[Any, Any]:
        """A table over k: channel outermost, then the places within the window."""
        taps, offsets, t, k = hl.Func("taps"), hl.Func("offsets"), var("t"), var("k")
        size = [slide.size for slide in self.slides]
        taps[t] = self.flat(
            [t / _product(size[i + 1 :]) % size[i] * slide.dilation for i, slide in enumerate(self.slides)]
        )
        every = hl.RDom([hl.Range(0, _product(size)), hl.Range(0, self.channels)], "tap")
        offsets[k] = hl.undef(INT32)
        offsets[every[0] + every[1] * _product(size)] = every[1] * self.channel_size + taps[every[0]]
        return taps, offsets

    def make_plane(self) -> tuple[Any, Any]:
        """Zeros, then the input: whole groups of `stride` columns, then the columns that are left."""
        plane, q, stride = hl.Func("plane"), var("q"), self.slides[-1].stride
        plane[(q, *self.rest_vars)] = hl.f32(0)
        others = [hl.Range(0, extent) for extent in reversed(self.extent[:-1])] + [hl.Range(0, self.channels)]
        copy = hl.RDom([hl.Range(0, self.extent[-1] / stride), hl.Range(0, stride), *others], "copy")
        edge = hl.RDom([hl.Range(0, self.extent[-1] % stride), *others], "edge")
        self.put(plane, copy[0], copy[1], [copy[i] for i in range(2, 2 + len(others))])
        self.put(plane, self.extent[-1] / stride, edge[0], [edge[i] for i in range(1, 1 + len(others))])
        return plane, copy

    def put(self, plane: Any, column: Expr, phase: Expr, others: Sequence[Expr]) -> None:
        """Copy one element; its column is column * stride + phase, which needs no division in the inner loop."""
        *rows, channel = others
        last = self.slides[-1]
        coordinates = [*reversed(rows), column * last.stride + phase]
        padded = [c + slide.before for c, slide in zip(coordinates[:-1], self.slides, strict=False)]
        shifted = phase + last.before
        inner = shifted % last.stride * self.phase_size + shifted / last.stride + column
        head = self.flat(padded)
        index = dict(zip(self.spatial, coordinates, strict=True)) | {self.channel: channel}
        value = self.x.load([index.get(axis, var(axis)) for axis in self.source_axes])
        position = channel * self.channel_size + head + inner
        last_position = self.channels * self.channel_size - 1
        plane[(hl.unsafe_promise_clamped(position, 0, last_position), *self.rest_vars)] = value

    def make_sums(self, plane: Any, offsets: Any) -> tuple[Any, Any, Any, Any]:
        """Sums of `BLOCK` steps, the sums of those, and both reduction domains."""
        block, sums, p = hl.Func("block"), hl.Func("sums"), var("p")
        steps = _product([slide.size for slide in self.slides]) * self.channels
        part, inner = var("part"), hl.RDom([hl.Range(0, BLOCK)], "k")
        blocks = hl.RDom([hl.Range(0, (steps + BLOCK - 1) / BLOCK)], "blocks")
        inner.where(part * BLOCK + inner[0] < steps)
        k = hl.unsafe_promise_clamped(part * BLOCK + inner[0], 0, steps - 1)
        # a simple upper bound: Halide finds the region of the plane through it
        offset = hl.unsafe_promise_clamped(offsets[k], 0, self.channels * self.channel_size)
        rows = [hl.min(var(axis), self.rows - 1) if axis == self.row else var(axis) for axis in self.right]
        here = (p, var(self.row), *self.rest_vars)
        block[(*here, part)] = hl.f32(0)
        product = plane[(p + offset, *self.rest_vars)] * self.w.load([*rows, k])
        block[(*here, part)] = hl.Expr(block[(*here, part)]) + product
        sums[here] = hl.f32(0)
        sums[here] = hl.Expr(sums[here]) + block[(*here, blocks[0])]
        return block, sums, inner, blocks
