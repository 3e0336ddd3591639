"""Evaluate a kernel: run its cases in a runner process, judge each, and let observers learn from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from hfreg.digests import sha256
from hfreg.errors import RunError
from hfreg.evaluation.cases import Case
from hfreg.evaluation.judge import expect, judge
from hfreg.evaluation.results import CaseResult, KernelEvaluation, summarize
from hfreg.evaluation.suite import ANY_CASE, DATA_SETS, make_cases, necessary_cases
from hfreg.kernels.artifact import Kernel
from hfreg.kernels.runner.client import Call, KernelRunner
from hfreg.kernels.targets import target
from hfreg.ops.binding import bind
from hfreg.ops.package import OpPackage
from hfreg.ops.reference import Reference
from hfreg.ops.signature import Signature

MAX_STOPS = 3
"""After so many crashes and timeouts nobody needs to wait for more of them."""
THREADS = 2
"""Threads that a native kernel's calls run on: what its tasks share by mistake shows in the results."""


class Observer(Protocol):
    """Learns from all cases of a kernel, outputs and expected values included."""

    def observe(self, result: CaseResult) -> None:
        """Told of every case, in order."""


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
    observers: tuple[Observer, ...] = ()
    results = []
    for result in run_cases(package, kernel, reference, seed=seed, data_sets=data_sets):
        for observer in observers:
            observer.observe(result)
        results.append(replace(result, outputs=(), expected=None))
    found = summarize(results, nonce, seed)
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
            missing = {} if only else necessary_cases(data_set, kernel)
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


def evaluate_case(
    package: OpPackage, signature: Signature, kernel: Kernel, case: Case, reference: Reference, runner: KernelRunner
) -> CaseResult:
    """Run one case and judge it."""
    types = kernel.key.dtypes
    shapes = [None if array is None else array.shape for array in case.inputs]
    binding = bind(signature, shapes, case.attributes)
    try:
        expected = expect(package, signature, case, binding, types, reference)
    except RunError as error:
        return CaseResult(case, "reference_failed", str(error))
    call = Call(
        inputs=case.inputs,
        outputs=tuple((tensor.dtype(types), binding.shape(tensor.pattern)) for tensor in signature.outputs),
        attributes=tuple(number.of(binding.attributes) for number in signature.runtime_attributes),
        names=tuple(tensor.name for tensor in signature.tensors),
        shift=case.shift,
    )
    return judge(package, signature, types, case, runner.call(call), expected)
