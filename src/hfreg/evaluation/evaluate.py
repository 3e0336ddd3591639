"""Evaluate a kernel: run cases in a runner process, judge each, and sum up by data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import ClassVar, assert_never

import numpy as np
from pydantic import ConfigDict

from hfreg.arrays import Array
from hfreg.digests import sha256
from hfreg.errors import RunError
from hfreg.evaluation.bounds import rule
from hfreg.evaluation.cases import Case
from hfreg.evaluation.compare import Comparison, compare
from hfreg.evaluation.datasets import (
    distribution_cases,
    golden_cases,
    shape_cases,
    special_value_cases,
    variant_cases,
    workload_cases,
)
from hfreg.evaluation.datasets.variants import variant_case_name
from hfreg.evaluation.verdicts import SEVERITY, Verdict
from hfreg.kernels.artifact import Kernel, type_tuples
from hfreg.kernels.runner.client import Call, KernelRunner, Ran, Reported, RunOutcome, Stopped
from hfreg.kernels.targets import target
from hfreg.ops.binding import Binding, bind
from hfreg.ops.package import OpPackage
from hfreg.ops.reference import Expected, Reference
from hfreg.ops.signature import Attributes, Signature, Types
from hfreg.processes import TimedOut

DATA_SETS = ("D0", "D1", "D2", "D5")
MAX_REPORTED = 5
MAX_STOPS = 3
"""After so many crashes and timeouts nobody needs to wait for more of them."""
ANY_CASE = "any"
THREADS = 2
"""Threads that a native kernel's calls run on: what its tasks share by mistake shows in the results."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one case ended."""

    case: Case
    verdict: Verdict
    detail: str = ""
    comparison: Comparison | None = None


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


def make_cases(
    package: OpPackage, kernel: Kernel, signature: Signature, *, seed: str, data_sets: Iterable[str] = DATA_SETS
) -> Iterator[Case]:
    """All cases for one kernel.

    Args:
        package: the op package.
        kernel: the kernel.
        signature: the signature of its attribute class.
        seed: a digest; the same seed gives the same cases.
        data_sets: which sets.
    """
    manifest, types = package.manifest, kernel.key.dtypes
    generators: dict[str, Callable[[np.random.Generator], Iterable[Case]]] = {
        "D0": lambda _: golden_cases(package, signature, types),
        "D1": lambda rng: distribution_cases(manifest, signature, types, rng),
        "D2": lambda rng: special_value_cases(manifest, signature, types, rng),
        "D5": lambda rng: chain(
            shape_cases(manifest, signature, types, rng),
            variant_cases(manifest, signature, kernel.variants, types, rng),
            workload_cases(manifest, signature, types, rng) if kernel.key.types == type_tuples(manifest)[0] else (),
        ),
    }
    for name in data_sets:
        rng = np.random.default_rng(int(sha256(f"{seed}/{name}".encode())[7:39], 16))
        yield from generators[name](rng)


def evaluate_kernel(
    package: OpPackage, kernel: Kernel, reference: Reference, *, nonce: str, data_sets: Iterable[str] = DATA_SETS
) -> KernelEvaluation:
    """Run all data sets on one kernel.

    Args:
        package: the op package.
        kernel: the kernel; it is built for a target that runs on this machine.
        reference: the package's reference.
        nonce: what the author of the kernel did not know. With the kernel's digest it is the seed.
        data_sets: which sets.
    """
    seed = sha256(f"{kernel.digest}/{nonce}".encode())
    found = summarize(list(run_cases(package, kernel, reference, seed=seed, data_sets=data_sets)), nonce, seed)
    return replace(found, threads=_threads(kernel), evaluated_on=datetime.now(UTC))


def _threads(kernel: Kernel) -> int:
    """Threads that a kernel's calls run on; a WebAssembly module has one."""
    run = target(kernel.key.target).run
    return THREADS if run is not None and run.how == "native" else 1


def run_cases(
    package: OpPackage,
    kernel: Kernel,
    reference: Reference,
    *,
    seed: str,
    data_sets: Iterable[str],
    only: str | None = None,
) -> Iterator[CaseResult]:
    """Run data sets on one kernel, case by case.

    Cases that a kernel must have, and for which no call was found, are results too: what was never tried has not
    passed. A kernel that has crashed or hung `MAX_STOPS` times is given up.

    Args:
        package: the op package.
        kernel: the kernel.
        reference: the package's reference.
        seed: a digest; the same seed gives the same cases.
        data_sets: which sets.
        only: the name of the one case to run.
    """
    signature = package.signature(kernel.key.attribute_class)
    stops = 0
    with KernelRunner(kernel, threads=_threads(kernel)) as runner:
        for data_set in data_sets:
            missing = {} if only else _necessary_cases(data_set, kernel)
            for case in make_cases(package, kernel, signature, seed=seed, data_sets=[data_set]):
                missing = {name: why for name, why in missing.items() if name not in (case.name, ANY_CASE)}
                if only not in (None, case.name):
                    continue
                result = evaluate_case(package, signature, kernel, case, reference, runner)
                yield result
                stops += result.verdict in ("crashed", "timed_out")
                if stops == MAX_STOPS:
                    return
            for name, why in missing.items():
                yield CaseResult(Case(data_set, name, (), {}), "not_reached", why)


