"""Cells of the compatibility matrix, derived from verified passports.

`derive` is a pure function: the same passports and targets give the same cells, on any machine, at any time. Nothing
that is not in a verified passport makes a cell better than `untested`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from hfreg.kernels.artifact import type_tuples
from hfreg.kernels.targets import Target
from hfreg.ops.manifest import Manifest
from hfreg.passports.keys import TrustedKeys
from hfreg.passports.passport import Passport
from hfreg.passports.predicates.verification import KernelRecord
from hfreg.registry.passports import verified_passports
from hfreg.registry.registry import OpVersion

State = Literal["verified", "partial", "failed", "unsupported", "untested", "stale", "yanked", "planned"]
"""`partial` is only ever the state of a group of cells."""

STATES: tuple[State, ...] = (
    "verified",
    "partial",
    "failed",
    "unsupported",
    "untested",
    "stale",
    "yanked",
    "planned",
)


@dataclass(frozen=True, slots=True)
class CellKernel:
    """A kernel that could serve a cell."""

    name: str
    digest: str
    """Empty where it could not be built."""
    language: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known about one operator version, for one combination of types, attribute class and target."""

    operator: str
    version: str
    types: tuple[tuple[str, str], ...]
    attribute_class: str
    target: str
    state: State
    reason: str = ""
    """Why it is not verified."""
    kernels: tuple[CellKernel, ...] = ()
    """The kernels for this cell, the one that serves it first."""
    evidence: tuple[str, ...] = ()
    """The digests of the signed statements that it follows from."""
    signers: tuple[str, ...] = ()
    is_self_attested: bool = False
    """Whether only this machine's own key vouches for it."""
    measured_on: str = ""
    """When its evidence was complete, UTC."""

    @property
    def serving(self) -> CellKernel | None:
        """The kernel that serves the cell; None unless it is verified."""
        return self.kernels[0] if self.state == "verified" else None

    def as_json(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "version": self.version,
            "types": dict(self.types),
            "attributeClass": self.attribute_class,
            "target": self.target,
            "state": self.state,
            "reason": self.reason,
            "kernels": [
                {"name": k.name, "digest": k.digest, "language": k.language, "verdict": k.verdict} for k in self.kernels
            ],
            "evidence": list(self.evidence),
            "signers": list(self.signers),
            "selfAttested": self.is_self_attested,
            "measuredOn": self.measured_on,
        }


@dataclass(frozen=True)
class VersionEvidence:
    """An op version with its verified passports."""

    manifest: Manifest
    passports: Mapping[str, Passport]
    """By target."""

    @classmethod
    def of(cls, version: OpVersion, trusted: TrustedKeys) -> Self:
        """What is known of a published version, all of it signed.

        Raises:
            RegistryError: the registry is damaged.
            VerificationError: a passport does not verify.
        """
        passports = {passport.target: passport for passport in verified_passports(version, trusted)}
        return cls(version.op_manifest, passports)

    @property
    def reference(self) -> str:
        return self.manifest.reference


def derive(versions: Iterable[VersionEvidence], targets: Sequence[Target]) -> list[Cell]:
    """The cells of all versions on all targets, in one order."""
    cells = [
        _cell(version, types, attribute_class.name, target)
        for version in versions
        for types in type_tuples(version.manifest)
        for attribute_class in version.manifest.classes
        for target in targets
    ]
    return sorted(cells, key=lambda c: (c.operator, c.version, c.attribute_class, c.types, c.target))


def _cell(version: VersionEvidence, types: tuple[tuple[str, str], ...], attribute_class: str, target: Target) -> Cell:
    def cell(state: State, reason: str, **fields: Any) -> Cell:
        name, number = version.manifest.name, version.manifest.version
        return Cell(name, number, types, attribute_class, target.name, state, reason, **fields)

    if not target.is_available:
        return cell("planned", f"the target is {target.maturity}")
    passport = version.passports.get(target.name)
    if passport is None:
        return cell("untested", "published without kernels for this target")
    records = [
        record
        for record in passport.verification.kernels
        if tuple(sorted(record.types.items())) == types and record.attribute_class == attribute_class
    ]
    state, reason = _judge(records, passport)
    ordered = sorted(records, key=lambda record: (record.verdict != "passed", _pace(record)))
    return cell(
        state,
        reason,
        kernels=tuple(CellKernel(r.name, r.digest or "", r.language, r.verdict) for r in ordered),
        evidence=tuple(sorted(statement.digest for statement in passport.statements)),
        signers=passport.signers,
        is_self_attested=passport.is_self_attested,
        measured_on=passport.verification.finished_on,
    )


def _pace(record: KernelRecord) -> float:
    """How long a kernel takes: the geometric mean of its times on one thread. Not measured is slower than measured."""
    times = [entry.median_ns for entry in record.performance if entry.threads == 1 and entry.median_ns > 0]
    return statistics.geometric_mean(times) if times else math.inf


def _judge(records: Sequence[KernelRecord], passport: Passport) -> tuple[State, str]:
    """The state of a cell: one kernel that passed is enough, since the compiler takes that one."""
    verdicts = {record.verdict for record in records}
    if not records:
        return "unsupported", "the package has no kernel for it"
    if "passed" in verdicts:
        return "verified", ""
    if verdicts == {"not_run"}:
        return "untested", passport.verification.reason or "the machine that signed could not run it"
    worst = next(record for record in records if record.verdict not in ("passed", "not_run"))
    first = next((f for data_set in worst.data_sets for f in data_set.failures), None)
    return "failed", worst.detail or (f"{first.case}: {first.verdict}: {first.detail}" if first else worst.verdict)


def summarize(cells: Sequence[Cell]) -> State:
    """The state of a group of cells: `partial` where some are verified and some are not, `untested` where none is."""
    states = {cell.state for cell in cells}
    if len(states) == 1:
        return states.pop()
    if "verified" in states:
        return "partial"
    return next((state for state in STATES if state in states), "untested")
