"""The schedules of contractions of windows: convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import halide as hl

from hfreg.kernels.schedules.common import GUARD, ROUND_UP, all_of
from hfreg.kernels.schedules.contraction import Tile
from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.kernels.schedules.variant import Variant
from hfreg.lang.tensor import Graph, is_unit, var
from hfreg.lang.window_contraction import WindowContraction

PIECE = 1536
"""Flat positions of the plane that one task takes, about: they stay in the first-level cache."""
MIN_TASK_ROWS = 40
"""Output channels of one task."""


def variants(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    """One body for all shapes, with one tile."""
    return [tiled([Tile(4, 6) if target.registers >= 32 else Tile(3, 4)], target)]


def tiled(
    tiles: Sequence[Tile],
    target: ScheduleTarget,
    *,
    in_groups: bool = False,
    condition: str = "",
    name: str = "general",
) -> Variant:
    """A contraction of windows whose tile is chosen by the shape: the one that wastes least.

    Args:
        tiles: the register tiles, vectors of flat positions by output channels.
        target: the target.
        in_groups: whether the groups are the tasks, each with a plane of its own. Else a task is some channels of some
            rows, and the plane is made for all of them at once.
        condition: the shapes that it serves.
        name: the variant's name.
    """

    def apply(graph: Graph, goal: ScheduleTarget) -> None:
        _Schedule(graph, goal, tiles, in_groups=in_groups).run()

    return Variant(apply, target.lowering(), condition, name)


class _Schedule:
    def __init__(self, graph: Graph, target: ScheduleTarget, tiles: Sequence[Tile], *, in_groups: bool) -> None:
        self.stage: WindowContraction = graph.of_kind(WindowContraction)[0]
        self.vector, self.tiles, self.in_groups = target.vector, tiles, in_groups
        self.out, self.axes = graph.out.func, graph.out.kept()
        self.channel = var(self.stage.row)
        spatial = len(self.stage.positions)
        self.spatial = [self.axes[-1 - i] for i in range(spatial)]  # innermost first
        outer = [axis for axis in self.axes if axis not in self.spatial and axis != self.stage.row]
        self.rest = [var(axis) for axis in reversed(outer)]

    def run(self) -> None:
        self.schedule_output()
        self.schedule_sums()
        self.stage.taps.compute_root()
        self.stage.offsets.compute_root()
        self.schedule_plane()

    @property
    def rows_of_task(self) -> Any:
        """Rows of the output plane that one task takes."""
        height = self.stage.positions[0]
        if self.in_groups:
            return height
        pieces = (height * self.stage.row_pitch + PIECE - 1) / PIECE
        return (height + pieces - 1) / pieces

    def schedule_output(self) -> None:
        """Tasks of (output channels x rows of the plane), or of groups."""
        x, y, piece, y_in, o_in, lanes = (
            var(n) for n in (self.spatial[0], self.spatial[-1], "piece", "y_in", "o_in", "lanes")
        )
        every = math.lcm(*(tile.rows for tile in self.tiles))  # rows of every tile divide it
        chunk = every if self.in_groups else every * -(-MIN_TASK_ROWS // every)
        self.out.split(self.channel, self.channel, o_in, chunk, GUARD).split(y, y, y_in, self.rows_of_task, GUARD)
        self.out.split(x, x, lanes, self.vector, GUARD).vectorize(lanes)
        middle = [y_in if axis == self.spatial[-1] else var(axis) for axis in self.spatial[1:]]
        self.out.reorder(lanes, x, *middle, o_in, self.channel, y, *self.rest).fuse(self.channel, y, piece)
        self.out.parallel(self.rest[0] if self.in_groups else piece)
        self.piece = piece

    def schedule_sums(self) -> None:
        """Register tiles; a branch for each, under the condition that it wastes no more than those behind it."""
        p, p_in, o, o_in = var("p"), var("p_in"), self.channel, var("o_in")
        sums, block = self.stage.sums, self.stage.block
        sums.compute_at(self.out, self.piece)
        every, update = self.stage.blocks[0], sums.update(0)
        widest = max(tile.vectors for tile in self.tiles) * self.vector
        sums.split(p, p, p_in, widest, ROUND_UP).vectorize(p_in, self.vector)
        for tile, condition in zip(self.tiles, [*self.conditions(), None], strict=True):
            branch = update if condition is None else update.specialize(condition)
            branch.split(p, p, p_in, tile.vectors * self.vector, ROUND_UP).split(o, o, o_in, tile.rows, ROUND_UP)
            branch.reorder(p_in, o_in, every, o, p).vectorize(p_in, self.vector).unroll(p_in).unroll(o_in)
        block.compute_at(sums, every).vectorize(p, self.vector).unroll(p).unroll(o)
        block.update(0).reorder(p, o, self.stage.inner[0]).vectorize(p, self.vector).unroll(p).unroll(o)

    def conditions(self) -> list[Any]:
        channels = self.stage.shape[self.stage.axes.index(self.stage.row)]
        if self.in_groups:
            return [channels <= tile.rows for tile in self.tiles[:-1]]
        elements = (self.rows_of_task - 1) * self.stage.row_pitch + self.stage.last_row
        vectors = (elements + self.vector - 1) / self.vector
        costs = [(vectors + tile.vectors - 1) / tile.vectors * tile.vectors for tile in self.tiles]
        return [all_of([cost <= other for other in costs[i + 1 :]]) for i, cost in enumerate(costs[:-1])]

    def schedule_plane(self) -> None:
        """Zeros by vectors, then rows of the input by vectors, with branches for the common strides."""
        stage, plane = self.stage, self.stage.plane
        q, part, lanes, group, column = var("q"), var("part"), var("lanes"), hl.RVar("group"), hl.RVar("column")
        plane.compute_at(self.out, self.rest[0] if self.rest else hl.Var.outermost())
        plane.split(q, q, lanes, 4 * self.vector, ROUND_UP).vectorize(lanes)
        put = plane.update(0).allow_race_conditions()
        others = [stage.copy[i] for i in range(1, stage.copy.dimensions())]
        put.split(stage.copy[0], group, column, self.vector, GUARD)
        put.reorder(column, group, *others).vectorize(column)
        if not self.in_groups:
            plane.split(q, part, q, 256, ROUND_UP).parallel(part)
            put.parallel(others[-1])
        if not is_unit(stage.strides[-1]) and not isinstance(stage.strides[-1], int):
            for stride in (1, 2):
                put.specialize(stage.strides[-1] == stride)
        plane.update(1).unscheduled()
