"""A passport: the verified statements about one op version on one target, held against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hfreg.errors import VerificationError
from hfreg.kernels.artifact import SOURCE_TITLE, KernelKey, runtime_title
from hfreg.passports.keys import TrustedKeys
from hfreg.passports.predicates import Provenance, Verification
from hfreg.passports.predicates.verification import KernelRecord
from hfreg.passports.verifier import VerifiedStatement, match_subjects, verify_bundle


@dataclass(frozen=True)
class Passport:
    """Provenance and verification of the kernels of one op version on one target."""

    provenance: Provenance
    verification: Verification
    statements: tuple[VerifiedStatement, ...]
    """The two statements, provenance first."""

    @property
    def target(self) -> str:
        return self.verification.target.name

    @property
    def reference(self) -> str:
        return f"{self.verification.operator.name}@{self.verification.operator.version}"

    @property
    def signers(self) -> tuple[str, ...]:
        return tuple(sorted({statement.signer for statement in self.statements}))

    @property
    def is_self_attested(self) -> bool:
        return all(statement.is_self_attested for statement in self.statements)

    def kernel(self, name: str) -> KernelRecord:
        return next(record for record in self.verification.kernels if record.name == name)


def verify_passport(
    bundles: Sequence[bytes],
    trusted: TrustedKeys,
    *,
    reference: str,
    target: str,
    package: str,
    artifacts: Mapping[str, str],
) -> Passport:
    """Verify the bundles of a passport, and that they speak of the same thing as each other and as the caller.

    Args:
        bundles: the bundles' bytes, in any order.
        trusted: the keys that count.
        reference: `name@version`.
        target: the target's name.
        package: the digest of the op package.
        artifacts: the digest of every artifact of that version on that target, by name.

    Raises:
        VerificationError: a bundle does not verify, one is missing or there twice, or two things disagree.
    """
    where = f"passport of {reference} on {target}"
    verified = [verify_bundle(data, trusted, where=f"{where}, bundle {i}") for i, data in enumerate(bundles, start=1)]
    for statement in verified:
        match_subjects(statement.statement, artifacts, where=where)
    provenances = [s for s in verified if isinstance(s.predicate, Provenance)]
    verifications = [s for s in verified if isinstance(s.predicate, Verification)]
    if len(provenances) != 1 or len(verifications) != 1:
        raise VerificationError(
            f"has {len(provenances)} provenance and {len(verifications)} verification statements, expected one of each",
            where=where,
        )
    provenance, verification = provenances[0].predicate, verifications[0].predicate
    assert isinstance(provenance, Provenance) and isinstance(verification, Verification)
    _check_identity(provenance, verification, reference, target, package, where)
    _check_kernels(verification, artifacts, where)
    return Passport(provenance, verification, (provenances[0], verifications[0]))


def _check_identity(
    provenance: Provenance, verification: Verification, reference: str, target: str, package: str, where: str
) -> None:
    operator = verification.operator
    external = provenance.build_definition.external_parameters
    built_from = [
        "sha256:" + dependency.digest.sha256
        for dependency in provenance.build_definition.resolved_dependencies
        if dependency.uri == f"pkg:hfreg/{reference}"
    ]
    claims = (
        ("the verification's operator", f"{operator.name}@{operator.version}", reference),
        ("the verification's target", verification.target.name, target),
        ("the verification's package", verification.package, package),
        ("the provenance's package", external.get("package"), reference),
        ("the provenance's target", external.get("target"), target),
        ("the provenance's source", built_from, [package]),
    )
    for what, said, expected in claims:
        if said != expected:
            raise VerificationError(f"{what} is {said!r}, expected {expected!r}", where=where)


def _check_kernels(verification: Verification, artifacts: Mapping[str, str], where: str) -> None:
    """Every kernel has one record with its digest and name, and all verdicts follow from what they stand for."""
    built = {record.name: record.digest for record in verification.kernels if record.digest is not None}
    if len({record.name for record in verification.kernels}) != len(verification.kernels):
        raise VerificationError("a kernel has two records", where=where)
    others = (SOURCE_TITLE, runtime_title(verification.target.name))
    kernels = {name: digest for name, digest in artifacts.items() if name not in others}
    if built != kernels:
        differing = min(set(built.items()) ^ set(kernels.items()))[0]
        raise VerificationError(f"the verification's record of {differing} is not about the kernel here", where=where)
    for record in verification.kernels:
        if problem := _record_problem(record, verification):
            raise VerificationError(f"the verification's record of {record.name} {problem}", where=where)
    if verification.verdict != expected_verdict(verification.kernels):
        raise VerificationError(
            f"the verdict {verification.verdict!r} does not follow from the kernels' own", where=where
        )


def _record_problem(record: KernelRecord, verification: Verification) -> str:
    types = tuple(sorted(record.types.items()))
    operator, target = verification.operator.name, verification.target.name
    name = KernelKey(operator, types, record.attribute_class, target, record.language).slug
    if record.name != name:
        return f"speaks of {name}"
    if (record.digest is None) != (record.verdict == "not_built"):
        return f"has the verdict {record.verdict!r} and the digest {record.digest}"
    if record.verdict == "passed" and any(entry.failed or entry.failures for entry in record.data_sets):
        return "has passed with cases that failed"
    return ""


def expected_verdict(kernels: Sequence[KernelRecord]) -> str:
    """The verdict of a verification: `passed` if all kernels passed, `not_run` if none ran, else `failed`."""
    verdicts = {record.verdict for record in kernels}
    if verdicts == {"passed"}:
        return "passed"
    return "not_run" if verdicts == {"not_run"} else "failed"
