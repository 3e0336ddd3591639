"""The matrix: cells, and the answer to a compiler's question which kernel serves a node, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, get_args

from hfreg.dtypes import DTYPES
from hfreg.errors import RunError, UntrustedKeyError, UsageError
from hfreg.kernels.targets import Target, targets
from hfreg.matrix.cells import Cell, VersionEvidence, derive
from hfreg.ops.binding import PartialShape, ShapeError, select
from hfreg.ops.manifest import AttributeValue, Manifest
from hfreg.ops.signature import Signature, complete_attributes, signatures
from hfreg.passports.keys import TrustedKeys, trusted_keys
from hfreg.registry.registry import Registry
from hfreg.versions import Version

ReasonCode = Literal[
    "no-package",
    "since-version",
    "signature",
    "attribute",
    "type",
    "shape",
    "failed",
    "untested",
    "unsupported",
    "planned",
]
"""Why a candidate does not serve a node, in the order in which that is found out:

    no-package     no published package is about this operator
    since-version  the package has another version of the operator's meaning
    signature      the node uses inputs or outputs that the package does not have
    attribute      an attribute has a value that the package does not serve
    type           an element type is not served, or not known
    shape          a shape is not served, or not known
    failed         the kernels for it did not pass
    untested       nothing is known about the kernels for it
    unsupported    the package has no kernel for it
    planned        the target is not there yet
"""
_CODES: tuple[ReasonCode, ...] = get_args(ReasonCode)

UNKNOWN = "?"
"""An element type or an attribute's value that a model does not say."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a compiler asks about: a node."""

    domain: str
    operator: str
    since_version: int
    attributes: Mapping[str, AttributeValue]
    """`?` for a value that is not known."""
    types: tuple[str | None, ...]
    """The element type of each input; None for an absent one, and `?` for one that is not known."""
    shapes: tuple[PartialShape | None, ...]
    """The shape of each input, with None for extents that are not known; None for an absent input or unknown rank."""
    outputs: int = 1
    """How many outputs are used, counted up to the last one."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that does not serve, and why."""

    candidate: str
    code: ReasonCode
    detail: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The cell that serves a request, or None, and why every better candidate was rejected, the best one first."""

    cell: Cell | None
    rejected: tuple[Rejection, ...]

    @property
    def reason(self) -> Rejection | None:
        """Why nothing serves: what the candidate that got furthest was rejected for, the best one of several."""
        if self.cell:
            return None
        return max(self.rejected, key=lambda rejection: min(_CODES.index(rejection.code), _CODES.index("failed")))


class Matrix:
    """The cells of all published op versions."""

    def __init__(
        self,
        versions: Sequence[VersionEvidence],
        known_targets: Sequence[Target],
        *,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        """Make a matrix.

        Args:
            versions: the op versions, with their verified passports.
            known_targets: the targets.
            left_out: published versions whose signer is not trusted here, and what was said of each.
        """
        self.versions = list(versions)
        self.targets = list(known_targets)
        self.left_out = dict(left_out or {})

    @classmethod
    def open(cls, root: Path | None = None, *, trusted: TrustedKeys | None = None) -> Self:
        """The matrix of a registry; every passport is verified.

        Versions whose signer is not trusted here are left out.

        Raises:
            RegistryError: the registry is damaged.
            VerificationError: a passport of a trusted signer does not verify.
        """
        keys = trusted_keys() if trusted is None else trusted
        evidence: list[VersionEvidence] = []
        left_out: dict[str, str] = {}
        for version in Registry.open(root).all_versions():
            try:
                evidence.append(VersionEvidence.of(version, keys))
            except UntrustedKeyError as error:
                left_out[version.reference] = error.message
        return cls(evidence, list(targets().values()), left_out=left_out)

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells, in one order."""
        return derive(self.versions, self.targets)

    @cached_property
    def _by_key(self) -> dict[tuple[str, str, tuple[tuple[str, str], ...], str, str], Cell]:
        return {(c.operator, c.version, c.types, c.attribute_class, c.target): c for c in self.cells}

    @cached_property
    def _by_operator(self) -> dict[tuple[str, str], list[VersionEvidence]]:
        """The versions about each operator, the best one first."""
        found: dict[tuple[str, str], list[VersionEvidence]] = {}
        for version in sorted(self.versions, key=lambda version: Version(version.manifest.version).rank, reverse=True):
            operator = version.manifest.operator
            found.setdefault((operator.domain, operator.name), []).append(version)
        return found

    def resolve(self, request: Request, target: str) -> Decision:
        """Which kernel serves a node on a target.

        Raises:
            UsageError: the target is unknown.
        """
        if target not in {known.name for known in self.targets}:
            raise UsageError(f"unknown target {target!r}", hint="known: " + ", ".join(t.name for t in self.targets))
        rejected: list[Rejection] = []
        for version in self._by_operator.get((request.domain, request.operator), []):
            outcome = self._try(version.manifest, request, target)
            if isinstance(outcome, Cell):
                return Decision(outcome, tuple(rejected))
            rejected.append(outcome)
        name = f"{request.domain or 'ai.onnx'}::{request.operator}"
        return Decision(None, tuple(rejected or [Rejection(name, "no-package", "no published package has it")]))

    def _try(self, manifest: Manifest, request: Request, target: str) -> Cell | Rejection:
        def reject(code: ReasonCode, detail: str) -> Rejection:
            return Rejection(manifest.reference, code, detail)

        if request.since_version not in manifest.operator.since_versions:
            known = ", ".join(map(str, manifest.operator.since_versions))
            return reject("since-version", f"version {request.since_version} of the operator, the package has {known}")
        if problem := _signature_problem(manifest, request):
            return reject("signature", problem)
        if unknown := [name for name, value in request.attributes.items() if value == UNKNOWN]:
            return reject("attribute", f"the value of {', '.join(unknown)} is not known")
        try:
            attributes = complete_attributes(manifest, request.attributes)
        except RunError as error:
            return reject("attribute", str(error))
        types = _bind_types(manifest, request)
        if isinstance(types, str):
            return reject("type", types)
        chosen = _choose_class(signatures(manifest), request, attributes)
        if isinstance(chosen, str):
            return reject("shape", chosen)
        cell = self._by_key[manifest.name, manifest.version, types, chosen.class_name, target]
        if cell.state == "verified":
            return cell
        return reject(_STATE_CODES[cell.state], cell.reason)


