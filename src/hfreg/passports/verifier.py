"""Verify bundles, offline and strictly.

The checks, in order; the numbers stand beside the code:

    1. The bundle parses: a Sigstore key bundle v0.3, one signature over an in-toto statement.
    2. The key is one that the user trusts.
    3. The signature over PAE(type, payload) is that key's.
    4. The payload parses: an in-toto Statement v1 with distinct, well-formed subjects.
    5. The predicate is of a known type and of that type's form.
    6. The claims are ones that this signer may make: a local key speaks for a local builder only.
    7. The subjects are exactly the artifacts that the caller holds (`match_subjects`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from hfreg.digests import short
from hfreg.errors import UntrustedKeyError, VerificationError
from hfreg.passports.bundle import parse_bundle
from hfreg.passports.dsse import IN_TOTO_TYPE, pae, statement_digest
from hfreg.passports.keys import TrustedKeys
from hfreg.passports.predicates import PROVENANCE_TYPE, VERIFICATION_TYPE, Provenance, Verification
from hfreg.passports.predicates.provenance import LOCAL_BUILDER
from hfreg.passports.statement import Statement, parse_statement

Predicate = Provenance | Verification
_PREDICATES: dict[str, type[Provenance] | type[Verification]] = {
    PROVENANCE_TYPE: Provenance,
    VERIFICATION_TYPE: Verification,
}


@dataclass(frozen=True)
class VerifiedStatement:
    """A statement whose signature, form and claims hold."""

    statement: Statement
    predicate: Predicate
    digest: str
    """The identity of the signed statement: the digest of its PAE."""
    signer: str
    """The hint of the key."""
    is_self_attested: bool
    """Whether the key is this machine's own."""
    bundle: bytes
    """What was verified, as it was given."""

    def as_json(self) -> dict[str, Any]:
        return {
            "statement": self.digest,
            "signer": self.signer,
            "selfAttested": self.is_self_attested,
            "predicateType": self.statement.predicate_type,
            "subjects": self.statement.subjects,
            "predicate": self.statement.predicate,
        }


def verify_bundle(data: bytes, trusted: TrustedKeys, *, where: str) -> VerifiedStatement:
    """Verify one bundle, checks 1 to 6.

    Args:
        data: the bundle's bytes.
        trusted: the keys that count.
        where: what to call the bundle in messages.

    Raises:
        UntrustedKeyError: the key is none of those that count.
        VerificationError: another check fails; the message says which one and why.
    """
    signed = parse_bundle(data, where=where)  # 1
    key = trusted.keys.get(signed.hint)  # 2
    if key is None:
        raise UntrustedKeyError(
            f"signed with the key {signed.hint}, which is not trusted here",
            where=where,
            hint="get the publisher's public key from a place that you trust, and pass it with --key or put it into "
            "the folder trusted/ beside your signing key",
        )
    if not key.verifies(signed.signature, pae(IN_TOTO_TYPE, signed.payload)):  # 3
        raise VerificationError(
            "the signature does not fit: the statement was altered after it was signed", where=where
        )
    statement = parse_statement(signed.payload, where=where)  # 4
    predicate = _parse_predicate(statement, where)  # 5
    _check_claims(predicate, where)  # 6
    return VerifiedStatement(
        statement,
        predicate,
        statement_digest(signed.payload),
        signed.hint,
        is_self_attested=signed.hint == trusted.own,
        bundle=data,
    )


def _parse_predicate(statement: Statement, where: str) -> Predicate:
    model = _PREDICATES.get(statement.predicate_type)
    if model is None:
        raise VerificationError(f"the predicate type {statement.predicate_type!r} is unknown", where=where)
    try:
        return model.model_validate(statement.predicate, by_alias=True, by_name=False)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in detail["loc"])
        raise VerificationError(
            f"not a valid {statement.predicate_type}: {place}: {detail['msg']}", where=where
        ) from error


def _check_claims(predicate: Predicate, where: str) -> None:
    if isinstance(predicate, Provenance) and predicate.run_details.builder.id != LOCAL_BUILDER:
        raise VerificationError(
            f"a local key claims the builder {predicate.run_details.builder.id}, it can speak for {LOCAL_BUILDER} only",
            where=where,
        )


def match_subjects(statement: Statement, artifacts: Mapping[str, str], *, where: str) -> None:
    """Check 7: the subjects are the artifacts, all of them and nothing else.

    Args:
        statement: what was verified.
        artifacts: the digest of every artifact that the caller holds, by name.
        where: what to call the bundle in messages.

    Raises:
        VerificationError: an artifact is missing, not attested, or another one.
    """
    for name, digest in artifacts.items():
        attested = statement.subjects.get(name)
        if attested is None:
            raise VerificationError(f"{name} is not attested", where=where)
        if attested != digest:
            raise VerificationError(
                f"{name} has the digest {short(digest)}, the statement is about {short(attested)}", where=where
            )
    if missing := sorted(set(statement.subjects) - set(artifacts)):
        raise VerificationError(f"the statement is also about {', '.join(missing)}, which is not here", where=where)
