"""Run the benchmarks of a package: pytest-benchmark in a child process, one at a time, nothing else beside it."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfreg.errors import MachineError, RunError
from hfreg.kernels.artifact import KernelKey, type_tuples
from hfreg.ops.package import OpPackage, copy_package
from hfreg.processes import Exited, clean_environment, run
from hfreg.resources import cache_home

TIMEOUT_S = 1800.0
_PLUGINS = ("pytest_benchmark.plugin", "hfreg.pytest_plugin")
_OPTIONS = (
    "-q",
    "--tb=short",
    "-p",
    "no:cacheprovider",
    *(word for name in _PLUGINS for word in ("-p", name)),
    "-c",
    "/dev/null",
)


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    threads: tuple[int, ...] = (1, 2)
    budget_s: float = 0.4
    """Time for one measurement."""
    all_types: bool = True
    """Else only kernels of the first of the package's element types."""
    all_targets: bool = True
    """Else only the best target that runs here."""
    against_class_schedules: bool = True
    """Whether hand schedules are measured against class schedules too."""


FULL = Effort()
EFFORTS: dict[str, Effort | None] = {
    "full": FULL,
    "quick": Effort(budget_s=0.1, all_types=False, all_targets=False, against_class_schedules=False),
    "none": None,
}


@dataclass(frozen=True)
class BenchRecord:
    """One measurement: a kernel, a workload, a number of threads. Times in nanoseconds of one call."""

    key: KernelKey
    workload: str
    shapes: dict[str, list[int]]
    attributes: dict[str, Any]
    threads: int
    rounds: int
    peer: str
    peaks: dict[str, float]
    figures: dict[str, float | None]

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> BenchRecord:
        named = ("workload", "shapes", "attributes", "threads", "rounds", "peer", "peaks")
        figures = {name: entry for name, entry in value.items() if name not in (*named, "kernel")}
        return cls(KernelKey.from_json(value["kernel"]), **{name: value[name] for name in named}, figures=figures)

    def as_json(self) -> dict[str, Any]:
        return {
            "kernel": self.key.as_json(),
            "workload": self.workload,
            "shapes": self.shapes,
            "attributes": self.attributes,
            "threads": self.threads,
            "rounds": self.rounds,
            "peer": self.peer,
            "peaks": self.peaks,
            **self.figures,
        }


def run_benchmarks(
    package: OpPackage,
    target: str,
    effort: Effort,
    *,
    language: str | None = None,
    type_slug: str | None = None,
) -> list[BenchRecord]:
    """Measure the workloads of a package on a target that runs here natively.

    Args:
        package: the op package.
        target: the target's name.
        effort: how much to measure.
        language: only kernels in this language.
        type_slug: only kernels of these element types.

    Raises:
        RunError: a measurement failed.
        MachineError: the benchmark process did not survive.
    """
    if not effort.all_types:
        type_slug = KernelKey(package.name, type_tuples(package.manifest)[0], "", target, "").type_slug
    with tempfile.TemporaryDirectory(prefix="hfreg-bench-") as name:
        folder = Path(name) / package.name
        copy_package(package.files, folder)
        results = Path(name) / "results.json"
        command = [
            sys.executable, "-P", "-s", "-m", "pytest", *_OPTIONS, f"--rootdir={name}", "--hfreg-bench",
            f"--hfreg-target={target}", f"--hfreg-threads={','.join(map(str, effort.threads))}",
            f"--hfreg-budget={effort.budget_s}", f"--benchmark-json={results}",
            *([] if effort.against_class_schedules else ["--hfreg-no-class-schedules"]),
            *([f"--hfreg-language={language}"] if language else []),
            *([f"--hfreg-types={type_slug}"] if type_slug else []), str(folder),
        ]  # fmt: skip
        environment = clean_environment(HFREG_CACHE=str(cache_home()), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        ending = run(command, timeout_s=TIMEOUT_S, cwd=Path(name), env=environment)
        if not isinstance(ending, Exited):
            raise MachineError(f"the benchmark process ended with {ending}", where=package.name)
        if ending.status == 5:  # pytest: nothing was collected, the package has no workloads
            return []
        if ending.status:
            raise RunError(f"the benchmarks failed:\n{_errors(ending)}", where=package.name)
        document = json.loads(results.read_bytes())
    return [BenchRecord.from_json(entry["extra_info"]["hfreg"]) for entry in document["benchmarks"]]


def _errors(ending: Exited) -> str:
    """What the errors say, which pytest marks with an E; or the end of all that was printed."""
    output = ending.stdout.decode(errors="replace")
    marked = [line[4:].removeprefix("hfreg.errors.") for line in output.splitlines() if line.startswith("E ")]
    return "\n".join(dict.fromkeys(marked))[:3000] or f"{output[-3000:]}{ending.stderr}"
