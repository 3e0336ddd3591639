"""Build and evaluate the kernels of a package: what `hfreg test` and the pipeline share."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from hfreg.ci.plan import plan
from hfreg.errors import BuildError
from hfreg.evaluation.evaluate import Failure, KernelEvaluation
from hfreg.evaluation.store import evaluate_or_recall
from hfreg.kernels.artifact import Kernel, KernelKey
from hfreg.kernels.build import Failed, build_kernel
from hfreg.kernels.targets import Target, target
from hfreg.ops.package import OpPackage
from hfreg.ops.reference import Reference

StartProgress = Callable[[int], Callable[[str], None]]
"""Takes the number of steps; what it gives is called with a label when a step is done."""


@dataclass(frozen=True)
class Finding:
    """What was found out about one kernel."""

    kernel: Kernel | Failed
    evaluation: KernelEvaluation | None
    """None where it could not be built, or not be run here."""
    reason: str = ""
    """Why it could not."""

    @property
    def key(self) -> KernelKey:
        return self.kernel.key

    @property
    def verdict(self) -> str:
        if isinstance(self.kernel, Failed):
            return "not_built"
        return self.evaluation.verdict if self.evaluation else "not_run"

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against it; a kernel that cannot run here has nothing against it."""
        return self.verdict in ("passed", "not_run")

    @property
    def cases(self) -> int:
        return sum(result.cases for result in self.evaluation.data_sets) if self.evaluation else 0

    @property
    def max_ulp(self) -> float:
        return max((r.max_ulp for r in self.evaluation.data_sets), default=0.0) if self.evaluation else 0.0

    @property
    def max_error_ratio(self) -> float:
        return max((r.max_error_ratio for r in self.evaluation.data_sets), default=0.0) if self.evaluation else 0.0

    @property
    def failures(self) -> list[Failure]:
        return list(self.evaluation.failures) if self.evaluation else []

    def as_json(self) -> dict[str, Any]:
        from hfreg.passports.issue import KernelFindings, kernel_record

        record = kernel_record(KernelFindings(self.kernel, self.evaluation))
        return {**record.model_dump(mode="json", by_alias=True), "target": self.key.target, "reason": self.reason}


def examine(
    package: OpPackage,
    targets: Sequence[Target],
    languages: Sequence[str],
    *,
    jobs: int,
    progress: StartProgress = lambda _: lambda _: None,
) -> list[Finding]:
    """Build and evaluate every kernel of a package, several at a time.

    Args:
        package: the op package.
        targets: for which targets.
        languages: in which kernel languages.
        jobs: how many kernels at a time.
        progress: told of every kernel that is done.

    Raises:
        MachineError: a tool is missing, or the runner does not start.
    """
    keys = plan(package, targets, languages)
    nonce = secrets.token_hex(16)
    step = progress(len(keys))

    def work(key: KernelKey) -> Finding:
        finding = _examine(package, key, reference, nonce)
        step(f"{key.slug} {finding.verdict}")
        return finding

    with Reference(package) as reference, ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(work, keys))


def _examine(package: OpPackage, key: KernelKey, reference: Reference, nonce: str) -> Finding:
    try:
        kernel = build_kernel(package, key)
    except BuildError as error:
        return Finding(Failed(key, error), None, str(error))
    if reason := target(key.target).why_not_here():
        return Finding(kernel, None, f"unsupported here: {reason}")
    return Finding(kernel, evaluate_or_recall(package, kernel, reference, nonce=nonce))
