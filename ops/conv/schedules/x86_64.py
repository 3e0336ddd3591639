"""Conv on x86-64: tiles by shape, and groups as tasks of their own where there are several."""

from hfreg.kernels.schedules import ScheduleTarget, Tile, Variant
from hfreg.kernels.schedules.contraction import packed
from hfreg.kernels.schedules.window_contraction import tiled
from hfreg.lang import Graph

TILES = {16: [Tile(5, 5), Tile(3, 8), Tile(4, 6)], 8: [Tile(3, 4), Tile(2, 6)]}
DEPTHWISE = Tile(8, 1)
WIDE = {16: Tile(4, 6), 8: Tile(2, 6)}
NARROW = {16: Tile(2, 12), 8: Tile(1, 12)}


def general(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    tiles = TILES[target.vector]
    return [
        tiled([DEPTHWISE, tiles[0]], target, in_groups=True, condition="g >= 4", name="groups"),
        tiled(tiles, target),
    ]


def pointwise(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    wide, narrow = WIDE[target.vector], NARROW[target.vector]
    one, other = wide.vectors * target.vector, narrow.vectors * target.vector
    waste_less = f"h_w > {other} && (h_w + {one - 1}) / {one} * {one} <= (h_w + {other - 1}) / {other} * {other}"
    return [packed(wide, target, name="wide", condition=waste_less), packed(narrow, target, name="narrow")]
