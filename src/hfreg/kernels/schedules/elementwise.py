"""The class schedule of point-wise operators."""

from __future__ import annotations

from typing import Any

import halide as hl

from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.lang.tensor import Graph, Input, var

GUARD = hl.TailStrategy.GuardWithIf
CHUNK_VECTORS = 1024
"""Vectors that one task of a long row gets."""


def elementwise(graph: Graph, target: ScheduleTarget) -> None:
    """Vectors along the last axis, one variant for each pattern of innermost strides: 1, or 0 where it broadcasts.

    One long row is cut into chunks for the threads; several rows are tasks themselves.
    """
    out, axes = graph.out.func, graph.out.kept()
    if not axes:
        return
    x, chunk, lane = var(axes[-1]), var("chunk"), var("lane")
    width = 4 * target.vector
    rows = [out.output_buffer().dim(place).extent() for place in range(1, len(axes))]
    for pattern in _stride_patterns(graph, axes[-1]):
        variant = out.specialize(pattern)
        if rows:
            many = variant.specialize(_all([extent == 1 for extent in rows]))
            _chunks(many, x, chunk, lane, width)
            variant.split(x, x, lane, width, GUARD).vectorize(lane)
            _parallel_rows(variant, axes)
        else:
            _chunks(variant, x, chunk, lane, width)
    if rows:
        _parallel_rows(out, axes)


def _chunks(stage: Any, x: Any, chunk: Any, lane: Any, width: int) -> None:
    stage.split(x, chunk, x, CHUNK_VECTORS * width // 4, GUARD).split(x, x, lane, width, GUARD).vectorize(lane)
    stage.parallel(chunk)


def _parallel_rows(stage: Any, axes: list[str]) -> None:
    if len(axes) == 2:
        stage.parallel(var(axes[0]))
        return
    fused = var("rows")
    outer = [var(axis) for axis in reversed(axes[:-1])]
    stage.fuse(outer[0], outer[1], fused)
    for axis in outer[2:]:
        stage.fuse(fused, axis, fused)
    stage.parallel(fused)


def _stride_patterns(graph: Graph, axis: str) -> list[Any]:
    """Conditions on the innermost strides of the inputs that have the axis: all 1, then one of them 0."""
    inputs = [stage for stage in graph.of_kind(Input) if stage.kept() and stage.kept()[-1] == axis]
    strides = [stage.buffer.dim(0).stride() for stage in inputs]
    patterns = [[1] * len(strides)]
    if len(strides) > 1:
        patterns += [[int(place != zero) for place in range(len(strides))] for zero in range(len(strides))]
    is_compact = graph.out.func.output_buffer().dim(0).stride() == 1
    return [_all([is_compact, *(s == value for s, value in zip(strides, p, strict=True))]) for p in patterns]


def _all(conditions: list[Any]) -> Any:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result & condition
    return result
