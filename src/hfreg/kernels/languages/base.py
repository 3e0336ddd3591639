"""The protocol of a kernel language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hfreg.kernels.artifact import KernelKey
from hfreg.kernels.targets import Target
from hfreg.kernels.toolchain import Tool
from hfreg.ops.manifest import Manifest
from hfreg.ops.signature import Signature


@dataclass(frozen=True)
class Recipe:
    """All that a language needs to compile the body of one kernel."""

    key: KernelKey
    manifest: Manifest
    signature: Signature
    target: Target
    package: Path
    """A folder with a copy of the package's files."""
    workspace: Path
    """An empty folder for what the compilation writes."""
    hash_seed: int = 0
    """PYTHONHASHSEED of child processes: the two builds of a kernel differ in it, and in the folders."""
    use_class_schedule: bool = False
    """Leave hand schedules aside, to measure what they gain."""


@dataclass(frozen=True)
class Compiled:
    """Object files that together define `hfreg_body`."""

    objects: tuple[Path, ...]
    runtime: tuple[str, ...] = ()
    """Files of `kernels/runtime/` to link as well."""
    notes: dict[str, Any] = field(default_factory=dict)


class KernelLanguage(Protocol):
    """One way to write the body of a kernel."""

    @property
    def name(self) -> str:
        """The name in manifests and on the command line."""

    def tools(self) -> Sequence[Tool]:
        """What takes part in a compilation beside zig, which links."""

    def compile(self, recipe: Recipe) -> Compiled:
        """Compile the body of one kernel.

        Raises:
            BuildError: it does not compile.
        """
