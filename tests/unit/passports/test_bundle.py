from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.errors import VerificationError
from hfreg.passports.bundle import MAX_BUNDLE_BYTES, parse_bundle, sign_bundle
from hfreg.passports.keys import SigningKey
from unit import signing
from unit.signing import Json

PAYLOAD = b'{"a":1}'
VALID = signing.bundle(signing.KEY, PAYLOAD)


def test_a_bundle_of_another_writer_is_read() -> None:
    parsed = parse_bundle(signing.dump(VALID), where="here")
    assert parsed.payload == PAYLOAD
    assert parsed.hint == signing.hint_of(signing.KEY)
    assert parsed.signature == base64.b64decode(VALID["dsseEnvelope"]["signatures"][0]["sig"])


def test_a_bundle_of_ours_is_one_of_the_specification() -> None:
    made = json.loads(sign_bundle(SigningKey(signing.KEY), PAYLOAD))
    signature = made["dsseEnvelope"]["signatures"][0].pop("sig")
    expected = copy.deepcopy(VALID)
    del expected["dsseEnvelope"]["signatures"][0]["sig"]  # ECDSA signatures differ every time
    assert made == expected
    public = SigningKey(signing.KEY).public
    assert public.verifies(base64.b64decode(signature), signing.pae(signing.IN_TOTO, PAYLOAD))


@given(st.binary(max_size=60))
def test_any_payload_is_signed_and_read_back(payload: bytes) -> None:
    assert parse_bundle(sign_bundle(SigningKey(signing.KEY), payload), where="here").payload == payload


def test_layout_and_the_order_of_keys_do_not_matter() -> None:
    spaced = json.dumps(VALID, indent=2, sort_keys=True).encode()
    assert parse_bundle(spaced, where="here") == parse_bundle(signing.dump(VALID), where="here")


def test_the_list_of_log_entries_may_be_left_out() -> None:
    # Protocol buffers' JSON leaves empty lists out.
    changed = copy.deepcopy(VALID)
    del changed["verificationMaterial"]["tlogEntries"]
    assert parse_bundle(signing.dump(changed), where="here").payload == PAYLOAD


Attack = Callable[[Json], object]


def envelope(value: Json) -> Json:
    found = value["dsseEnvelope"]
    assert isinstance(found, dict)
    return found


def signature(value: Json) -> Json:
    found = envelope(value)["signatures"][0]
    assert isinstance(found, dict)
    return found


def rename(part: Json, old: str, new: str) -> None:
    part[new] = part.pop(old)


def alias(part: Json, old: str, new: str) -> None:
    """The same field under a second name as well."""
    part[new] = part[old]


