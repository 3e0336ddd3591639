from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.digests import (
    canonical_json,
    file_digest,
    is_digest,
    json_digest,
    parse_json,
    sha256,
    short,
    tree_digest,
)
from hfreg.errors import VerificationError

# FIPS 180-4, examples of the NIST: the empty message and "abc".
EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
integers = st.integers(-(2**53) + 1, 2**53 - 1)
# From 2**53 to 1e21 a float is written as an integer (ECMAScript's rule); a test below has those.
floats = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not 2**53 <= abs(x) < 1e21)
numbers = integers | floats
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(("content", "digest"), [(b"", EMPTY), (b"abc", ABC)])
def test_digests_are_those_of_the_standard(content: bytes, digest: str, tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(content)
    assert sha256(content) == digest
    assert file_digest(path) == digest


@given(st.binary(max_size=200))
def test_a_digest_is_the_algorithm_and_the_hexadecimal_sha256(content: bytes) -> None:
    assert sha256(content) == "sha256:" + hashlib.sha256(content).hexdigest()
    assert is_digest(sha256(content))


files = st.dictionaries(st.text("abcde/._-", min_size=1, max_size=6), st.binary(max_size=6), max_size=5)


@given(files, st.randoms())
def test_a_tree_digest_is_that_of_a_json_object_from_paths_to_digests(tree: dict[str, bytes], random: Any) -> None:
    # For ASCII strings, sorted keys without blanks are RFC 8785's form.
    table = {name: "sha256:" + hashlib.sha256(content).hexdigest() for name, content in tree.items()}
    expected = hashlib.sha256(json.dumps(table, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    shuffled = list(tree.items())
    random.shuffle(shuffled)
    assert tree_digest(tree) == tree_digest(shuffled) == f"sha256:{expected}"


@given(files, files)
def test_two_trees_have_the_same_digest_only_if_they_are_the_same(a: dict[str, bytes], b: dict[str, bytes]) -> None:
    assert (tree_digest(a) == tree_digest(b)) == (a == b)


def test_canonical_json_is_the_example_of_rfc_8785() -> None:
    # RFC 8785, sections 3.2.2 to 3.2.4.
    value = json.loads(
        r"""{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false]
        }"""
    )
    assert (
        canonical_json(value)
        == (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        ).encode()
    )


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    # RFC 8785, section 3.2.3: a surrogate pair comes before U+FB33.
    keys = ["\r", "1", "\x80", "\xf6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical_json(dict.fromkeys(reversed(keys), 0)))) == keys


@pytest.mark.parametrize(
    ("number", "text"),
    [  # RFC 8785, appendix B
        (0.0, b"0"),
        (-0.0, b"0"),
        (5e-324, b"5e-324"),
        (1.7976931348623157e308, b"1.7976931348623157e+308"),
        (9007199254740991, b"9007199254740991"),
        (295147905179352830000.0, b"295147905179352830000"),
        (9.999999999999997e22, b"9.999999999999997e+22"),
        (1e23, b"1e+23"),
        (1e21, b"1e+21"),
        (999999999999999900000.0, b"999999999999999900000"),
        (0.000001, b"0.000001"),
        (333333333.3333332, b"333333333.3333332"),
        (1424953923781206.2, b"1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_ecmascript_does(number: float, text: bytes) -> None:
    assert canonical_json(number) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, -(2**53), {1: 2}, object(), b"x", "\ud800"])
def test_what_json_cannot_say_has_no_canonical_form(value: object) -> None:
    with pytest.raises(ValueError, match="not representable in canonical JSON"):
        canonical_json(value)


@given(json_values)
def test_canonical_json_says_the_same_value(value: Any) -> None:
    data = canonical_json(value)
    assert json.loads(data) == value  # Python's own parser is the witness
    assert parse_json(data, where="here") == value
    assert canonical_json(parse_json(data, where="here")) == data
    assert json_digest(value) == sha256(data)


@given(st.floats(2.0**53, 1e21, exclude_max=True))
def test_a_large_float_reads_as_the_same_double(value: float) -> None:
    # RFC 8785 takes numbers as IEEE 754 doubles, so integers that are read back are compared as doubles.
    assert float(parse_json(canonical_json(value), where="here")) == value


def test_a_large_float_that_was_written_can_be_read_and_written_again() -> None:
    # 2**53 as a double is legal in RFC 8785 and written "9007199254740992"; what was written has to stay canonical.
    data = canonical_json({"flop": 2.0**53})
    assert canonical_json(parse_json(data, where="here")) == data


@given(json_values)
def test_layout_and_the_order_of_keys_do_not_change_canonical_json(value: Any) -> None:
    rewritten = json.loads(json.dumps(value, indent=3, sort_keys=True))
    assert canonical_json(rewritten) == canonical_json(value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a":1,"a":1}', "the key 'a' appears twice"),
        (b'[{"b":{"a":1,"x":2,"a":2}}]', "the key 'a' appears twice"),
        (b'{"a":1,"\\u0061":1}', "the key 'a' appears twice"),
        (b"NaN", "NaN is not JSON"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b'{"a":-Infinity}', "-Infinity is not JSON"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
        (b"{} {}", "not valid JSON"),
        (b"{}x", "not valid JSON"),
        (b"{}\0", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"{'a': 1}", "not valid JSON"),
        (b"[1,]", "not valid JSON"),
        (b"01", "not valid JSON"),
        (b'"\n"', "not valid JSON"),
        (b'"\xff"', r"not UTF-8 text \(byte 1\)"),
        ("{}".encode("utf-16"), "not UTF-8 text"),
        (b"[" * 200_000, "nested too deeply"),
        (b'["\\ud800"]', "half of a surrogate pair"),
        (b'{"\\uDC00\\ud800":1}', "half of a surrogate pair"),
        (b"[1e309]", "beyond the largest double"),
        (b"[-" + b"9" * 400 + b"]", "beyond the largest double"),
    ],
)
def test_json_that_could_be_read_in_two_ways_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(VerificationError, match=message) as caught:
        parse_json(data, where="here")
    assert caught.value.where == "here"


def test_an_integer_of_too_many_digits_is_refused_like_other_bad_json() -> None:
    # CPython refuses to convert integers beyond 4,300 digits (CVE-2020-10735), with a ValueError of its own.
    with pytest.raises(VerificationError):
        parse_json(b'{"a":' + b"1" * 5000 + b"}", where="here")


def test_a_number_beyond_the_largest_float_is_refused_like_infinity() -> None:
    # 1e400 reads as infinity, which `parse_json` promises to refuse and `canonical_json` cannot write.
    with pytest.raises(VerificationError):
        parse_json(b"[1e400]", where="here")


@given(st.binary(max_size=30) | st.text('{}[]",:0123456789.eE-+ntfNI\\u', max_size=30).map(str.encode))
def test_any_bytes_are_either_a_json_value_or_refused(data: bytes) -> None:
    try:
        value = parse_json(data, where="here")
    except VerificationError:
        return
    assert json.loads(data, parse_int=float) == value  # numbers are doubles


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (EMPTY, True),
        (EMPTY.upper(), False),
        (EMPTY.removeprefix("sha256:"), False),
        (EMPTY[:-1], False),
        (EMPTY + "0", False),
        (EMPTY + "\n", False),
        (" " + EMPTY, False),
        ("sha512:" + "0" * 64, False),
        ("sha256:" + "g" * 64, False),
        ("sha256:" + "../" * 21 + "0", False),
        ("", False),
    ],
)
def test_a_digest_is_lower_case_and_of_one_length(text: str, is_one: bool) -> None:
    assert is_digest(text) is is_one


def test_the_short_form_is_twelve_digits() -> None:
    assert short(EMPTY) == "e3b0c44298fc"