_STATE_CODES: dict[str, ReasonCode] = {
    "failed": "failed",
    "untested": "untested",
    "unsupported": "unsupported",
    "planned": "planned",
}


def _signature_problem(manifest: Manifest, request: Request) -> str:
    inputs = list(manifest.inputs.items())
    if len(request.types) > len(inputs):
        return f"{len(request.types)} inputs, the package has {len(inputs)}"
    if request.outputs > len(manifest.outputs):
        return f"{request.outputs} outputs are used, the package has {len(manifest.outputs)}"
    for place, (name, tensor) in enumerate(inputs):
        is_absent = place >= len(request.types) or request.types[place] is None
        if is_absent and not tensor.optional:
            return f"the input {name!r} is missing"
    return ""


def _bind_types(manifest: Manifest, request: Request) -> tuple[tuple[str, str], ...] | str:
    """What each type variable stands for, or why that does not work."""
    bound: dict[str, str] = {}
    for (name, tensor), given in zip(manifest.inputs.items(), request.types, strict=False):
        if given is None:
            continue
        if given == UNKNOWN:
            return f"the element type of {name} is not known"
        allowed = manifest.types.get(tensor.type, [tensor.type])
        if given not in allowed:
            return f"{name} is {given}, served: {', '.join(allowed)}"
        if tensor.type in manifest.types and bound.setdefault(tensor.type, given) != given:
            return f"{name} is {given}, but another input of type {tensor.type} is {bound[tensor.type]}"
    for attribute_name, attribute in manifest.attributes.items():
        value = request.attributes.get(attribute_name)
        if attribute.type_of and isinstance(value, int) and value:
            name = next((d.name for d in DTYPES.values() if d.onnx == value), str(value))
            if bound.setdefault(attribute.type_of, name) != name or name not in manifest.types[attribute.type_of]:
                return f"{attribute_name} asks for {name}, served: {', '.join(manifest.types[attribute.type_of])}"
    for variable, names in manifest.types.items():
        bound.setdefault(variable, names[0])
    return tuple(sorted(bound.items()))


def _choose_class(candidates: Iterable[Signature], request: Request, attributes: dict[str, Any]) -> Signature | str:
    """The attribute class that serves a node, or why none does."""
    known = list(candidates)
    count = len(known[0].inputs)
    shapes = [*request.shapes, *[None] * (count - len(request.shapes))]
    for given, shape, tensor in zip(request.types, shapes, known[0].inputs, strict=False):
        if given is not None and shape is None:
            return f"the rank of {tensor.name} is not known"
    try:
        return select(known, shapes, attributes)[0]
    except ShapeError as error:
        return error.message
