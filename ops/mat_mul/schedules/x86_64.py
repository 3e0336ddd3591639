"""MatMul on x86-64: a body for one row, one for few rows, and two register tiles for the rest.

With few rows, reading the right operand is the whole work, so it is read once and not packed. Else it is packed in
panels, and the tile is the one whose width divides n with less waste.
"""

from hfreg.kernels.schedules import ScheduleTarget, Tile, Variant
from hfreg.kernels.schedules.contraction import few_rows, packed
from hfreg.lang import Graph

WIDE = {16: Tile(4, 6), 8: Tile(2, 6)}
NARROW = {16: Tile(2, 12), 8: Tile(1, 12)}
FEW_ROWS = {16: (Tile(2, 8), 32), 8: (Tile(2, 4), 16)}
ONE_ROW = {16: Tile(8, 1), 8: Tile(8, 1)}


def rows(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    vector = target.vector
    one, (few, steps) = ONE_ROW[vector], FEW_ROWS[vector]
    return [
        few_rows(one, 8, target, name="one row", condition=f"m == 1 && n >= {one.vectors * vector} && k >= 64"),
        few_rows(
            few, steps, target, name="few rows", condition=f"m <= 32 && n >= {few.vectors * vector} && k * n >= 65536"
        ),
        *batched(graph, target),
    ]


def batched(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    wide, narrow = WIDE[target.vector], NARROW[target.vector]
    one, other = wide.vectors * target.vector, narrow.vectors * target.vector
    waste_less = f"n > {other} && (n + {one - 1}) / {one} * {one} <= (n + {other - 1}) / {other} * {other}"
    return [
        packed(wide, target, name="wide", condition=waste_less),
        packed(narrow, target, name="narrow"),
    ]
