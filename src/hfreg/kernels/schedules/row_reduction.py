"""The class schedule of operators that reduce rows: normalizations, softmax, sums, means."""

from __future__ import annotations

from typing import Any

from hfreg.kernels.schedules.common import (
    GUARD,
    OVERLAP,
    is_shared,
    reduce_over_lanes,
    vectorize,
    vectorize_whole,
)
from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.kernels.schedules.variant import Variant
from hfreg.lang.reduction import Reduction
from hfreg.lang.tensor import Graph, Map, Tensor, is_unit, var

TASK_ROWS = 16


def variants(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    """One body for all shapes."""
    return [Variant(apply, target.lowering())]


def apply(graph: Graph, target: ScheduleTarget) -> None:
    """Along the last axis row by row, along another one with vectors across the axes inside it."""
    if graph.of_kind(Reduction)[0].partial is None:
        _across(graph, target)
    else:
        _along(graph, target)


def _stored_maps(graph: Graph) -> list[Tensor]:
    return [stage for stage in graph.of_kind(Map) if is_shared(graph, stage)]


def _along(graph: Graph, target: ScheduleTarget) -> None:
    """[.., n]: rows in blocks; reductions and costly maps are computed row by row, and stay in the cache."""
    out, axes, reductions = graph.out.func, graph.out.kept(), graph.of_kind(Reduction)
    if not axes:
        _to_scalar(graph, target)
        return
    x, width = var(axes[-1]), 2 * target.vector
    is_whole = len(axes) == len(reductions[0].operands[0].kept())  # else one value for each row
    row, rows = (var(axes[-2]) if is_whole and len(axes) > 1 else x), var("rows")
    if is_whole:
        # inside this branch it is a fact that a row has a block of lanes, and positions become plain vectors
        is_long = graph.out.extent(-1) >= max(width, graph.lowering.lanes)
        for branch, tail in ((out.specialize(is_long), OVERLAP), (out, GUARD)):
            branch.split(row, rows, row, TASK_ROWS, GUARD).parallel(rows)
            vectorize(branch, x, width, tail)
    else:
        out.split(row, rows, row, TASK_ROWS, GUARD).parallel(rows)
    for stage in reductions:
        reduce_over_lanes(stage, lambda func: func.compute_at(out, row), target.vector)
    for stage in _stored_maps(graph):
        stage.func.compute_at(out, row)
        if len(stage.kept()) == len(axes) and stage.kept()[-1] == axes[-1]:
            stage.func.hoist_storage(out, rows)
            vectorize_whole(stage.func, x, width, stage.extent(-1))


def _to_scalar(graph: Graph, target: ScheduleTarget) -> None:
    """One value of everything."""
    for stage in graph.of_kind(Reduction):
        reduce_over_lanes(stage, lambda func: func.compute_root(), target.vector)
    for stage in _stored_maps(graph):
        stage.func.compute_root()


def _across(graph: Graph, target: ScheduleTarget) -> None:
    """[.., n, inner]: vectors across inner; n runs inside, on values that stay in registers and the cache."""
    out, axes = graph.out.func, graph.out.kept()
    x, inner, width = var(axes[-1]), var("inner_of"), 4 * target.vector
    middle = [var(axis) for axis in reversed(axes[1:-1])]
    for branch, tail in ((out.specialize(graph.out.extent(-1) >= width), OVERLAP), (out, GUARD)):
        branch.split(x, x, inner, width, tail).reorder(inner, *middle, x, var(axes[0])).vectorize(inner)
        branch.parallel(var(axes[0]))
    for stage in [*graph.of_kind(Reduction), *_stored_maps(graph)]:
        stage.func.compute_at(out, x)
        if not is_unit(stage.shape[-1]):
            _vectorize_updates(stage.func, x, width, _domains(stage))
        if isinstance(stage, Reduction) and stage.short is not None:
            stage.short.compute_at(stage.func, stage.domain[0])
            _vectorize_updates(stage.short, x, width, [stage.short_domain])


def _domains(stage: Tensor) -> list[Any]:
    """The reduction domain of each update of a stage."""
    if not isinstance(stage, Reduction):
        return []
    return [domain for domain in (stage.domain, stage.tail) if domain is not None]


def _vectorize_updates(func: Any, x: Any, width: int, domains: list[Any]) -> None:
    vectorize(func, x, width)
    for number, domain in enumerate(domains):
        over = [domain[i] for i in range(domain.dimensions())]
        vectorize(func.update(number), x, width).reorder(var("lane_of"), *over, x)
