"""Reductions: combine the values along some axes.

Along the last axis, blocks of `lanes` values are combined lane by lane (`partial`), then the lanes by halves (`folds`).
The last block overlaps the one before it, so all loads are whole vectors: an idempotent combination does not mind, any
other leaves out the values that were seen. Along another axis, sums are sums of short sums, since the error of one long
sum grows with its length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import halide as hl

from hfreg.lang.tensor import Expr, Extent, Tensor, is_unit, squeeze, var
from hfreg.lang.window import Window
from hfreg.lang.window_reduction import reduce_windows

Combine = Callable[[Expr, Expr], Expr]
SHORT_SUM = 4


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative, commutative combination (up to rounding) and its neutral value."""

    name: str
    combine: Combine
    neutral: Expr
    is_idempotent: bool = False
    """Whether a value that is combined twice counts once: a maximum."""
    is_maximum: bool = False


@dataclass(eq=False)
class Reduction(Tensor):
    """A reduction over `domain`."""

    monoid: Monoid = None  # type: ignore[assignment]
    domain: Any = None
    tail: Any = None
    """The reduction domain of what is left after whole blocks."""
    lane: Any = None
    """The variable of the lanes; None where the reduction is not along the last axis."""
    partial: Any = None
    folds: tuple[tuple[Any, int], ...] = ()
    """Functions that hold ever fewer lanes, with their number."""
    short: Any = None
    """Along another axis: the function of the short sums."""
    short_domain: Any = None

    def bounds_from_above(self, other: Tensor) -> bool:
        return self.monoid.is_maximum and self.operands == (other,)


def reduce(monoid: Monoid, x: Tensor, axes: int | Sequence[int], *, keepdims: bool = True) -> Tensor:
    """Combine the values along `axes`.

    Args:
        monoid: how to combine.
        x: the tensor.
        axes: one axis or several, counted as in NumPy.
        keepdims: whether the axes stay, with extent 1.

    Raises:
        NotImplementedError: a reduction of windows that is not one maximum over whole windows.
    """
    places = sorted({a % x.rank for a in ([axes] if isinstance(axes, int) else axes)}, reverse=True)
    if isinstance(x, Window):
        if keepdims or not monoid.is_idempotent or sorted(places) != x.place_axes:
            raise NotImplementedError("windows are reduced whole, by an idempotent combination, without keepdims")
        return reduce_windows(monoid.name, monoid.combine, monoid.neutral, x)
    shape = [1 if i in places else extent for i, extent in enumerate(x.shape)]
    if x.rank - 1 in places:
        stage = _over_lanes(monoid, x, places, shape)
    elif monoid.is_idempotent or len(places) > 1:
        stage = _in_order(monoid, x, places, shape)
    else:
        stage = _in_short_sums(monoid, x, places[0], shape)
    return stage if keepdims else squeeze(stage, places)


def _kept(x: Tensor, shape: Sequence[Extent]) -> tuple[Any, ...]:
    """The variables of a result, in Halide's order."""
    return tuple(var(a) for a, extent in reversed(list(zip(x.axes, shape, strict=True))) if not is_unit(extent))


def _reader(x: Tensor, places: Sequence[int], domain: Any) -> Callable[[Expr], Expr]:
    """The value of `x` at a position of the innermost reduced axis; the other axes come from the domain."""
    others = [domain[d] for d in range(1, len(places))]

    def read(innermost: Expr) -> Expr:
        place = dict(zip(places, [innermost, *others], strict=True))
        return x.at([place.get(i, var(axis)) for i, axis in enumerate(x.axes)])

    return read


def _in_order(monoid: Monoid, x: Tensor, places: Sequence[int], shape: Sequence[Extent]) -> Reduction:
    domain = hl.RDom([hl.Range(0, x.shape[i]) for i in places], monoid.name)
    stage = Reduction.define(
        x.graph, monoid.name, x.axes, shape, lambda *_: monoid.neutral, (x,), monoid=monoid, domain=domain
    )
    here = _kept(x, shape)
    stage.func[here] = monoid.combine(_reader(x, places, domain)(domain[0]), hl.Expr(stage.func[here]))
    return stage