def _necessary_cases(data_set: str, kernel: Kernel) -> dict[str, str]:
    """Names of cases that a data set must have for a kernel, and what it means if it has not."""
    match data_set:
        case "D1":
            return {ANY_CASE: "no call was found that fits the signature"}
        case "D5":
            return {ANY_CASE: "no call was found that fits the signature"} | {
                variant_case_name(name): f"no call was found for the variant {name!r}: {condition or 'all others'}"
                for name, condition in kernel.variants.items()
            }
        case _:
            return {}


def evaluate_case(
    package: OpPackage, signature: Signature, kernel: Kernel, case: Case, reference: Reference, runner: KernelRunner
) -> CaseResult:
    """Run one case and judge it."""
    types = kernel.key.dtypes
    shapes = [None if array is None else array.shape for array in case.inputs]
    binding = bind(signature, shapes, case.attributes)
    try:
        expected = _expect(package, case, binding.attributes, types, reference)
        _check_shapes(signature, binding, expected)
        if case.expected is not None:
            expected = _golden(package, signature, case.expected, types, expected)
    except RunError as error:
        return CaseResult(case, "reference_failed", str(error))
    call = Call(
        inputs=case.inputs,
        outputs=tuple((tensor.dtype(types), binding.shape(tensor.pattern)) for tensor in signature.outputs),
        attributes=tuple(number.of(binding.attributes) for number in signature.runtime_attributes),
        names=tuple(tensor.name for tensor in signature.tensors),
        shift=case.shift,
    )
    return _judge(package, signature, kernel, case, runner.call(call), expected)


def _expect(package: OpPackage, case: Case, attributes: Attributes, types: Types, reference: Reference) -> Expected:
    """The reference's outputs, and the error scale."""
    source = rule(package.manifest.accuracy).scale
    expected = reference(case.inputs, attributes, types=types, scale=source == "reference")
    if source == "absolute":
        absolute = [None if array is None else np.abs(array) for array in case.inputs]
        magnitude = reference(absolute, attributes, types=types, scale=False).outputs[0]
        expected = Expected(expected.outputs, np.abs(magnitude).astype(np.float64))
    return expected


def _check_shapes(signature: Signature, binding: Binding, expected: Expected) -> None:
    for tensor, value in zip(signature.outputs, expected.outputs, strict=True):
        shape = binding.shape(tensor.pattern)
        if shape != value.shape:
            raise RunError(f"its result has shape {list(value.shape)}, the signature says {list(shape)}")


def _golden(
    package: OpPackage, signature: Signature, stored: Sequence[Array], types: Types, expected: Expected
) -> Expected:
    """The golden result in the place of the reference's; the two must agree within the bound."""
    for name, found in _compare_outputs(package, signature, types, stored, expected):
        if not found.is_right:
            raise RunError(f"the golden result contradicts reference.py: {name} {found.detail}")
    exact = (array if array.dtype.kind in "iub" else array.astype(np.float64) for array in stored)
    return Expected(tuple(exact), expected.scale)


def _judge(
    package: OpPackage, signature: Signature, kernel: Kernel, case: Case, outcome: RunOutcome, expected: Expected
) -> CaseResult:
    match outcome:
        case Stopped(TimedOut()):
            return CaseResult(case, "timed_out", str(outcome))
        case Stopped():
            return CaseResult(case, "crashed", str(outcome))
        case Reported(message):
            return CaseResult(case, "reported_error", message)
        case Ran(_, faults, _) if faults:
            return CaseResult(case, faults[0].kind, str(faults[0]))
        case Ran(outputs, _, repeats):
            comparison: Comparison | None = None
            for name, found in _compare_outputs(package, signature, kernel.key.dtypes, outputs, expected):
                if not found.is_right:
                    return CaseResult(case, "wrong_result", f"{name} {found.detail}", found)
                comparison = comparison or found
            if not repeats and package.manifest.determinism.grade != "R2":
                return CaseResult(case, "not_repeatable", "two runs of the same call gave different bits", comparison)
            return CaseResult(case, "passed", "", comparison)
        case _:
            assert_never(outcome)


def _compare_outputs(
    package: OpPackage, signature: Signature, types: Types, actual: Sequence[Array], expected: Expected
) -> Iterator[tuple[str, Comparison]]:
    """Each output's name and how it compares; the error scale is that of the first."""
    scales = (expected.scale, *[None] * (len(actual) - 1))
    for tensor, got, want, scale in zip(signature.outputs, actual, expected.outputs, scales, strict=True):
        yield tensor.name, compare(got, want, tensor.dtype(types), package.manifest.accuracy, scale)


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
