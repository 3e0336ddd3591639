"""Schedules: how to compute a graph on a target. Every class of operators has a class schedule that fits all of it.

A package may have a hand schedule for an architecture, in `schedules/<architecture>.py`: a function for each attribute
class, named like it, that takes a graph and a target and gives variants as the class schedules here do.
"""

from collections.abc import Callable

from hfreg.kernels.schedules import contraction, elementwise, row_reduction, window_contraction, window_reduction
from hfreg.kernels.schedules.contraction import Tile
from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.kernels.schedules.variant import Variant, check_variants
from hfreg.lang.contraction import Contraction
from hfreg.lang.reduction import Reduction
from hfreg.lang.tensor import Graph, Tensor
from hfreg.lang.window_contraction import WindowContraction
from hfreg.lang.window_reduction import WindowReduction

MakeVariants = Callable[[Graph, ScheduleTarget], list[Variant]]

_CLASSES: tuple[tuple[type[Tensor], str, MakeVariants], ...] = (
    (WindowContraction, "window contraction", window_contraction.variants),
    (Contraction, "contraction", contraction.variants),
    (WindowReduction, "window reduction", window_reduction.variants),
    (Reduction, "row reduction", row_reduction.variants),
)
"""The classes by their heaviest stage, heaviest first. What has none of these is elementwise."""


def class_schedule(graph: Graph) -> tuple[str, MakeVariants]:
    """The class of a graph, and its schedule."""
    for kind, name, make in _CLASSES:
        if graph.of_kind(kind):
            return name, make
    return "elementwise", elementwise.variants


__all__ = ["MakeVariants", "ScheduleTarget", "Tile", "Variant", "check_variants", "class_schedule"]
