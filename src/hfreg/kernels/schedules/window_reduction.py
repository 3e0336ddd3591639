"""The class schedule of maxima over windows: pooling."""

from __future__ import annotations

import halide as hl

from hfreg.kernels.schedules.common import GUARD, OVERLAP, ROUND_UP
from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.kernels.schedules.variant import Variant
from hfreg.lang.tensor import Graph, var
from hfreg.lang.window_reduction import WindowReduction

STRIP = 8192
"""Elements of a strip of the plane, about: they stay in the first-level cache."""


def variants(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    """One body for all shapes."""
    return [Variant(apply, target.lowering())]


def apply(graph: Graph, target: ScheduleTarget) -> None:
    """Maxima over rows in registers, stored once for a strip with fill around them; then over columns, by vectors."""
    (stage,) = graph.of_kind(WindowReduction)
    vector, out, axes = target.vector, graph.out.func, graph.out.kept()
    x, y, x_in, strip, q, lane = var(axes[-1]), var(axes[-2]), var("x_in"), var("strip_of"), var("q"), var("lane")
    rest = [var(axis) for axis in reversed(axes[:-2])]
    height = hl.max(1, STRIP / hl.max(1, stage.width))
    for branch, tail in ((out.specialize(graph.out.extent(-1) >= vector), OVERLAP), (out, GUARD)):
        branch.split(x, x, x_in, vector, tail).split(y, strip, y, height, GUARD).reorder(x_in, x, y, strip, *rest)
        branch.vectorize(x_in).parallel(rest[0])
    stage.strip.compute_at(out, strip).hoist_storage(out, rest[0])
    stage.strip.split(q, q, x_in, vector, ROUND_UP).vectorize(x_in)
    store = stage.strip.update(0).allow_race_conditions().reorder(stage.store[0], stage.store[1], y, *rest)
    store.specialize(stage.width >= vector).vectorize(stage.store[0])
    stage.rows.compute_at(stage.strip, stage.store[1]).bound_extent(lane, vector).vectorize(lane)
    over = [stage.row_domain[i] for i in range(stage.row_domain.dimensions())]
    stage.rows.update(0).reorder(lane, *over).vectorize(lane)
    stage.columns.compute_at(out, x).bound_extent(x, vector).vectorize(x)
    update = stage.columns.update(0).reorder(x, stage.column_domain[0]).vectorize(x)
    if not isinstance(stage.stride, int):
        for stride in (1, 2):
            update.specialize(stage.stride == stride)
