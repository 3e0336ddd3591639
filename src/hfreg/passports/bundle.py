"""Sigstore bundles v0.3 around a DSSE envelope, signed with a key that is named by its hint.

https://github.com/sigstore/protobuf-specs, `dev.sigstore.bundle.v1.Bundle` in its JSON form. Only the canonical field
names and no unknown fields are read, so that two readers cannot see two things in one bundle.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hfreg.digests import parse_json
from hfreg.errors import VerificationError
from hfreg.passports.dsse import IN_TOTO_TYPE, decode_base64, encode_base64, pae
from hfreg.passports.keys import SigningKey

BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
MAX_BUNDLE_BYTES = 4 << 20


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _PublicKeyIdentifier(_Model):
    hint: str


class _VerificationMaterial(_Model):
    public_key: Annotated[_PublicKeyIdentifier, Field(alias="publicKey")]
    tlog_entries: Annotated[list[object], Field(alias="tlogEntries", max_length=0)] = []


class _Signature(_Model):
    sig: str
    keyid: str


class _Envelope(_Model):
    payload: str
    payload_type: Annotated[str, Field(alias="payloadType")]
    signatures: Annotated[list[_Signature], Field(min_length=1, max_length=1)]


class _Bundle(_Model):
    media_type: Annotated[Literal["application/vnd.dev.sigstore.bundle.v0.3+json"], Field(alias="mediaType")]
    verification_material: Annotated[_VerificationMaterial, Field(alias="verificationMaterial")]
    dsse_envelope: Annotated[_Envelope, Field(alias="dsseEnvelope")]


class SignedPayload(_Model):
    """What a bundle holds; nothing of it is verified yet."""

    hint: str
    signature: bytes
    payload: bytes


def sign_bundle(key: SigningKey, payload: bytes) -> bytes:
    """Sign an in-toto statement; the bundle's bytes."""
    hint = key.public.hint
    signature = key.sign(pae(IN_TOTO_TYPE, payload))
    bundle = {
        "mediaType": BUNDLE_TYPE,
        "verificationMaterial": {"publicKey": {"hint": hint}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": encode_base64(payload),
            "payloadType": IN_TOTO_TYPE,
            "signatures": [{"sig": encode_base64(signature), "keyid": hint}],
        },
    }
    return json.dumps(bundle, separators=(",", ":")).encode()


def parse_bundle(data: bytes, *, where: str) -> SignedPayload:
    """Read a bundle strictly.

    Raises:
        VerificationError: it is not a key bundle v0.3 with one signature over an in-toto statement.
    """
    if len(data) > MAX_BUNDLE_BYTES:
        raise VerificationError(f"larger than {MAX_BUNDLE_BYTES >> 20} MiB", where=where)
    value = parse_json(data, where=where)
    material = value.get("verificationMaterial", {}) if isinstance(value, dict) else {}
    if isinstance(material, dict) and ("certificate" in material or "x509CertificateChain" in material):
        raise VerificationError("signed with a certificate; this version of hfreg verifies keys only", where=where)
    try:
        bundle = _Bundle.model_validate(value)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in detail["loc"]) or "the whole"
        raise VerificationError(f"not a Sigstore key bundle v0.3: {place}: {detail['msg']}", where=where) from error
    envelope, hint = bundle.dsse_envelope, bundle.verification_material.public_key.hint
    if envelope.payload_type != IN_TOTO_TYPE:
        raise VerificationError(f"the payload type is {envelope.payload_type!r}, not {IN_TOTO_TYPE!r}", where=where)
    if envelope.signatures[0].keyid != hint:
        raise VerificationError("the signature's keyid is not the bundle's key hint", where=where)
    return SignedPayload(
        hint=hint,
        signature=decode_base64(envelope.signatures[0].sig, where=f"{where}: sig"),
        payload=decode_base64(envelope.payload, where=f"{where}: payload"),
    )
