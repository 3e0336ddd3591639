"""The class schedule of point-wise operators."""

from __future__ import annotations

from typing import Any

from hfreg.kernels.schedules.common import GUARD, all_of, fuse_all
from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.kernels.schedules.variant import Variant
from hfreg.lang.tensor import Graph, Input, var

TASK_VECTORS = 512
"""Vectors that one task of a long row gets."""


def variants(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    """One body for all shapes."""
    return [Variant(apply, target.lowering())]


def apply(graph: Graph, target: ScheduleTarget) -> None:
    """Vectors along the last axis, one branch for each pattern of innermost strides: 1, or 0 where it broadcasts.

    One long row is cut into tasks of many vectors; several rows are tasks themselves. The vectors are made first and
    divided among the tasks then: the other way round, the guard of a task would become a mask on every vector.
    """
    out, axes = graph.out.func, graph.out.kept()
    if not axes:
        return
    rows = [out.output_buffer().dim(place).extent() for place in range(1, len(axes))]
    for pattern in _stride_patterns(graph, axes[-1]):
        branch = out.specialize(pattern)
        if rows:
            _cut(branch.specialize(all_of([extent == 1 for extent in rows])), axes[-1], target)
            _vectorize(branch, axes[-1], target)
            _parallel_rows(branch, axes)
        else:
            _cut(branch, axes[-1], target)
    if rows:
        _parallel_rows(out, axes)


def _vectorize(stage: Any, axis: str, target: ScheduleTarget) -> None:
    x, lane = var(axis), var("lane")
    stage.split(x, x, lane, 4 * target.vector, GUARD).vectorize(lane)


def _cut(stage: Any, axis: str, target: ScheduleTarget) -> None:
    """One row in tasks."""
    x, task = var(axis), var("task")
    _vectorize(stage, axis, target)
    stage.split(x, task, x, TASK_VECTORS // 4, GUARD).parallel(task)


def _parallel_rows(stage: Any, axes: list[str]) -> None:
    stage.parallel(fuse_all(stage, [var(axis) for axis in reversed(axes[:-1])], "rows"))


def _stride_patterns(graph: Graph, axis: str) -> list[Any]:
    """Conditions on the innermost strides of the inputs that have the axis: all 1, then one of them 0."""
    inputs = [stage for stage in graph.of_kind(Input) if stage.kept() and stage.kept()[-1] == axis]
    strides = [stage.buffer.dim(0).stride() for stage in inputs]
    patterns = [[1] * len(strides)]
    if len(strides) > 1:
        patterns += [[int(place != zero) for place in range(len(strides))] for zero in range(len(strides))]
    is_compact = graph.out.func.output_buffer().dim(0).stride() == 1
    return [all_of([is_compact, *(s == value for s, value in zip(strides, p, strict=True))]) for p in patterns]
