"""The pytest plugin: an op package is a test suite.

`pytest ops/softmax` collects every golden case and every accuracy data set of every kernel from `op.toml`; the usual
`-k`, `-x` and `-n` work. With `--hfreg-bench` it collects the workloads instead, and runs them through
pytest-benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hfreg.evaluation.performance import Session, Subject
    from hfreg.kernels.artifact import Kernel, KernelKey
    from hfreg.ops.manifest import Workload
    from hfreg.ops.package import OpPackage

DEFAULT_THREADS = "1,2"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the plugin."""
    group = parser.getgroup("hfreg", "op packages")
    group.addoption(
        "--hfreg-target", action="append", default=[], metavar="TARGET", help="a target to test (default: all that run)"
    )
    group.addoption("--hfreg-language", default=None, metavar="LANGUAGE", help="only kernels in this language")
    group.addoption("--hfreg-types", default=None, metavar="TYPES", help="only kernels of these types (float32)")
    group.addoption("--hfreg-bench", action="store_true", help="measure the workloads instead of testing")
    group.addoption(
        "--hfreg-threads", default=DEFAULT_THREADS, metavar="N,N", help="numbers of threads to measure with"
    )
    group.addoption(
        "--hfreg-no-class-schedules", action="store_true", help="do not measure hand schedules against class schedules"
    )
    group.addoption("--hfreg-budget", type=float, default=0.4, metavar="SECONDS", help="time for one measurement")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect `op.toml` files."""
    if file_path.name == "op.toml" and not file_path.parent.name.startswith("_"):
        return OpFile.from_parent(parent, path=file_path)
    return None


class OpFile(pytest.File):
    """An op package."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """One collector for each kernel that can run here."""
        from hfreg.ci.plan import chosen_languages, chosen_targets, plan
        from hfreg.errors import HfregError
        from hfreg.ops.package import load_package

        try:
            package = load_package(self.path.parent)
            targets = chosen_targets(self.config.getoption("--hfreg-target"))
            languages = chosen_languages(package, self.config.getoption("--hfreg-language"))
        except HfregError as error:
            raise self.CollectError(str(error)) from error
        is_bench = self.config.getoption("--hfreg-bench")
        for goal in targets:
            if goal.why_not_here() or (is_bench and goal.run is not None and goal.run.is_emulated):
                continue
            for key in plan(package, [goal], languages):
                if self.config.getoption("--hfreg-types") not in (None, key.type_slug):
                    continue
                kind = KernelBenchmarks if is_bench else KernelTests
                yield kind.from_parent(self, name=key.slug.removeprefix(f"{key.operator}."), package=package, key=key)


class _KernelCollector(pytest.Collector):
    """What belongs to one kernel; it is built when its first test runs."""

    def __init__(self, *, package: OpPackage, key: KernelKey, **rest: Any) -> None:
        super().__init__(**rest)
        self.package, self.key = package, key
        self.signature = package.signature(key.attribute_class)
        self._kernel: Kernel | None = None

    @property
    def kernel(self) -> Kernel:
        from hfreg.kernels.build import build_kernel

        if self._kernel is None:
            self._kernel = build_kernel(self.package, self.key)
        return self._kernel


class KernelTests(_KernelCollector):
    """The golden cases and the data sets of a kernel."""

    def collect(self) -> Iterator[pytest.Item]:
        """One item for each golden case, one for each data set."""
        from hfreg.evaluation.datasets import golden_cases
        from hfreg.evaluation.suite import DATA_SETS

        for case in golden_cases(self.package, self.signature, self.key.dtypes):
            yield CaseItem.from_parent(self, name=case.label, data_set="D0", case_name=case.name)
        for data_set in DATA_SETS[1:]:
            yield CaseItem.from_parent(self, name=data_set, data_set=data_set, case_name=None)


class CaseItem(pytest.Item):
    """A golden case, or all cases of a data set."""

    parent: KernelTests

    def __init__(self, *, data_set: str, case_name: str | None, **rest: Any) -> None:
        super().__init__(**rest)
        self._data_set, self._case_name = data_set, case_name

    def runtest(self) -> None:
        """Run the cases in a runner process; fail with the verdict of the first ones that are not right."""
        import secrets

        from hfreg.digests import sha256
        from hfreg.evaluation.evaluate import run_cases
        from hfreg.ops.reference import Reference

        kernel = self.parent.kernel
        seed = sha256(f"{kernel.digest}/{secrets.token_hex(8)}".encode())
        with Reference(self.parent.package) as reference:
            ran = run_cases(
                self.parent.package, kernel, reference, seed=seed, data_sets=[self._data_set], only=self._case_name
            )
            results = list(ran)
        failed = [result for result in results if result.verdict != "passed"]
        if failed:
            lines = [f"{result.case.label}: {result.verdict}: {result.detail}" for result in failed[:5]]
            raise CasesFailedError(f"{len(failed)} of {len(results)} cases failed (seed {seed})\n" + "\n".join(lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A failed case needs no traceback."""
        if isinstance(excinfo.value, CasesFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the test is defined, and its name."""
        return self.path, None, f"{self.parent.key.slug}: {self.name}"


class CasesFailedError(AssertionError):
    """Cases that did not pass."""


class KernelBenchmarks(_KernelCollector):
    """The workloads of a kernel, on each number of threads."""

    obj = None

    def collect(self) -> Iterator[pytest.Item]:
        """One benchmark for each workload that this kernel serves."""
        from hfreg.evaluation.datasets.workloads import serving_class

        for workload in self.package.manifest.workloads:
            if serving_class(self.package.manifest, workload) != self.signature.class_name:
                continue
            for threads in map(int, self.config.getoption("--hfreg-threads").split(",")):
                yield pytest.Function.from_parent(
                    self,
                    name=f"{workload.name}-{threads}",
                    callobj=_benchmark_function(self, workload.name, threads),
                )


def _benchmark_function(owner: KernelBenchmarks, workload: str, threads: int) -> Callable[[Any], None]:
    def run(benchmark: Any) -> None:
        _run_benchmark(owner, workload, threads, benchmark)

    return run


def _run_benchmark(owner: KernelBenchmarks, workload_name: str, threads: int, benchmark: Any) -> None:
    """Measure a workload in rounds of peer and kernel; the record goes into the benchmark's extra information."""
    from hfreg.evaluation.performance import MEMORY_BYTES, Paired, prepare, session, statistics

    if benchmark.disabled:
        pytest.skip("pytest-benchmark is disabled: by --benchmark-disable, or because xdist runs tests side by side")
    here = session(owner.key.target, threads)
    workload = next(w for w in owner.package.manifest.workloads if w.name == workload_name)
    subject = prepare(owner.package, owner.kernel, workload, here.runtime)
    paired = Paired(subject)
    rounds = paired.rounds(owner.config.getoption("--hfreg-budget"))
    benchmark.pedantic(paired.target, setup=paired.set_up, rounds=rounds, iterations=1, warmup_rounds=0)
    paired.check()
    own_ns = [seconds * 1e9 / paired.samples.calls for seconds in benchmark.stats.stats.data]
    benchmark.extra_info["hfreg"] = {
        "kernel": owner.key.as_json(),
        "workload": workload.name,
        "shapes": workload.shapes,
        "attributes": workload.attributes,
        "threads": threads,
        "rounds": rounds,
        "peer": subject.peer.name if subject.peer else "",
        "peaks": {"gflop_s": here.gflop_s, "bandwidth_gb_s": here.bandwidth_gb_s(MEMORY_BYTES)},
        **statistics(subject, own_ns, paired.samples.peer_ns, here),
        **_efficiency(owner, workload, subject, here),
    }


def _efficiency(owner: KernelBenchmarks, workload: Workload, hand: Subject, here: Session) -> dict[str, float]:
    """η, for kernels with a hand schedule: once for each workload, on one thread, in the first of the types."""
    from hfreg.evaluation.performance import against_class_schedule, prepare
    from hfreg.kernels.artifact import type_tuples
    from hfreg.kernels.build import build_kernel

    if owner.config.getoption("--hfreg-no-class-schedules"):
        return {}
    is_first = owner.key.types == type_tuples(owner.package.manifest)[0]
    if owner.kernel.notes.get("schedule") != "hand" or here.threads != 1 or not is_first:
        return {}
    kernel = build_kernel(owner.package, owner.key, use_class_schedule=True)
    by_class = prepare(owner.package, kernel, workload, here.runtime)
    return against_class_schedule(hand, by_class, budget_s=owner.config.getoption("--hfreg-budget") / 2)
