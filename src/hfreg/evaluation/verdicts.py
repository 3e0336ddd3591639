"""The names of how an evaluation ends."""

from __future__ import annotations

from typing import Literal

Verdict = Literal[
    "passed",
    "wrong_result",
    "unwritten_output",
    "out_of_bounds_write",
    "input_modified",
    "not_repeatable",
    "reported_error",
    "crashed",
    "timed_out",
    "reference_failed",
    "not_reached",
]
"""How a case, or a kernel, ended."""

SEVERITY: tuple[Verdict, ...] = (
    "reference_failed",
    "not_reached",
    "crashed",
    "timed_out",
    "out_of_bounds_write",
    "input_modified",
    "unwritten_output",
    "reported_error",
    "wrong_result",
    "not_repeatable",
    "passed",
)
"""The verdict of a kernel is the first of these that one of its cases has."""
