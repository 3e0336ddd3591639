"""The pipeline: build, evaluate, measure, sign, publish. Publishing is the last step, and one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from hfreg.ci.bench import FULL, BenchRecord, Effort, run_benchmarks
from hfreg.ci.examine import Finding, StartProgress, build, examine
from hfreg.digests import sha256
from hfreg.errors import RegistryError
from hfreg.evaluation.environment import MachineDescription, describe_machine
from hfreg.evaluation.store import evaluator_digest
from hfreg.kernels.artifact import SOURCE_TITLE, Kernel, runtime_title
from hfreg.kernels.build import build_runtime, build_tools
from hfreg.kernels.targets import Target
from hfreg.ops.check import check_package
from hfreg.ops.package import OpPackage
from hfreg.passports.issue import KernelFindings, Signer, TargetFindings, issue_passport
from hfreg.passports.predicates.verification import Peaks, PerformanceRecord
from hfreg.registry.artifact import make_artifact, source_archive
from hfreg.registry.registry import PassportBundles, Registry, check_same

Clock = Callable[[], datetime]


@dataclass(frozen=True)
class Publication:
    """What came of publishing a package."""

    package: OpPackage
    status: Literal["published", "already there"]
    digest: str
    """The digest of the artifact's manifest."""
    findings: tuple[Finding, ...]

    @property
    def is_good(self) -> bool:
        """Whether every kernel that ran passed."""
        return all(finding.is_good for finding in self.findings)


@dataclass(frozen=True)
class Pipeline:
    """What publishing needs of the outside."""

    registry: Registry
    signer: Signer
    jobs: int = 1
    effort: Effort | None = FULL
    """How much to measure; None: no times are taken."""
    start_progress: Callable[[str], StartProgress] = lambda _: lambda _: lambda _: None
    clock: Clock = lambda: datetime.now(UTC)

    def publish(self, package: OpPackage, targets: Sequence[Target]) -> Publication:
        """Take a package through the pipeline.

        Raises:
            ManifestError: a golden case or a workload is no call of the operator.
            RegistryError: the version is published with other content, or no kernel passed.
        """
        check_package(package)
        started = self.clock()
        built = build(
            package, targets, package.languages, jobs=self.jobs,
            progress=self.start_progress(f"building {package.manifest.reference}"),
        )  # fmt: skip
        kernels = [kernel for kernel in built if isinstance(kernel, Kernel)]
        runtimes = {goal.name: build_runtime(goal) for goal in targets if _is_native(goal)}
        artifact = make_artifact(package, kernels, runtimes)
        existing = self.registry.published(package.manifest.name, package.manifest.version)
        if existing is not None:
            check_same(existing, artifact)
            return Publication(package, "already there", existing.entry.digest, ())
        findings = examine(
            package, built, jobs=self.jobs, progress=self.start_progress(f"testing {package.manifest.reference}")
        )
        if not any(finding.verdict == "passed" for finding in findings):
            raise RegistryError(
                "no kernel passed, so there is nothing to publish",
                where=package.manifest.reference,
                hint="`hfreg test` shows what is wrong",
            )
        records = self._measure(package, targets, self.effort) if self.effort else []
        passports = [
            PassportBundles(
                goal.name, issue_passport(self._findings(package, goal, findings, records, started), self.signer)
            )
            for goal in targets
        ]
        status = self.registry.publish(artifact, passports)
        return Publication(package, status, sha256(artifact.manifest.dump()), tuple(findings))

    def _measure(self, package: OpPackage, targets: Sequence[Target], effort: Effort) -> list[BenchRecord]:
        goals = [goal for goal in targets if _is_native(goal) and not goal.why_not_here()]
        if not effort.all_targets:
            goals = sorted(goals, key=lambda goal: -goal.order)[:1]
        step = self.start_progress(f"measuring {package.manifest.reference}")(len(goals))
        records: list[BenchRecord] = []
        for goal in goals:
            records += run_benchmarks(package, goal.name, effort)
            step(goal.name)
        return records

    def _findings(
        self,
        package: OpPackage,
        goal: Target,
        findings: Sequence[Finding],
        records: Sequence[BenchRecord],
        started: datetime,
    ) -> TargetFindings:
        artifacts = {SOURCE_TITLE: sha256(source_archive(package))}
        if _is_native(goal):
            artifacts[runtime_title(goal.name)] = sha256(build_runtime(goal))
        here = [record for record in records if record.key.target == goal.name]
        own = [finding for finding in findings if finding.key.target == goal.name]
        return TargetFindings(
            package=package,
            target=goal,
            kernels=tuple(
                KernelFindings(f.kernel, f.evaluation, tuple(performance_record(r) for r in here if r.key == f.key))
                for f in own
            ),
            artifacts=artifacts,
            tools=tuple(build_tools(package.languages)),
            evaluator=evaluator_digest(),
            machine=self._machine(),
            started=started,
            finished=self.clock(),
            peaks=tuple(peaks_of(here)),
            reason=next((f.reason for f in own if f.verdict == "not_run"), ""),
        )

    def _machine(self) -> MachineDescription:
        return describe_machine()


def _is_native(goal: Target) -> bool:
    return goal.run is not None and goal.run.how == "native"


def performance_record(record: BenchRecord) -> PerformanceRecord:
    """A measurement as a passport holds it."""
    figures = {name: _rounded(value) for name, value in record.figures.items()}
    return PerformanceRecord(
        workload=record.workload,
        shapes=record.shapes,
        attributes=record.attributes,
        threads=record.threads,
        rounds=record.rounds,
        peer=record.peer,
        **figures,  # type: ignore[arg-type]
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def peaks_of(records: Sequence[BenchRecord]) -> list[Peaks]:
    """The machine's peaks, one for each number of threads."""
    found = {record.threads: record.peaks for record in records}
    return [
        Peaks(
            threads=threads,
            gflop_s=float(f"{peaks['gflop_s']:.4g}"),
            bandwidth_gb_s=float(f"{peaks['bandwidth_gb_s']:.4g}"),
        )
        for threads, peaks in sorted(found.items())
    ]