def _in_short_sums(monoid: Monoid, x: Tensor, place: int, shape: Sequence[Extent]) -> Reduction:
    length, here, part = x.shape[place], _kept(x, shape), var("part")
    domain = hl.RDom([hl.Range(0, length / SHORT_SUM)], monoid.name)
    inner = hl.RDom([hl.Range(0, SHORT_SUM)], f"{monoid.name}_short")
    tail = hl.RDom([hl.Range(0, length % SHORT_SUM)], f"{monoid.name}_tail")
    short, at = hl.Func(f"{monoid.name}_short"), (*here, part)
    short[at] = monoid.neutral
    value = _reader(x, [place], inner)(part * SHORT_SUM + inner[0])
    short[at] = monoid.combine(value, hl.Expr(short[at]))
    stage = Reduction.define(
        x.graph, monoid.name, x.axes, shape, lambda *_: monoid.neutral, (x,),
        monoid=monoid, domain=domain, tail=tail, short=short, short_domain=inner,
    )  # fmt: skip
    stage.func[here] = monoid.combine(hl.Expr(short[(*here, domain[0])]), hl.Expr(stage.func[here]))
    last = _reader(x, [place], tail)(length / SHORT_SUM * SHORT_SUM + tail[0])
    stage.func[here] = monoid.combine(last, hl.Expr(stage.func[here]))
    return stage


def _over_lanes(monoid: Monoid, x: Tensor, places: Sequence[int], shape: Sequence[Extent]) -> Reduction:
    length, lanes, lane = x.shape[places[0]], x.graph.lowering.lanes, var("lane")
    rest = [hl.Range(0, x.shape[i]) for i in places[1:]]
    here = _kept(x, shape)
    partial, at, is_long = hl.Func(f"{monoid.name}_lanes"), (lane, *here), length >= lanes

    def within(position: Expr) -> Expr:
        return hl.unsafe_promise_clamped(position, 0, length - 1)

    partial[at] = monoid.neutral
    if monoid.is_idempotent:
        domain, tail = hl.RDom([hl.Range(0, (length + lanes - 1) / lanes), *rest], monoid.name), None
        position = hl.select(is_long, hl.min(domain[0] * lanes, length - lanes) + lane, hl.min(lane, length - 1))
        partial[at] = monoid.combine(_reader(x, places, domain)(within(position)), hl.Expr(partial[at]))
    else:
        domain = hl.RDom([hl.Range(0, length / lanes), *rest], monoid.name)
        tail = hl.RDom([hl.Range(0, hl.select(length % lanes == 0, 0, 1)), *rest], f"{monoid.name}_tail")
        partial[at] = monoid.combine(_reader(x, places, domain)(domain[0] * lanes + lane), hl.Expr(partial[at]))
        position = hl.select(is_long, length - lanes + lane, hl.min(lane, length - 1))
        is_new = hl.select(is_long, position >= length / lanes * lanes, lane < length)
        value = hl.select(is_new, _reader(x, places, tail)(within(position + tail[0])), monoid.neutral)
        partial[at] = monoid.combine(value, hl.Expr(partial[at]))
    folds, last = _fold(monoid, partial, lane, here, lanes)

    def total(*_: Expr) -> Expr:
        return monoid.combine(hl.Expr(last[(0, *here)]), hl.Expr(last[(1, *here)]))

    return Reduction.define(
        x.graph, monoid.name, x.axes, shape, total, (x,),
        monoid=monoid, domain=domain, tail=tail, lane=lane, partial=partial, folds=tuple(folds),
    )  # fmt: skip


def _fold(
    monoid: Monoid, partial: Any, lane: Any, here: tuple[Any, ...], lanes: int
) -> tuple[list[tuple[Any, int]], Any]:
    """Halve the lanes until two are left; the functions with their lanes, and the last one."""
    folds: list[tuple[Any, int]] = []
    last, width = partial, lanes
    while width > 2:
        width //= 2
        folded = hl.Func(f"{monoid.name}_{width}")
        folded[(lane, *here)] = monoid.combine(hl.Expr(last[(lane, *here)]), hl.Expr(last[(lane + width, *here)]))
        folds.append((folded, width))
        last = folded
    return folds, last
