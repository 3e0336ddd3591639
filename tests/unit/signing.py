"""Statements, bundles and passports, made here from the specifications, without hfreg's own code for it.

Predicates: https://slsa.dev/spec/v1.0/provenance and the fields of `operator-verification/v1`. Statements:
in-toto Statement v1. Envelopes: DSSE v1. Bundles: Sigstore bundle v0.3 in JSON, with a public-key hint.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hfreg.passports.keys import PublicKey, TrustedKeys

Json = dict[str, Any]

KEY = ec.generate_private_key(ec.SECP256R1())
"""This machine's own key."""
PUBLISHER = ec.generate_private_key(ec.SECP256R1())
"""A key that is trusted, of somebody else."""
STRANGER = ec.generate_private_key(ec.SECP256R1())
"""A key that nobody trusts."""

TRUSTED = TrustedKeys.of([PublicKey(PUBLISHER.public_key())], own=PublicKey(KEY.public_key()))

IN_TOTO = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PROVENANCE = "https://slsa.dev/provenance/v1"
VERIFICATION = "https://hfreg.dev/operator-verification/v1"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
LOCAL_BUILDER = "https://hfreg.dev/builder/local/v1"

PACKAGE = "sha256:" + "5" * 64
EVALUATOR = "sha256:" + "e" * 64
STARTED, FINISHED = "2026-01-31T12:00:00Z", "2026-01-31T12:00:30Z"


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def hint_of(key: ec.EllipticCurvePrivateKey) -> str:
    """Base64 of the SHA-256 of the public key's SubjectPublicKeyInfo in DER."""
    spki = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(spki).digest()).decode()


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE v1: `DSSEv1 SP LEN(type) SP type SP LEN(body) SP body`."""
    parts = ["DSSEv1", str(len(payload_type.encode())), payload_type, str(len(payload))]
    return " ".join(parts).encode() + b" " + payload


def sign(key: ec.EllipticCurvePrivateKey, payload: bytes, payload_type: str = IN_TOTO) -> bytes:
    return key.sign(pae(payload_type, payload), ec.ECDSA(hashes.SHA256()))


def statement(subjects: Mapping[str, str], predicate_type: str, predicate: Json) -> Json:
    entries = [
        {"name": name, "digest": {"sha256": value.removeprefix("sha256:")}} for name, value in subjects.items()
    ]  # fmt: skip
    return {"_type": STATEMENT, "subject": entries, "predicateType": predicate_type, "predicate": predicate}


def bundle(key: ec.EllipticCurvePrivateKey, payload: bytes, payload_type: str = IN_TOTO) -> Json:
    """A bundle as a JSON value, which attacks change before it is dumped."""
    return {
        "mediaType": BUNDLE,
        "verificationMaterial": {"publicKey": {"hint": hint_of(key)}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": payload_type,
            "signatures": [{"sig": base64.b64encode(sign(key, payload, payload_type)).decode(), "keyid": hint_of(key)}],
        },
    }


def dump(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def signed(value: Json, key: ec.EllipticCurvePrivateKey = KEY) -> bytes:
    """The bundle of a statement."""
    return dump(bundle(key, dump(value)))


def kernel_record(
    name: str, value: str | None, *, verdict: str = "passed", types: Mapping[str, str] | None = None, **more: Any
) -> Json:
    record: Json = {
        "name": name,
        "digest": value,
        "types": {"T": "float32"} if types is None else dict(types),
        "attributeClass": "general",
        "language": "halide",
        "verdict": verdict,
    }
    return record | more


def provenance(*, reference: str = "sample@1.0.0", target: str = "x86_64-v3", package: str = PACKAGE) -> Json:
    return {
        "buildDefinition": {
            "buildType": "https://hfreg.dev/build/v1",
            "externalParameters": {"package": reference, "target": target, "kernels": []},
            "internalParameters": {"builds": 2},
            "resolvedDependencies": [
                {"uri": f"pkg:hfreg/{reference}", "digest": {"sha256": package.removeprefix("sha256:")}},
                {"uri": "pkg:pypi/halide@21.0.0", "digest": {"sha256": "a" * 64}, "name": "libHalide.so"},
            ],
        },
        "runDetails": {
            "builder": {"id": LOCAL_BUILDER, "version": {"hfreg": "0.1.0"}},
            "metadata": {"invocationId": "", "startedOn": STARTED, "finishedOn": FINISHED},
        },
    }


def verification(
    kernels: Sequence[Json],
    *,
    reference: str = "sample@1.0.0",
    target: str = "x86_64-v3",
    package: str = PACKAGE,
    verdict: str | None = None,
    reason: str = "",
    finished: str = FINISHED,
) -> Json:
    name, _, version = reference.partition("@")
    verdicts = {record["verdict"] for record in kernels}
    follows = verdicts.pop() if len(verdicts) == 1 and verdicts <= {"passed", "not_run"} else "failed"
    return {
        "operator": {"name": name, "version": version, "domain": "", "operator": "Sample", "sinceVersions": [1, 13]},
        "target": {"name": target, "isEmulated": False},
        "package": package,
        "evaluator": EVALUATOR,
        "verdict": verdict or follows,
        "reason": reason,
        "kernels": list(kernels),
        "environment": {
            "cpuModel": "A processor",
            "architecture": "x86_64",
            "logicalCpus": 2,
            "memoryGb": 8.0,
            "operatingSystem": "Linux 6.1",
            "governor": "unknown",
            "loadAverage": 0.5,
            "tools": {"hfreg": "0.1.0"},
        },
        "startedOn": STARTED,
        "finishedOn": finished,
    }


def passport(
    artifacts: Mapping[str, str],
    kernels: Sequence[Json],
    *,
    key: ec.EllipticCurvePrivateKey = KEY,
    reference: str = "sample@1.0.0",
    target: str = "x86_64-v3",
    package: str = PACKAGE,
    **of_verification: Any,
) -> tuple[bytes, bytes]:
    """The bundles of a valid passport: provenance, then verification."""
    about: Json = {"reference": reference, "target": target, "package": package}
    predicates = (
        (PROVENANCE, provenance(**about)),
        (VERIFICATION, verification(kernels, **about, **of_verification)),
    )
    first, second = (signed(statement(artifacts, kind, predicate), key) for kind, predicate in predicates)
    return first, second
