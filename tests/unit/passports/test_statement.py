from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.errors import VerificationError
from hfreg.passports.statement import Statement, dump_statement, parse_statement
from unit import signing
from unit.signing import Json

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
VALID = signing.statement({"kernel": A, "source.tar": B}, "https://example.com/p/v1", {"field": [1, None]})


def test_a_statement_of_another_writer_is_read() -> None:
    assert parse_statement(signing.dump(VALID), where="here") == Statement(
        {"kernel": A, "source.tar": B}, "https://example.com/p/v1", {"field": [1, None]}
    )


def test_a_statement_is_written_as_the_specification_has_it_in_canonical_form() -> None:
    statement = Statement({"z": B, "a": A}, "https://example.com/p/v1", {"é": 1, "a": True})
    assert (
        dump_statement(statement)
        == (
            '{"_type":"https://in-toto.io/Statement/v1","predicate":{"a":true,"é":1},'
            '"predicateType":"https://example.com/p/v1","subject":['
            f'{{"digest":{{"sha256":"{"a" * 64}"}},"name":"a"}},{{"digest":{{"sha256":"{"b" * 64}"}},"name":"z"}}]}}'
        ).encode()
    )


digests = st.binary(min_size=32, max_size=32).map(lambda raw: "sha256:" + raw.hex())
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@given(
    st.dictionaries(texts, digests, min_size=1, max_size=4),
    texts,
    st.dictionaries(texts, st.none() | st.booleans() | texts | st.integers(-1000, 1000), max_size=4),
)
def test_a_statement_comes_back_as_it_was_written(subjects: dict[str, str], kind: str, predicate: Json) -> None:
    statement = Statement(subjects, kind, predicate)
    data = dump_statement(statement)
    assert parse_statement(data, where="here") == statement
    assert dump_statement(parse_statement(data, where="here")) == data


def test_what_cannot_be_written_is_not_signed() -> None:
    with pytest.raises(ValueError, match="not representable"):
        dump_statement(Statement({"a": A}, "x", {"nan": float("nan")}))


def changed(**fields: Any) -> bytes:
    value = {**VALID, **fields}
    return signing.dump({name: entry for name, entry in value.items() if entry is not ...})


def subject(**fields: Any) -> list[Json]:
    entry = {"name": "kernel", "digest": {"sha256": "a" * 64}} | fields
    return [{name: value for name, value in entry.items() if value is not ...}]


WELL_FORMED = "no well-formed SHA-256 digest"
PLAIN = "a subject is a name and a SHA-256 digest"


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "not valid JSON"),
        (b"[]", "not an in-toto Statement v1"),
        (b"null", "not an in-toto Statement v1"),
        (changed(_type=...), "not an in-toto Statement v1"),
        (changed(_type="https://in-toto.io/Statement/v0.1"), "not an in-toto Statement v1"),
        (changed(_type=["https://in-toto.io/Statement/v1"]), "not an in-toto Statement v1"),
        (changed(extra=1), "the statement has the fields"),
        (changed(predicate=...), "the statement has the fields"),
        (changed(subject=...), "the statement has the fields"),
        (changed(predicateType=...), "the statement has the fields"),
        (changed(predicate_type="x"), "the statement has the fields"),
        (changed(predicate=[]), "the predicate is not an object with a type"),
        (changed(predicate=None), "the predicate is not an object with a type"),
        (changed(predicateType=1), "the predicate is not an object with a type"),
        (changed(subject=[]), "at least one subject"),
        (changed(subject={}), "at least one subject"),
        (changed(subject=None), "at least one subject"),
        (changed(subject=["kernel"]), PLAIN),
        (changed(subject=subject(name=...)), PLAIN),
        (changed(subject=subject(digest=...)), PLAIN),
        (changed(subject=subject(uri="x")), PLAIN),
        (changed(subject=subject(digest={})), PLAIN),
        (changed(subject=subject(digest={"sha512": "a" * 128})), PLAIN),
        (changed(subject=subject(digest={"sha256": "a" * 64, "sha1": "a" * 40})), PLAIN),
        (changed(subject=subject(name=1)), WELL_FORMED),
        (changed(subject=subject(digest={"sha256": "A" * 64})), WELL_FORMED),
        (changed(subject=subject(digest={"sha256": "a" * 63})), WELL_FORMED),
        (changed(subject=subject(digest={"sha256": "a" * 64 + "\n"})), WELL_FORMED),
        (changed(subject=subject(digest={"sha256": "sha256:" + "a" * 64})), WELL_FORMED),
        (changed(subject=subject(digest={"sha256": 1})), WELL_FORMED),
        (changed(subject=[*subject(), *subject()]), "subject 'kernel' is there twice"),
        (changed(subject=[*subject(), *subject(digest={"sha256": "b" * 64})]), "subject 'kernel' is there twice"),
        (signing.dump(VALID)[:-1] + b',"predicate":{}}', "the key 'predicate' appears twice"),
        (signing.dump(VALID).replace(b'"field":', b'"field":2,"field":'), "the key 'field' appears twice"),
    ],
    ids=range(34),
)
def test_a_payload_that_is_no_statement_is_refused(payload: bytes, message: str) -> None:
    with pytest.raises(VerificationError, match=message) as caught:
        parse_statement(payload, where="here")
    assert caught.value.where == "here"


@pytest.mark.parametrize("value", [["sha256"], None, 5, True, "sha256"], ids=str)
def test_a_digest_that_is_no_object_is_refused_like_any_other_form(value: object) -> None:
    with pytest.raises(VerificationError, match=PLAIN):
        parse_statement(changed(subject=subject(digest=value)), where="here")


def test_the_spelling_of_the_payload_does_not_matter_to_what_it_says() -> None:
    spaced = json.dumps(VALID, indent=1, sort_keys=True).encode()
    assert parse_statement(spaced, where="here") == parse_statement(signing.dump(VALID), where="here")
