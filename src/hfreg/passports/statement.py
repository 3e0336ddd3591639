"""in-toto Statement v1. https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hfreg.digests import canonical_json, parse_json
from hfreg.errors import VerificationError

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement: what is said (the predicate) about which artifacts (the subjects)."""

    subjects: dict[str, str]
    """The digest of each artifact, by name."""
    predicate_type: str
    predicate: dict[str, Any]


def dump_statement(statement: Statement) -> bytes:
    """The bytes that are signed: canonical JSON."""
    subjects = [
        {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}
        for name, digest in sorted(statement.subjects.items())
    ]
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": subjects,
            "predicateType": statement.predicate_type,
            "predicate": statement.predicate,
        }
    )


def parse_statement(payload: bytes, *, where: str) -> Statement:
    """Read a statement strictly. Unknown fields at the top are refused, those of the predicate are its own matter.

    Raises:
        VerificationError: not a Statement v1, or subjects that are not plain SHA-256 digests with names of their own.
    """
    value = parse_json(payload, where=where)
    if not isinstance(value, dict) or value.get("_type") != STATEMENT_TYPE:
        raise VerificationError("not an in-toto Statement v1", where=where)
    if set(value) != {"_type", "subject", "predicateType", "predicate"}:
        raise VerificationError(f"the statement has the fields {sorted(value)}", where=where)
    if not isinstance(value["predicate"], dict) or not isinstance(value["predicateType"], str):
        raise VerificationError("the predicate is not an object with a type", where=where)
    return Statement(_subjects(value["subject"], where), value["predicateType"], value["predicate"])


def _subjects(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, list) or not value:
        raise VerificationError("a statement has at least one subject", where=where)
    subjects: dict[str, str] = {}
    for entry in value:
        if not isinstance(entry, dict) or set(entry) != {"name", "digest"}:
            raise VerificationError("a subject is a name and a SHA-256 digest", where=where)
        name, digests = entry["name"], entry["digest"]
        if not isinstance(digests, dict) or set(digests) != {"sha256"}:
            raise VerificationError("a subject is a name and a SHA-256 digest", where=where)
        digest = digests["sha256"]
        if not isinstance(name, str) or not isinstance(digest, str) or not _HEX.fullmatch(digest):
            raise VerificationError(f"subject {name!r} has no well-formed SHA-256 digest", where=where)
        if name in subjects:
            raise VerificationError(f"subject {name!r} is there twice", where=where)
        subjects[name] = f"sha256:{digest}"
    return subjects
