"""What an evaluation finds: how each case ended, and the sums by data set and by kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict

from hfreg.arrays import Array
from hfreg.evaluation.cases import Case
from hfreg.evaluation.compare import Comparison
from hfreg.evaluation.verdicts import SEVERITY, Verdict
from hfreg.ops.reference import Expected

MAX_REPORTED = 5


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one case ended."""

    case: Case
    verdict: Verdict
    detail: str = ""
    comparison: Comparison | None = None
    outputs: tuple[Array, ...] = ()
    """What the kernel wrote; empty where it did not return."""
    expected: Expected | None = None
    """What it was compared with; None where the reference failed."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed case, for people."""

    case: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True, slots=True)
class DataSetResult:
    """How the cases of one data set ended."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(ser_json_inf_nan="constants")
    data_set: str
    cases: int
    failed: int
    elements: int
    max_error_ratio: float
    """The largest error divided by its bound, over all elements."""
    max_ulp: float
    rms_ulp: float
    bias_ulp: float
    failures: tuple[Failure, ...]
    """The first few."""


@dataclass(frozen=True, slots=True)
class KernelEvaluation:
    """What was found out about one kernel."""

    verdict: Verdict
    data_sets: tuple[DataSetResult, ...]
    nonce: str
    """What the author of the kernel could not know; revealed with the result."""
    seed: str
    """What the random cases were drawn from: SHA-256 of `<kernel digest>/<nonce>`."""
    threads: int = 1
    """Threads that the calls ran on."""
    evaluated_on: datetime | None = None
    """When; an evaluation may be recalled later."""

    @property
    def failures(self) -> Iterator[Failure]:
        for data_set in self.data_sets:
            yield from data_set.failures


def summarize(results: list[CaseResult], nonce: str, seed: str) -> KernelEvaluation:
    """The results of all cases, by data set, and the verdict."""
    data_sets = sorted({result.case.data_set for result in results})
    verdicts = {result.verdict for result in results}
    verdict: Verdict = next((verdict for verdict in SEVERITY if verdict in verdicts), "not_reached")
    summaries = tuple(_summary(name, [r for r in results if r.case.data_set == name]) for name in data_sets)
    return KernelEvaluation(verdict, summaries, nonce, seed)


def _told(result: CaseResult) -> str:
    return f"{result.detail}; called with {result.case.call}" if result.case.call else result.detail


def _summary(name: str, results: list[CaseResult]) -> DataSetResult:
    comparisons = [result.comparison for result in results if result.comparison is not None]
    failed = [result for result in results if result.verdict != "passed"]
    elements = sum(c.elements for c in comparisons)
    return DataSetResult(
        data_set=name,
        cases=len(results),
        failed=len(failed),
        elements=elements,
        max_error_ratio=max((c.max_ratio for c in comparisons), default=0.0),
        max_ulp=max((c.max_ulp for c in comparisons), default=0.0),
        rms_ulp=float(np.sqrt(sum(c.sum_squares_ulp for c in comparisons) / max(1, elements))),
        bias_ulp=sum(c.sum_ulp for c in comparisons) / max(1, elements),
        failures=tuple(Failure(r.case.label, r.verdict, _told(r)) for r in failed[:MAX_REPORTED]),
    )
