"""DSSE v1 envelopes, parsed strictly. https://github.com/secure-systems-lab/dsse/blob/v1.0.0/envelope.md

What is signed is PAE(payload type, payload); its digest is the identity of a signed statement, since envelopes and
bundles around it can be written in more than one way.
"""

from __future__ import annotations

import base64
import binascii

from hfreg.digests import sha256
from hfreg.errors import VerificationError

IN_TOTO_TYPE = "application/vnd.in-toto+json"


def pae(payload_type: str, payload: bytes) -> bytes:
    """Pre-authentication encoding: `DSSEv1 <length> <type> <length> <payload>`."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def statement_digest(payload: bytes) -> str:
    """The identity of a signed in-toto statement: the digest of its PAE."""
    return sha256(pae(IN_TOTO_TYPE, payload))


def encode_base64(data: bytes) -> str:
    """Standard base64 with padding."""
    return base64.b64encode(data).decode("ascii")


def decode_base64(text: str, *, where: str) -> bytes:
    """Decode base64 that is written in the one canonical way.

    Raises:
        VerificationError: other characters, missing padding, or stray bits.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise VerificationError(f"not base64: {error}", where=where) from error
    if encode_base64(data) != text:
        raise VerificationError("base64 that is not written canonically", where=where)
    return data
