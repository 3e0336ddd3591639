"""What is known of the machine that a measurement ran on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import dataclass
from pathlib import Path

_TOOLS = ("hfreg", "numpy", "halide", "ziglang", "onnxruntime", "wasmtime")


@dataclass(frozen=True, slots=True)
class MachineDescription:
    """A machine, as it is now."""

    cpu_model: str
    architecture: str
    logical_cpus: int
    memory_gb: float
    operating_system: str
    governor: str
    load_average: float
    tools: dict[str, str]


def describe_machine() -> MachineDescription:
    """The machine that this process runs on."""
    return MachineDescription(
        cpu_model=_cpu_model(),
        architecture=platform.machine(),
        logical_cpus=len(os.sched_getaffinity(0)),
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        operating_system=f"{platform.system()} {platform.release()}",
        governor=_first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) or "unknown",
        load_average=round(os.getloadavg()[0], 2),
        tools={"python": platform.python_version(), **_versions()},
    )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _first_line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _versions() -> dict[str, str]:
    found = {}
    for name in _TOOLS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