ATTACKS: dict[str, tuple[Attack, str]] = {
    "certificate": (
        lambda v: v["verificationMaterial"].update(certificate={"rawBytes": "AA=="}),
        "signed with a certificate; this version of hfreg verifies keys only",
    ),
    "certificate alone": (
        lambda v: v.update(verificationMaterial={"certificate": {"rawBytes": "AA=="}, "tlogEntries": []}),
        "signed with a certificate",
    ),
    "certificate chain": (
        lambda v: v.update(verificationMaterial={"x509CertificateChain": {"certificates": []}}),
        "signed with a certificate",
    ),
    "older bundle": (
        lambda v: v.update(mediaType="application/vnd.dev.sigstore.bundle+json;version=0.2"),
        "mediaType",
    ),
    "no media type": (lambda v: v.pop("mediaType"), "mediaType"),
    "snake_case at the top": (lambda v: rename(v, "mediaType", "media_type"), "mediaType"),
    "snake_case envelope": (lambda v: rename(v, "dsseEnvelope", "dsse_envelope"), "dsseEnvelope"),
    "snake_case payload type": (lambda v: rename(envelope(v), "payloadType", "payload_type"), "payloadType"),
    "snake_case key": (lambda v: rename(v["verificationMaterial"], "publicKey", "public_key"), "publicKey"),
    "snake_case twin": (lambda v: alias(v, "mediaType", "media_type"), "media_type: Extra inputs"),
    "snake_case twin in the envelope": (
        lambda v: alias(envelope(v), "payloadType", "payload_type"),
        "dsseEnvelope.payload_type: Extra inputs",
    ),
    "unknown field at the top": (lambda v: v.update(extra=1), "extra: Extra inputs"),
    "unknown field in the material": (
        lambda v: v["verificationMaterial"].update(timestampVerificationData={}),
        "verificationMaterial.timestampVerificationData: Extra inputs",
    ),
    "unknown field in the key": (
        lambda v: v["verificationMaterial"]["publicKey"].update(rawBytes="AA=="),
        "verificationMaterial.publicKey.rawBytes: Extra inputs",
    ),
    "unknown field in the envelope": (lambda v: envelope(v).update(extra=1), "dsseEnvelope.extra: Extra inputs"),
    "unknown field in the signature": (lambda v: signature(v).update(extra=1), "signatures.0.extra: Extra inputs"),
    "message signature": (lambda v: v.update(messageSignature={}), "messageSignature: Extra inputs"),
    "log entry": (lambda v: v["verificationMaterial"].update(tlogEntries=[{}]), "tlogEntries"),
    "two signatures": (lambda v: envelope(v)["signatures"].append(dict(signature(v))), "dsseEnvelope.signatures"),
    "no signature": (lambda v: envelope(v).update(signatures=[]), "dsseEnvelope.signatures"),
    "no key id": (lambda v: signature(v).pop("keyid"), "keyid"),
    "another key id": (
        lambda v: signature(v).update(keyid=signing.hint_of(signing.PUBLISHER)),
        "the signature's keyid is not the bundle's key hint",
    ),
    "an empty key id": (lambda v: signature(v).update(keyid=""), "the signature's keyid is not the bundle's key hint"),
    "another hint": (
        lambda v: v["verificationMaterial"]["publicKey"].update(hint=signing.hint_of(signing.PUBLISHER)),
        "the signature's keyid is not the bundle's key hint",
    ),
    "no hint": (lambda v: v["verificationMaterial"]["publicKey"].pop("hint"), "hint"),
    "another payload type": (
        lambda v: envelope(v).update(payloadType="application/json"),
        r"the payload type is 'application/json', not 'application/vnd\.in-toto\+json'",
    ),
    "payload type in capitals": (
        lambda v: envelope(v).update(payloadType="application/vnd.in-toto+JSON"),
        "the payload type is",
    ),
    "payload as an object": (lambda v: envelope(v).update(payload={}), "dsseEnvelope.payload"),
    "payload as null": (lambda v: envelope(v).update(payload=None), "dsseEnvelope.payload"),
    "line break in the payload": (
        lambda v: envelope(v).update(payload=envelope(v)["payload"] + "\n"),
        "payload: .*base64",
    ),
    "blank in the signature": (lambda v: signature(v).update(sig=" " + signature(v)["sig"]), "sig: .*base64"),
    "payload without padding": (
        lambda v: envelope(v).update(payload=envelope(v)["payload"].rstrip("=")),
        "payload: .*base64",
    ),
    "stray bits in the payload": (lambda v: envelope(v).update(payload="eyJhIjoxfR=="), "payload: .*base64"),
    "signature in the URL alphabet": (
        lambda v: signature(v).update(sig=signature(v)["sig"].replace("+", "-").replace("/", "_") + "-_=="),
        "sig: .*base64",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_bundle_that_two_readers_could_read_differently_is_refused(name: str) -> None:
    attack, message = ATTACKS[name]
    changed = copy.deepcopy(VALID)
    attack(changed)
    assert changed != VALID
    with pytest.raises(VerificationError, match=message) as caught:
        parse_bundle(signing.dump(changed), where="here")
    assert caught.value.where.startswith("here")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not valid JSON"),
        (b"[]", "not a Sigstore key bundle v0.3: the whole"),
        (b"null", "not a Sigstore key bundle v0.3: the whole"),
        (b'"text"', "not a Sigstore key bundle v0.3: the whole"),
        (b"{}", "not a Sigstore key bundle v0.3"),
        (b'{"verificationMaterial":[]}', "not a Sigstore key bundle v0.3"),
        (signing.dump(VALID)[:-1] + b',"mediaType":"x"}', "the key 'mediaType' appears twice"),
        (signing.dump(VALID).replace(b'"payload":', b'"payload":"AA==","payload":'), "the key 'payload' appears twice"),
        (signing.dump(VALID).replace(b'"keyid":', b'"keyid":"","key\\u0069d":'), "the key 'keyid' appears twice"),
        (signing.dump(VALID) + b" {}", "not valid JSON"),
        (b"\xef\xbb\xbf" + signing.dump(VALID), "not valid JSON"),
        (b" " * (MAX_BUNDLE_BYTES + 1), "larger than 4 MiB"),
    ],
    ids=range(12),
)
def test_json_that_is_no_bundle_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        parse_bundle(data, where="here")


def test_a_bundle_with_a_huge_integer_is_refused_like_any_other() -> None:
    changed = signing.dump(VALID)[:-1] + b',"n":' + b"1" * 5000 + b"}"
    with pytest.raises(VerificationError):
        parse_bundle(changed, where="here")


@given(st.integers(0, len(signing.dump(VALID)) - 1), st.integers(1, 255))
def test_a_changed_byte_is_refused_or_changes_what_is_verified(position: int, flip: int) -> None:
    data = bytearray(signing.dump(VALID))
    data[position] ^= flip
    try:
        parsed = parse_bundle(bytes(data), where="here")
    except VerificationError:
        return
    assert parsed != parse_bundle(signing.dump(VALID), where="here")
