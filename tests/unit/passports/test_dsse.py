from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, utils
from hypothesis import given
from hypothesis import strategies as st

from hfreg.errors import VerificationError
from hfreg.passports.dsse import IN_TOTO_TYPE, decode_base64, encode_base64, pae, statement_digest
from hfreg.passports.keys import PublicKey
from unit import signing

# The test vector of the DSSE protocol: https://github.com/secure-systems-lab/dsse/blob/v1.0.0/protocol.md
TYPE, BODY = "http://example.com/HelloWorld", b"hello world"
ENCODED = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
X = 46950820868899156662930047687818585632848591499744589407958293238635476079160
Y = 5640078356564379163099075877009565129882514886557779369047442380624545832820
SIGNATURE = "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="


def test_the_encoding_is_the_example_of_the_specification() -> None:
    assert pae(TYPE, BODY) == ENCODED


def test_the_signature_of_the_specification_verifies() -> None:
    raw = base64.b64decode(SIGNATURE)  # r and s, 32 bytes each; ours are DER
    der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key = PublicKey(ec.EllipticCurvePublicNumbers(X, Y, ec.SECP256R1()).public_key())
    assert key.verifies(der, pae(TYPE, BODY))
    assert not key.verifies(der, pae(TYPE, BODY + b"!"))
    assert not key.verifies(der, pae(TYPE[:-1], b"d " + BODY))


@pytest.mark.parametrize(
    ("kind", "body", "encoded"),
    [
        ("", b"", b"DSSEv1 0  0 "),
        ("a", b"\0\xff", b"DSSEv1 1 a 2 \0\xff"),
        ("ä", b"x", b"DSSEv1 2 \xc3\xa4 1 x"),  # lengths are of bytes, not of characters
    ],
)
def test_lengths_are_those_of_the_bytes(kind: str, body: bytes, encoded: bytes) -> None:
    assert pae(kind, body) == encoded


@given(st.text(max_size=8), st.binary(max_size=12), st.text(max_size=8), st.binary(max_size=12))
def test_two_pairs_never_have_one_encoding(kind_a: str, body_a: bytes, kind_b: str, body_b: bytes) -> None:
    assert (pae(kind_a, body_a) == pae(kind_b, body_b)) == ((kind_a, body_a) == (kind_b, body_b))


def test_the_identity_of_a_statement_is_the_digest_of_its_encoding() -> None:
    expected = hashlib.sha256(b"DSSEv1 28 application/vnd.in-toto+json 2 {}").hexdigest()
    assert statement_digest(b"{}") == f"sha256:{expected}"
    assert signing.IN_TOTO == IN_TOTO_TYPE


@given(st.binary(max_size=50))
def test_base64_is_standard_and_padded(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert encode_base64(data) == text
    assert decode_base64(text, where="here") == data


@pytest.mark.parametrize(
    "text",
    [
        "YWI",  # padding left out
        "YWJj\n",
        "YW Jj",
        "YWJj ",
        " YWJj",
        "YWJj====",
        "YWI==",
        "YW==Jj",
        "=YWJj",
        "YWI=YWI=",
        "Y",
        "YWJ\u00e9",
        "YW_-",  # the alphabet for URLs
        "YW.j",
        "YWJ=",  # stray bits: J has two bits that no byte has
        "YQ==\0",
        "YR==",  # stray bits
    ],
)
def test_base64_that_can_be_written_otherwise_is_refused(text: str) -> None:
    with pytest.raises(VerificationError, match="base64") as caught:
        decode_base64(text, where="here")
    assert caught.value.where == "here"


@given(st.text("ABQRYZabz019+/=-_ \n", max_size=10))
def test_any_text_is_the_one_way_to_write_its_bytes_or_refused(text: str) -> None:
    try:
        data = decode_base64(text, where="here")
    except VerificationError:
        return
    assert base64.b64encode(data).decode() == text
