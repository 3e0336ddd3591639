"""An idempotent reduction of windows, such as max pooling: over rows first, then over columns.

A maximum over a window is the maximum over columns of maxima over rows. The maxima over rows are kept for a strip of
the plane (`strip`), with fill around them, so the second step reads without bounds; everything about the windows may be
a run-time attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import halide as hl

from hfreg.lang.tensor import Expr, Tensor, var
from hfreg.lang.window import Window


@dataclass(eq=False)
class WindowReduction(Tensor):
    """The stages of the reduction."""

    rows: Any = None
    """[lane, block, other axes]: over all window axes but the last, a block of positions of the last axis at a time."""
    row_domain: Any = None
    strip: Any = None
    """[padded position of the last axis, other axes]."""
    store: Any = None
    """The reduction domain of the copy from `rows` to `strip`: lane, block."""
    columns: Any = None
    column_domain: Any = None
    width: Any = None
    """The extent of the last axis of the input."""
    stride: Any = None
    """The stride along it."""


def reduce_windows(name: str, combine: Callable[[Expr, Expr], Expr], neutral: Expr, view: Window) -> WindowReduction:
    """Combine all elements of each window.

    Args:
        name: what to call the stage.
        combine: associative, commutative, idempotent.
        neutral: what it leaves others alone with; the padding counts as this.
        view: the windows.
    """
    x, lanes = view.source, view.graph.lowering.vector
    *outer, last = view.slides
    width, names = x.shape[last.axis], list(x.axes)
    others = [var(axis) for place, axis in reversed(list(enumerate(names))) if place != last.axis]
    lane, block, q = var("lane"), var("block"), var("q")
    rows, strip, columns = hl.Func(f"{name}_rows"), hl.Func("strip"), hl.Func(f"{name}_columns")
    is_long = width >= lanes

    def start(number: Expr) -> Expr:
        """Where a block of positions begins: the last one overlaps the one before it."""
        return hl.select(is_long, hl.min(number * lanes, width - lanes), 0)

    row_domain = hl.RDom([hl.Range(0, slide.size) for slide in reversed(outer)] or [hl.Range(0, 1)], "row")
    place: dict[int, Expr] = {i: var(axis) for i, axis in enumerate(names)}
    for number, slide in enumerate(outer):
        step, extent = row_domain[len(outer) - 1 - number], x.shape[slide.axis]
        coordinate = var(names[slide.axis]) * slide.stride + step * slide.dilation - slide.before
        row_domain.where((coordinate >= 0) & (coordinate < extent))
        place[slide.axis] = hl.unsafe_promise_clamped(coordinate, 0, extent - 1)
    # of a row that is shorter than a vector nothing behind its end is read: that may be the end of the memory
    inside = hl.select(is_long, start(block) + lane, hl.min(lane, width - 1))
    place[last.axis] = hl.unsafe_promise_clamped(inside, 0, width - 1)
    at = (lane, block, *others)
    rows[at] = neutral
    rows[at] = combine(x.load([place[i] for i in range(x.rank)]), hl.Expr(rows[at]))

    store = hl.RDom([hl.Range(0, lanes), hl.Range(0, (width + lanes - 1) / lanes)], "store")
    store.where(is_long | (store[0] < width))
    strip[(q, *others)] = neutral
    column = hl.unsafe_promise_clamped(start(store[1]) + store[0], 0, width - 1)
    strip[(column + last.before, *others)] = rows[(store[0], store[1], *others)]

    column_domain = hl.RDom([hl.Range(0, last.size)], "column")
    here = tuple(var(axis) for axis in reversed(names))
    source = var(names[last.axis]) * last.stride + column_domain[0] * last.dilation
    columns[here] = neutral
    columns[here] = combine(hl.Expr(strip[(source, *others)]), hl.Expr(columns[here]))
    return WindowReduction.define(
        view.graph, name, names, view.shape[: x.rank], lambda *index: columns[tuple(reversed(index))], (view,),
        rows=rows, row_domain=row_domain, strip=strip, store=store, columns=columns, column_domain=column_domain,
        width=width, stride=last.stride,
    )  # fmt: skip
