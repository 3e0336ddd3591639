"""Reductions: combine the values along some axes.

Along the last axis the work is spread over lanes, so that it vectorizes: `partial` holds one result for each lane,
`folded` a few, and the stage itself combines those. Along other axes each result is accumulated by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import halide as hl

from hfreg.lang.tensor import Expr, Tensor, is_unit, squeeze, var

Combine = Callable[[Expr, Expr], Expr]
FOLD = 8
"""Lanes that the last but one step leaves."""


@dataclass(eq=False)
class Reduction(Tensor):
    """A reduction. `domain` is its Halide reduction domain."""

    domain: Any = None
    lane: Any = None
    """The variable of the lanes; None where the reduction is not along the last axis."""
    partial: Any = None
    folded: Any = None

    def bounds_from_above(self, other: Tensor) -> bool:
        return self.name.split(".")[0] == "max" and self.operands == (other,)


def reduce(
    name: str, x: Tensor, axes: int | Sequence[int], combine: Combine, initial: Expr, *, keepdims: bool = True
) -> Tensor:
    """Combine the values along `axes`.

    Args:
        name: what to call the stage.
        x: the tensor.
        axes: one axis or several, counted as in NumPy.
        combine: associative and commutative, up to rounding.
        initial: the value that `combine` leaves others alone with.
        keepdims: whether the axes stay, with extent 1.
    """
    places = sorted({a % x.rank for a in ([axes] if isinstance(axes, int) else axes)}, reverse=True)
    shape = [1 if i in places else extent for i, extent in enumerate(x.shape)]
    make = _over_lanes if x.rank - 1 in places and x.can_spread_over_lanes else _in_order
    stage = make(name, x, places, shape, combine, initial)
    return stage if keepdims else squeeze(stage, places)


def _reader(x: Tensor, places: Sequence[int], domain: Any) -> Callable[[Expr], Expr]:
    """The value of `x` at a position of the innermost reduced axis; the other axes come from the domain."""
    others = [domain[d] for d in range(1, len(places))]

    def read(innermost: Expr) -> Expr:
        place = dict(zip(places, [innermost, *others], strict=True))
        return x.at([place.get(i, var(axis)) for i, axis in enumerate(x.axes)])

    return read


def _in_order(
    name: str, x: Tensor, places: Sequence[int], shape: Sequence[Any], combine: Combine, initial: Expr
) -> Reduction:
    domain = hl.RDom([hl.Range(0, x.shape[i]) for i in places], name)
    stage = Reduction.define(x.graph, name, x.axes, shape, lambda *_: initial, (x,), domain=domain)
    here = tuple(reversed(stage.variables()))
    stage.func[here] = combine(hl.Expr(stage.func[here]), _reader(x, places, domain)(domain[0]))
    return stage


def _over_lanes(
    name: str, x: Tensor, places: Sequence[int], shape: Sequence[Any], combine: Combine, initial: Expr
) -> Reduction:
    length, lanes, lane = x.shape[places[0]], x.graph.lanes, var("lane")
    extents = [(length + lanes - 1) / lanes, *(x.shape[i] for i in places[1:])]
    domain = hl.RDom([hl.Range(0, extent) for extent in extents], name)
    here = tuple(var(axis) for axis, extent in reversed(list(zip(x.axes, shape, strict=True))) if not is_unit(extent))
    partial, folded, width = hl.Func(f"{name}_lanes"), hl.Func(f"{name}_folded"), min(FOLD, lanes)
    position = domain[0] * lanes + lane
    value = _reader(x, places, domain)(hl.min(position, length - 1))
    partial[(lane, *here)] = initial
    partial[(lane, *here)] = combine(
        hl.Expr(partial[(lane, *here)]), hl.select(hl.likely(position < length), value, initial)
    )
    folded[(lane, *here)] = tree(combine, [partial[(lane + i, *here)] for i in range(0, lanes, width)])

    def total(*_: Expr) -> Expr:
        return tree(combine, [folded[(i, *here)] for i in range(width)])

    return Reduction.define(
        x.graph, name, x.axes, shape, total, (x,), domain=domain, lane=lane, partial=partial, folded=folded
    )


def tree(combine: Combine, values: Sequence[Any]) -> Expr:
    """Combine values pairwise."""
    level = [hl.Expr(value) for value in values]
    while len(level) > 1:
        pairs = [combine(*level[i : i + 2]) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) - len(level) % 2 :]
    return level[0]
