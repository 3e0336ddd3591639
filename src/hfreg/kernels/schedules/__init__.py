"""Class schedules: for every class of operators and every target, a schedule that fits any operator of the class."""

from hfreg.kernels.schedules.elementwise import elementwise
from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.lang.tensor import Graph


def schedule(graph: Graph, target: ScheduleTarget) -> str:
    """Apply the class schedule of a graph, which its heaviest stage decides; the name of the class."""
    elementwise(graph, target)
    return "elementwise"


__all__ = ["ScheduleTarget", "schedule"]
