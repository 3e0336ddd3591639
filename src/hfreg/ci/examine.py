"""Build the kernels of a package and examine them: what `hfreg test` and the pipeline share."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from hfreg.ci.plan import plan
from hfreg.evaluation.results import Failure, KernelEvaluation
from hfreg.evaluation.store import evaluate_or_recall
from hfreg.kernels.artifact import Kernel, KernelKey
from hfreg.kernels.build import Failed, build_all
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


def build(
    package: OpPackage,
    targets: Sequence[Target],
    languages: Sequence[str],
    *,
    jobs: int,
    progress: StartProgress = lambda _: lambda _: None,
) -> list[Kernel | Failed]:
    """Build every kernel of a package, several at a time.

    Args:
        package: the op package.
        targets: for which targets.
        languages: in which kernel languages.
        jobs: how many kernels at a time.
        progress: told of every kernel that is done.

    Raises:
        MachineError: a tool is missing, or the machine ended it.
    """
    keys = plan(package, targets, languages)
    return build_all(package, keys, jobs=jobs, progress=progress(len(keys)))


def examine(
    package: OpPackage,
    built: Sequence[Kernel | Failed],
    *,
    jobs: int,
    progress: StartProgress = lambda _: lambda _: None,
) -> list[Finding]:
    """Evaluate kernels of a package, several at a time.

    Args:
        package: the op package.
        built: its kernels, as `build` gives them.
        jobs: how many kernels at a time.
        progress: told of every kernel that is done.

    Raises:
        MachineError: the runner does not start.
    """
    nonce = secrets.token_hex(16)
    step = progress(len(built))

    def work(kernel: Kernel | Failed) -> Finding:
        finding = _examine(package, kernel, reference, nonce)
        step(f"{kernel.key.slug} {finding.verdict}")
        return finding

    with Reference(package) as reference, ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(work, built))


def _examine(package: OpPackage, kernel: Kernel | Failed, reference: Reference, nonce: str) -> Finding:
    if isinstance(kernel, Failed):
        return Finding(kernel, None, str(kernel.error))
    if reason := target(kernel.key.target).why_not_here():
        return Finding(kernel, None, f"unsupported here: {reason}")
    return Finding(kernel, evaluate_or_recall(package, kernel, reference, nonce=nonce))
