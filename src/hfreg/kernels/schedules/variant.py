"""Variants: a kernel may hold several compiled bodies, each for some shapes; the first whose condition holds runs.

A condition is written over the axes of the operator's canonical views, in the operators of C: `m <= 32 && n >= 64`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hfreg.errors import BuildError
from hfreg.kernels.schedules.target import ScheduleTarget
from hfreg.lang.tensor import Graph, Lowering

Apply = Callable[[Graph, ScheduleTarget], None]
_TOKEN = re.compile(r"\s*(?:(?P<name>[a-z]\w*)|\d+|&&|\|\||[<>=!]=|[-+*/%<>()])")


@dataclass(frozen=True)
class Variant:
    """One way to compute a kernel."""

    apply: Apply
    """Writes the schedule into a graph."""
    lowering: Lowering
    """How the graph is made."""
    condition: str = ""
    """The shapes that it serves; empty for all. The last variant serves all."""
    name: str = "general"


def check_variants(variants: Sequence[Variant], axes: Iterable[str]) -> None:
    """Check that conditions are over known axes, and that the last variant serves everything.

    Raises:
        BuildError: they are not.
    """
    known = set(axes)
    if not variants or variants[-1].condition:
        raise BuildError("the last variant of a schedule must serve all shapes: it has no condition")
    for variant in variants[:-1]:
        if not variant.condition:
            raise BuildError(f"the variant {variant.name!r} serves all shapes, so those behind it never run")
        position = 0
        while variant.condition[position:].strip():
            match = _TOKEN.match(variant.condition, position)
            if match is None:
                raise BuildError(f"cannot read the condition {variant.condition!r} at {variant.condition[position:]!r}")
            if match["name"] and match["name"] not in known:
                raise BuildError(f"the condition {variant.condition!r} names {match['name']!r}; axes: {sorted(known)}")
            position = match.end()
