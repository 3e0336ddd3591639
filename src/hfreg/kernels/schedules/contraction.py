"""The schedules of contractions: matrix products, and what follows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hfreg.errors import BuildError
from hfreg.kernels.schedules.common import (
    GUARD,
    OVERLAP,
    ROUND_UP,
    Place,
    is_shared,
    reduce_over_lanes,
    vectorize,
)
from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.kernels.schedules.variant import Variant
from hfreg.lang.contraction import Contraction
from hfreg.lang.reduction import Reduction
from hfreg.lang.tensor import Graph, Tensor, var


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of the result that stays in registers: vectors across, and rows."""

    vectors: int
    rows: int


def register_tile(target: ScheduleTarget) -> Tile:
    """The tile of the class schedule: it leaves registers for a row of the packed operand and a value of the other."""
    vectors = 4 if target.registers >= 32 else 2
    return Tile(vectors, (target.registers - vectors - 2) // vectors if vectors == 4 else 6)


def variants(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    """One body for all shapes."""
    return [packed(register_tile(target), target)]


def packed(tile: Tile, target: ScheduleTarget, *, condition: str = "", name: str = "general") -> Variant:
    """A contraction whose operand with the vector axis is packed in panels of a tile's width."""
    return Variant(lambda graph, goal: _apply_packed(graph, goal, tile), target.lowering(), condition, name)


def few_rows(tile: Tile, steps: int, target: ScheduleTarget, *, condition: str, name: str) -> Variant:
    """A contraction with few rows: the operand with the vector axis is read once, as it is, and nothing is packed.

    Args:
        tile: rows, and vectors; an output needs at least as many vectors.
        steps: steps of the reduction in one block.
        target: the target.
        condition: the shapes that it serves.
        name: the variant's name.
    """
    lowering = target.lowering(steps=steps)
    return Variant(lambda graph, goal: _apply_few_rows(graph, goal, tile), lowering, condition, name)


def _apply_packed(graph: Graph, target: ScheduleTarget, tile: Tile) -> None:
    """What follows the last contraction runs on the tile while it is in registers."""
    last = graph.of_kind(Contraction)[-1]
    out, axes = graph.out.func, graph.out.kept()
    width = target.vector * tile.vectors
    x, row, xi, row_in = var(last.vector), var(last.row), var("x_in"), var("row_in")
    rest = [var(axis) for axis in reversed(axes) if axis not in (last.vector, last.row)]
    before = [stage for stage in graph.stages.values() if stage is not last and _comes_before(stage, last)]
    heavy = [s for s in before if isinstance(s, (Reduction, Contraction)) or is_shared(graph, s)]
    out.split(x, x, xi, width, GUARD).split(row, row, row_in, tile.rows, GUARD)
    # with work before it, all columns of a block of rows follow each other; else all rows of a panel do
    order, place = ([x, row], x) if heavy else ([row, x], row)
    out.reorder(xi, row_in, *order, *rest).vectorize(xi, target.vector).unroll(xi).unroll(row_in)
    out.parallel(rest[-1] if rest else order[-1])
    _hold_in_registers(last, width, tile.rows, target, lambda func: func.compute_at(out, place))
    if not heavy:
        _pack(last, target, lambda func: func.compute_at(out, x))
    for stage in heavy:
        _place_before(stage, last, out, row, rest, tile, target)


def _comes_before(stage: Tensor, later: Tensor) -> bool:
    return any(operand is stage or _comes_before(stage, operand) for operand in later.operands)


def _place_before(
    stage: Tensor, last: Contraction, out: Any, row: Any, rest: list[Any], tile: Tile, target: ScheduleTarget
) -> None:
    """Work that the last contraction needs, for a block of its rows."""
    if isinstance(stage, Reduction):
        reduce_over_lanes(stage, lambda func: func.compute_at(out, row), target.vector)
    elif isinstance(stage, Contraction):
        _inner_contraction(stage, out, row, rest, tile, target)
    elif stage.kept()[-1] != last.row:
        vectorize(stage.func.compute_at(out, row), var(stage.kept()[-1]), 2 * target.vector, ROUND_UP)
    else:
        stage.func.compute_at(out, row)


def _hold_in_registers(stage: Contraction, width: int, rows: int, target: ScheduleTarget, at: Place) -> None:
    """Keep a tile of a contraction in registers through a block of the reduction."""
    x, row = var(stage.vector), var(stage.row)
    blocks = [stage.blocks[place] for place in range(len(stage.reduced))]
    for func, reduced in ((at(stage.func), blocks), (stage.block.compute_at(stage.func, blocks[0]), [stage.inner[0]])):
        func.bound_extent(x, width).bound_extent(row, rows).vectorize(x, target.vector).unroll(x).unroll(row)
        func.update(0).reorder(x, row, *reduced).vectorize(x, target.vector).unroll(x).unroll(row)


def _pack(stage: Contraction, target: ScheduleTarget, at: Place) -> None:
    """Copy the operand with the vector axis, so that the tile's width is contiguous."""
    vectorize(at(stage.panel), stage.panel.args()[0], target.vector, ROUND_UP)


def _inner_contraction(
    stage: Contraction, out: Any, row: Any, rest: list[Any], tile: Tile, target: ScheduleTarget
) -> None:
    """A contraction that feeds another: all its columns, for the rows of the outer tile."""
    x, row_in, x_in, block = var(stage.vector), var(stage.row), var("x_tile"), stage.func.in_()
    width = target.vector * tile.vectors
    block.compute_at(out, row).bound_extent(row_in, tile.rows).split(x, x, x_in, width, ROUND_UP)
    block.reorder(x_in, row_in, x).vectorize(x_in, target.vector).unroll(x_in).unroll(row_in)
    _hold_in_registers(stage, width, tile.rows, target, lambda func: func.compute_at(block, x))
    _pack(stage, target, lambda func: func.compute_at(out, rest[0]) if rest else func.compute_root())


def _apply_few_rows(graph: Graph, target: ScheduleTarget, tile: Tile) -> None:
    """The operand with the vector axis streams past sums that stay in the first-level cache."""
    (stage,) = graph.of_kind(Contraction)
    if stage.sums is None:
        raise BuildError("the graph was not lowered for few rows")
    out, axes, vector = graph.out.func, graph.out.kept(), target.vector
    x, row, chunk, lanes = var(stage.vector), var(stage.row), var("chunk"), var("lanes")
    x_in, row_in = var("x_in"), var("row_in")
    rest = [var(axis) for axis in reversed(axes) if axis not in (stage.vector, stage.row)]
    count, width = graph.out.extent(axes.index(stage.vector) - len(axes)), tile.vectors * vector
    branches = [(out.specialize(count >= size), size) for size in (1024, 256) if size > width] + [(out, width)]
    for branch, size in branches:
        branch.split(x, chunk, x, size, OVERLAP).split(x, x, lanes, vector, GUARD).vectorize(lanes)
        branch.reorder(lanes, x, row, chunk, *rest).parallel(chunk)
    sums = stage.sums.compute_at(out, chunk)
    vectorize(sums, x, vector)
    update = sums.update(0).split(x, x, x_in, width, GUARD).split(row, row, row_in, tile.rows, ROUND_UP)
    update.reorder(x_in, row_in, row, x, stage.blocks[0]).vectorize(x_in, vector).unroll(x_in).unroll(row_in)
    stage.block.compute_at(sums, row).bound_extent(x, width).bound_extent(row, tile.rows)
    stage.block.vectorize(x, vector).unroll(x).unroll(row)
    stage.block.update(0).reorder(x, row, stage.inner[0]).vectorize(x, vector).unroll(x).unroll(row)
