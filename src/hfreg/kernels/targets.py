"""Targets: the hardware that kernels are built for, described by files in `kernels/targets/`."""

from __future__ import annotations

import platform
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hfreg.errors import MachineError, UsageError
from hfreg.resources import root_folder

Maturity = Literal["available", "joint validation", "planned"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)


class Run(_Model):
    """How kernels run on a machine that hfreg is on."""

    how: Literal["native", "wasmtime"]
    cpu_features: list[str] = []
    """Flags of /proc/cpuinfo that the processor must have."""
    is_emulated: bool = False
    """Accuracy and safety of an emulated run count; its times do not."""


class Build(_Model):
    """What the toolchain is told."""

    format: Literal["elf", "wasm"]
    halide: str
    """Halide's target string."""
    zig_target: str
    zig_cpu: str


class Schedule(_Model):
    """What schedules need to know of the processor."""

    vector_bytes: int
    vector_registers: int
    has_float16: bool
    """Whether instructions convert float16 from and to float32."""


class Target(_Model):
    """One target."""

    name: str
    summary: str
    maturity: Maturity
    architecture: str = ""
    order: int = 0
    """Where several targets run on one machine, the one with the highest order serves."""
    run: Run | None = None
    build: Build | None = None
    schedule: Schedule | None = None

    @property
    def is_available(self) -> bool:
        return self.maturity == "available"

    def why_not_here(self) -> str:
        """Why its kernels cannot run on this machine; empty where they can."""
        if self.run is None:
            return f"{self.name} is {self.maturity}"
        if self.run.how != "native":
            return ""
        if platform.machine() != self.architecture:
            return f"this machine is {platform.machine()}, not {self.architecture}"
        missing = [feature for feature in self.run.cpu_features if feature not in cpu_flags()]
        return f"this processor lacks {', '.join(missing)}" if missing else ""


@cache
def cpu_flags() -> frozenset[str]:
    """The features that the processor and the kernel offer, as /proc/cpuinfo names them."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    line = next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")
    return frozenset(line.partition(":")[2].split())


@cache
def targets() -> dict[str, Target]:
    """All targets, by name.

    Raises:
        MachineError: a description is not valid.
    """
    found: dict[str, Target] = {}
    for path in sorted((root_folder("kernels") / "targets").glob("*.toml")):
        try:
            description = Target.model_validate(tomllib.loads(path.read_text()))
        except (ValidationError, tomllib.TOMLDecodeError) as error:
            raise MachineError(f"not a target description: {error}", where=str(path)) from error
        found[description.name] = description
    return found


def target(name: str) -> Target:
    """The target of that name.

    Raises:
        UsageError: there is none.
    """
    try:
        return targets()[name]
    except KeyError:
        raise UsageError(f"unknown target {name!r}", hint="known targets: " + ", ".join(targets())) from None


def buildable_targets() -> list[Target]:
    """The targets that kernels are built for, best first."""
    return sorted((t for t in targets().values() if t.build), key=lambda t: (-t.order, t.name))


def host_targets() -> list[Target]:
    """The targets that run natively on this machine, best first."""
    return [t for t in buildable_targets() if t.run and t.run.how == "native" and not t.why_not_here()]
