"""`hfreg.load`: resolve, verify, and load from the verified bytes."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from types import NoneType

from hfreg.digests import sha256, short
from hfreg.errors import RunError, UsageError, VerificationError
from hfreg.kernels import abi
from hfreg.kernels.artifact import runtime_title
from hfreg.kernels.host import HostKernel
from hfreg.kernels.targets import Target, host_targets, target, targets
from hfreg.loading.operator import LoadedOperator
from hfreg.matrix.cells import Cell, VersionEvidence, derive
from hfreg.passports.keys import TrustedKeys, trusted_keys
from hfreg.registry.registry import OpVersion, Registry
from hfreg.versions import Reference

MAX_THREADS = 1024
_runtimes: dict[tuple[str, int], abi.Runtime] = {}
_runtimes_lock = threading.Lock()


def load(
    reference: str,
    *,
    registry: Path | str | None = None,
    target: str | None = None,
    language: str | None = None,
    threads: int | None = None,
    trusted: TrustedKeys | None = None,
) -> LoadedOperator:
    """Load an operator whose kernels are verified.

    Args:
        reference: `name`, `name@1.2.0`, `name@^1` or `name@~1.2`.
        registry: the registry's folder; by default `$HFREG_REGISTRY`, or hfreg's data folder.
        target: the target's name; by default the best one that this machine runs and that has verified kernels.
        language: the kernel language; by default that of the fastest kernel that passed.
        threads: threads that a call may use, the caller's included, from 1 to 1024; by default `$HFREG_NUM_THREADS`,
            or all CPUs.
        trusted: the keys that count; by default this machine's own and those in the folder `trusted/`.

    Raises:
        UsageError: an argument is not of its kind; the reference, the target or the language is unknown; there is no
            such registry.
        RegistryError: the registry is damaged.
        VerificationError: a passport does not verify.
        RunError: there is no verified kernel for this machine.
    """
    for name, value in (("reference", reference), ("target", target or ""), ("language", language or "")):
        if not isinstance(value, str):
            raise UsageError(f"is {value!r}, expected text", where=name)
    if not isinstance(registry, (str, os.PathLike, NoneType)):
        raise UsageError(f"is {registry!r}, expected a path", where="registry")
    count = _threads(threads)
    version = Registry.open(Path(registry) if registry else None).resolve(Reference.parse(reference))
    evidence = VersionEvidence.of(version, trusted_keys() if trusted is None else trusted)
    manifest, cells = evidence.manifest, derive([evidence], list(targets().values()))
    goal = _choose_target(version, cells, target)
    runtime = _runtime(version, goal, count)
    serving = {(c.types, c.attribute_class): c for c in cells if c.target == goal.name}

    def load_kernel(types: tuple[tuple[str, str], ...], attribute_class: str) -> HostKernel:
        name, digest = _choose_kernel(version, serving[types, attribute_class], language)
        return HostKernel(_verified_layer(version, name, digest), name, runtime)

    if language is not None and language not in ("halide", *manifest.languages):
        known = ", ".join(("halide", *manifest.languages))
        raise UsageError(f"{version.reference} has no kernels in the language {language!r}", hint=f"it has: {known}")
    return LoadedOperator(manifest, goal.name, load_kernel)


def _threads(wanted: int | None) -> int:
    """How many threads a call may use: the argument, the variable, or the CPUs of this process."""
    where, value = "threads", wanted
    if value is None:
        where = "HFREG_NUM_THREADS"
        text = os.environ.get(where, "")
        if not text:
            return min(len(os.sched_getaffinity(0)), MAX_THREADS)
        value = int(text) if re.fullmatch("[0-9]{1,9}", text) else -1
    if type(value) is not int or not 1 <= value <= MAX_THREADS:
        raise UsageError(f"expected a number from 1 to {MAX_THREADS}", where=where)
    return value


def _choose_target(version: OpVersion, cells: list[Cell], name: str | None) -> Target:
    """The target that is asked for, or the best one of this machine with a verified kernel."""
    if name is not None:
        wanted = target(name)
        if reason := wanted.why_not_here():
            raise RunError(f"kernels for {name} cannot run here: {reason}", where=version.reference)
        if wanted.run is None or wanted.run.how != "native":
            raise RunError(f"kernels for {name} cannot be loaded into this process", where=version.reference)
        candidates = [wanted]
    else:
        candidates = host_targets()
    for candidate in candidates:
        if any(cell.target == candidate.name and cell.state == "verified" for cell in cells):
            return candidate
    names = [candidate.name for candidate in candidates]
    reasons = {cell.reason for cell in cells if cell.target in names}
    raise RunError(
        f"has no verified kernel for {', '.join(names) or 'this machine'}",
        where=version.reference,
        hint="; ".join(sorted(filter(None, reasons))),
    )


def _choose_kernel(version: OpVersion, cell: Cell, language: str | None) -> tuple[str, str]:
    """Name and digest of the kernel that serves a cell."""
    for kernel in cell.kernels:
        if kernel.verdict == "passed" and language in (None, kernel.language):
            return kernel.name, kernel.digest
    types = ", ".join(name for _, name in cell.types)
    what = f"{types}, class {cell.attribute_class}, on {cell.target}" + (f", in {language}" if language else "")
    verdicts = "; ".join(f"{kernel.language}: {kernel.verdict}" for kernel in cell.kernels)
    raise RunError(f"has no verified kernel for {what}", where=version.reference, hint=verdicts or cell.reason)


def _verified_layer(version: OpVersion, title: str, digest: str) -> bytes:
    """A layer whose bytes are the ones that the passport vouches for."""
    content = version.layer(title)
    if sha256(content) != digest:
        raise VerificationError(
            f"{title} is {short(sha256(content))}, the passport is about {short(digest)}", where=version.reference
        )
    return content


def _runtime(version: OpVersion, goal: Target, threads: int) -> abi.Runtime:
    """The host runtime, verified like a kernel; one for all operators of this process with the same bytes."""
    digest = version.config.runtimes.get(goal.name, "")
    with _runtimes_lock:
        key = (digest, threads)
        if key not in _runtimes:
            content = _verified_layer(version, runtime_title(goal.name), digest)
            _runtimes[key] = abi.Runtime(abi.load_library(content, "hfreg-runtime"), threads)
        return _runtimes[key]
