"""Variants: a kernel may hold several compiled bodies, each for some shapes; the first whose condition holds runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from hfreg.errors import BuildError
from hfreg.kernels.conditions import check_condition
from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.lang.tensor import Graph, Lowering

Apply = Callable[[Graph, ScheduleTarget], None]


@dataclass(frozen=True)
class Variant:
    """One way to compute a kernel."""

    apply: Apply
    """Writes the schedule into a graph."""
    lowering: Lowering
    """How the graph is made."""
    condition: str = ""
    """The shapes that it serves (see `hfreg.kernels.conditions`); empty for all. The last variant serves all."""
    name: str = "general"


def check_variants(variants: Sequence[Variant], axes: Collection[str]) -> None:
    """Check that conditions are over known axes, names differ, and that the last variant serves everything.

    Raises:
        BuildError: they are not.
    """
    if not variants or variants[-1].condition:
        raise BuildError("the last variant of a schedule must serve all shapes: it has no condition")
    names = [variant.name for variant in variants]
    if len(set(names)) < len(names):
        raise BuildError(f"two variants of a schedule have one name: {names}")
    for variant in variants[:-1]:
        if not variant.condition:
            raise BuildError(f"the variant {variant.name!r} serves all shapes, so those behind it never run")
        check_condition(variant.condition, axes)
