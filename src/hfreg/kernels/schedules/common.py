"""Steps that several schedules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import halide as hl

from hfreg.lang.contraction import Contraction
from hfreg.lang.reduction import Reduction
from hfreg.lang.tensor import Graph, Map, Tensor, var

GUARD = hl.TailStrategy.GuardWithIf
OVERLAP = hl.TailStrategy.ShiftInwards
ROUND_UP = hl.TailStrategy.RoundUp
Place = Callable[[Any], Any]
"""Puts a Halide function at its place in the loops of another one."""


def all_of(conditions: Iterable[Any]) -> Any:
    """The conjunction of Halide conditions."""
    return reduce(lambda a, b: a & b, conditions)


def vectorize(stage: Any, axis: Any, width: int, tail: Any = GUARD) -> Any:
    """Split an axis and vectorize its inner part."""
    lane = var("lane_of")
    return stage.split(axis, axis, lane, width, tail).vectorize(lane)


def vectorize_whole(stage: Any, axis: Any, width: int, extent: Any) -> None:
    """Vectors along an axis of a stage without updates: the last one overlaps, where there is room for one."""
    vectorize(stage.specialize(extent >= width), axis, width, OVERLAP)
    vectorize(stage, axis, width)


def is_shared(graph: Graph, stage: Tensor) -> bool:
    """Whether storing a map pays.

    It does for a costly one that a contraction reads, that a reduction and something else read, or that is computed
    once for a row and read along it.
    """
    if not isinstance(stage, Map) or not stage.is_costly:
        return False
    users = graph.users(stage)
    heavy = [user for user in users if isinstance(user, (Reduction, Contraction))]
    once_per_row = any(user.rank >= stage.rank and len(user.kept()) > len(stage.kept()) for user in users)
    is_contracted = any(isinstance(user, Contraction) for user in heavy)
    return is_contracted or once_per_row or (bool(heavy) and len(users) > 1)


def reduce_over_lanes(stage: Reduction, at: Place, vector: int) -> None:
    """A reduction along the last axis: lane by lane, then the lanes by halves, at one place."""
    at(stage.func)
    for folded, width in stage.folds:
        at(folded).vectorize(stage.lane, min(width, vector)).unroll(stage.lane)
    partial = at(stage.partial)
    for step in [partial, *(partial.update(i) for i in range(partial.num_update_definitions()))]:
        step.vectorize(stage.lane, vector).unroll(stage.lane)


def fuse_all(stage: Any, axes: Sequence[Any], name: str) -> Any:
    """Fuse axes, innermost first, into one; the new axis."""
    first, *others = axes
    for axis in others:
        fused = var(name)
        stage.fuse(first, axis, fused)
        first = fused
    return first
