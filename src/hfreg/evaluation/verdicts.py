"""The names of how an evaluation ends."""

from __future__ import annotations

from typing import Literal, get_args

Verdict = Literal[
    "reference_failed",
    "disputed_reference",
    "tests_nothing",
    "not_reached",
    "unsafe_artifact",
    "forbidden_syscall",
    "tampers_with_clock",
    "crashed",
    "timed_out",
    "exceeds_resources",
    "out_of_bounds_write",
    "out_of_bounds_read",
    "undefined_behavior",
    "input_modified",
    "unwritten_output",
    "uninitialized_read",
    "reported_error",
    "not_refused",
    "reuses_results",
    "skips_work",
    "background_work",
    "works_outside_timing",
    "faster_than_possible",
    "wrong_result",
    "lower_precision",
    "breaks_relation",
    "not_repeatable",
    "weak_evidence",
    "less_accurate",
    "passed",
]
"""How a case, or a kernel, ended."""

SEVERITY: tuple[Verdict, ...] = get_args(Verdict)
"""The verdict of a kernel is the first of these that one of its cases has: first what leaves everything unknown, then
what is unsafe, what cheats, what is wrong."""
