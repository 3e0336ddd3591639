"""One attack for each check that verifier.py numbers, and what an honest bundle gives."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from hfreg.errors import VerificationError
from hfreg.passports.keys import PublicKey, TrustedKeys
from hfreg.passports.predicates import Provenance, Verification
from hfreg.passports.verifier import match_subjects, verify_bundle
from unit import signing
from unit.signing import KEY, PUBLISHER, STRANGER, TRUSTED, Json

ARTIFACTS = {"kernel": "sha256:" + "1" * 64, "source.tar": "sha256:" + "2" * 64}
RECORD = signing.kernel_record("kernel", ARTIFACTS["kernel"])
STATEMENT = signing.statement(ARTIFACTS, signing.PROVENANCE, signing.provenance())
VERIFICATION = signing.statement(ARTIFACTS, signing.VERIFICATION, signing.verification([RECORD]))


def refused(data: bytes, message: str, *, trusted: TrustedKeys = TRUSTED) -> VerificationError:
    with pytest.raises(VerificationError, match=message) as caught:
        verify_bundle(data, trusted, where="bundle 1")
    assert caught.value.where.startswith("bundle 1")
    return caught.value


@pytest.mark.parametrize(
    ("statement", "kind"), [(STATEMENT, Provenance), (VERIFICATION, Verification)], ids=["provenance", "verification"]
)
@pytest.mark.parametrize(("key", "is_own"), [(KEY, True), (PUBLISHER, False)], ids=["own key", "publisher's key"])
def test_an_honest_bundle_verifies_and_says_who_signed(
    statement: Json, kind: type[object], key: object, is_own: bool
) -> None:
    signer = KEY if key is KEY else PUBLISHER
    verified = verify_bundle(signing.signed(statement, signer), TRUSTED, where="bundle 1")
    assert isinstance(verified.predicate, kind)
    assert verified.statement.subjects == ARTIFACTS
    assert verified.signer == signing.hint_of(signer)
    assert verified.is_self_attested is is_own
    assert verified.digest == signing.digest(signing.pae(signing.IN_TOTO, signing.dump(statement)))
    assert verified.as_json() == {
        "statement": verified.digest,
        "signer": signing.hint_of(signer),
        "selfAttested": is_own,
        "predicateType": statement["predicateType"],
        "subjects": ARTIFACTS,
        "predicate": statement["predicate"],
    }


def test_the_fields_of_the_predicate_arrive() -> None:
    verified = verify_bundle(signing.signed(VERIFICATION), TRUSTED, where="bundle 1")
    assert isinstance(verified.predicate, Verification)
    assert verified.predicate.operator.since_versions == [1, 13]
    assert verified.predicate.kernels[0].digest == ARTIFACTS["kernel"]
    assert verified.predicate.environment.logical_cpus == 2


# 1. The bundle parses. (Its forms are in test_bundle.py; these are the ones that keep a valid signature.)

Attack = Callable[[Json], object]


def first_signature(value: Json) -> Json:
    found = value["dsseEnvelope"]["signatures"][0]
    assert isinstance(found, dict)
    return found


FORMS: dict[str, tuple[Attack, str]] = {
    "two signatures": (
        lambda v: v["dsseEnvelope"]["signatures"].append(dict(first_signature(v))),
        "dsseEnvelope.signatures",
    ),
    "certificate": (lambda v: v["verificationMaterial"].update(certificate={}), "signed with a certificate"),
    "unknown field": (lambda v: v.update(extra=1), "extra"),
    "snake_case": (lambda v: v.update(dsse_envelope=v.pop("dsseEnvelope")), "dsseEnvelope"),
    "key id": (lambda v: first_signature(v).update(keyid=signing.hint_of(PUBLISHER)), "keyid is not"),
    "junk base64": (lambda v: v["dsseEnvelope"].update(payload=v["dsseEnvelope"]["payload"] + "!"), "base64"),
    "line break": (lambda v: first_signature(v).update(sig=first_signature(v)["sig"] + "\n"), "base64"),
}


@pytest.mark.parametrize("name", FORMS)
def test_check_1_a_bundle_of_another_form_is_refused_although_its_signature_is_right(name: str) -> None:
    attack, message = FORMS[name]
    value = signing.bundle(KEY, signing.dump(STATEMENT))
    attack(value)
    refused(signing.dump(value), message)


def test_check_1_a_second_payload_under_the_same_key_is_refused() -> None:
    data = signing.signed(STATEMENT).replace(b'"payload":', b'"payload":"e30=","payload":')
    refused(data, "the key 'payload' appears twice")


def test_check_1_a_signature_over_another_payload_type_is_refused() -> None:
    value = signing.bundle(KEY, signing.dump(STATEMENT), "application/json")
    refused(signing.dump(value), "the payload type is 'application/json'")


# 2. The key is one that the user trusts.


def test_check_2_an_unknown_key_is_refused_and_the_user_is_told_what_to_do() -> None:
    error = refused(signing.signed(STATEMENT, STRANGER), "is not trusted here")
    assert signing.hint_of(STRANGER) in error.message
    assert "--key" in error.hint


def test_check_2_a_key_that_is_no_longer_trusted_is_refused() -> None:
    only = TrustedKeys.of([PublicKey(PUBLISHER.public_key())])
    refused(signing.signed(STATEMENT, KEY), "is not trusted here", trusted=only)
    refused(signing.signed(STATEMENT, KEY), "is not trusted here", trusted=TrustedKeys({}))


def test_check_2_the_hint_of_a_trusted_key_does_not_make_a_strangers_signature_valid() -> None:
    value = signing.bundle(STRANGER, signing.dump(STATEMENT))
    value["verificationMaterial"]["publicKey"]["hint"] = signing.hint_of(PUBLISHER)
    first_signature(value)["keyid"] = signing.hint_of(PUBLISHER)
    refused(signing.dump(value), "the signature does not fit")


# 3. The signature is that key's.


def test_check_3_an_altered_payload_is_refused() -> None:
    value = signing.bundle(KEY, signing.dump(STATEMENT))
    altered = copy.deepcopy(STATEMENT)
    altered["subject"][0]["digest"]["sha256"] = "3" * 64
    value["dsseEnvelope"]["payload"] = base64.b64encode(signing.dump(altered)).decode()
    refused(signing.dump(value), "the signature does not fit: the statement was altered")


def test_check_3_every_altered_byte_of_the_payload_is_refused() -> None:
    value = signing.bundle(KEY, signing.dump(STATEMENT))
    payload = signing.dump(STATEMENT)
    for position in range(len(payload)):
        altered = bytearray(payload)
        altered[position] ^= 1
        value["dsseEnvelope"]["payload"] = base64.b64encode(altered).decode()
        refused(signing.dump(value), "the signature does not fit")


def test_check_3_every_altered_bit_of_the_signature_is_refused() -> None:
    value = signing.bundle(KEY, signing.dump(STATEMENT))
    signature = base64.b64decode(first_signature(value)["sig"])
    for bit in range(8 * len(signature)):
        altered = bytearray(signature)
        altered[bit // 8] ^= 1 << bit % 8
        first_signature(value)["sig"] = base64.b64encode(altered).decode()
        refused(signing.dump(value), "the signature does not fit")


@pytest.mark.parametrize("signature", [b"", b"\0" * 64, b"junk"])
def test_check_3_no_signature_at_all_is_refused(signature: bytes) -> None:
    value = signing.bundle(KEY, signing.dump(STATEMENT))
    first_signature(value)["sig"] = base64.b64encode(signature).decode()
    refused(signing.dump(value), "the signature does not fit")


def test_check_3_a_signature_without_the_pre_authentication_encoding_is_refused() -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    payload = signing.dump(STATEMENT)
    value = signing.bundle(KEY, payload)
    first_signature(value)["sig"] = base64.b64encode(KEY.sign(payload, ec.ECDSA(hashes.SHA256()))).decode()
    refused(signing.dump(value), "the signature does not fit")


def test_check_3_the_signature_of_another_statement_is_refused() -> None:
    value = signing.bundle(KEY, signing.dump(STATEMENT))
    first_signature(value)["sig"] = first_signature(signing.bundle(KEY, signing.dump(VERIFICATION)))["sig"]
    refused(signing.dump(value), "the signature does not fit")


def test_the_second_signature_that_ecdsa_allows_does_not_change_the_identity() -> None:
    # (r, n - s) verifies wherever (r, s) does. The identity of a statement is the digest of its PAE, so it stays.
    n = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # the order of P-256
    value = signing.bundle(KEY, signing.dump(STATEMENT))
    before = verify_bundle(signing.dump(value), TRUSTED, where="bundle 1")
    r, s = decode_dss_signature(base64.b64decode(first_signature(value)["sig"]))
    first_signature(value)["sig"] = base64.b64encode(encode_dss_signature(r, n - s)).decode()
    assert verify_bundle(signing.dump(value), TRUSTED, where="bundle 1").digest == before.digest


# 4. The payload parses. (Its forms are in test_statement.py.)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"junk", "not valid JSON"),
        (b"{}", "not an in-toto Statement v1"),
        (signing.dump(STATEMENT)[:-1] + b',"subject":[]}', "the key 'subject' appears twice"),
        (signing.dump(STATEMENT | {"extra": 1}), "the statement has the fields"),
        (signing.dump(STATEMENT | {"subject": STATEMENT["subject"] * 2}), "is there twice"),
        (signing.dump(STATEMENT | {"subject": []}), "at least one subject"),
    ],
    ids=range(6),
)
def test_check_4_a_signed_payload_that_is_no_statement_is_refused(payload: bytes, message: str) -> None:
    refused(signing.dump(signing.bundle(KEY, payload)), message)


# 5. The predicate is of a known type and of that type's form.


@pytest.mark.parametrize(
    "kind",
    [
        "https://slsa.dev/provenance/v0.2",
        "https://slsa.dev/verification_summary/v1",
        "",
        "https://slsa.dev/provenance/v1/",
    ],
)
def test_check_5_an_unknown_predicate_type_is_refused(kind: str) -> None:
    refused(signing.signed(STATEMENT | {"predicateType": kind}), "the predicate type .* is unknown")


def test_check_5_a_test_result_is_not_taken_for_provenance_nor_the_other_way_round() -> None:
    swapped = STATEMENT | {"predicate": VERIFICATION["predicate"]}
    refused(signing.signed(swapped), "not a valid https://slsa.dev/provenance/v1: buildDefinition: Field required")
    swapped = VERIFICATION | {"predicate": STATEMENT["predicate"]}
    refused(signing.signed(swapped), "not a valid https://hfreg.dev/operator-verification/v1: operator: Field required")


def at(value: Json, path: str, new: object) -> Json:
    """A copy with one field changed: `runDetails.builder.id`."""
    changed = copy.deepcopy(value)
    *parents, last = path.split(".")
    place: Any = changed
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if new is ...:
        del place[last]
    else:
        place[last] = new
    return changed


@pytest.mark.parametrize(
    ("path", "new"),
    [
        ("verdict", "verified"),
        ("verdict", ...),
        ("package", "5" * 64),
        ("package", "sha256:" + "5" * 63),
        ("package", "sha256:" + "G" * 64),
        ("kernels", ...),
        ("kernels", {}),
        ("kernels.0.verdict", "ok"),
        ("kernels.0.digest", "1" * 64),
        ("kernels.0.digest", ...),
        ("operator.sinceVersions", ["13"]),
        ("operator.sinceVersions", ...),
        ("target.isEmulated", "false"),
        ("target.isEmulated", 0),
        ("finishedOn", "2026-01-31T12:00:30+00:00"),
        ("finishedOn", "2026-01-31 12:00:30Z"),
        ("finishedOn", "2026-02-31T12:00:30Z"),
        ("finishedOn", "2026-01-31T25:00:30Z"),
        ("finishedOn", 1769860830),
        ("startedOn", ...),
        ("environment.logicalCpus", "2"),
        ("environment.logicalCpus", 2.5),
        ("environment", []),
    ],
    ids=lambda part: str(part)[:30],
)
def test_check_5_a_verification_of_another_form_is_refused(path: str, new: object) -> None:
    changed = VERIFICATION | {"predicate": at(VERIFICATION["predicate"], path, new)}
    refused(signing.signed(changed), "not a valid https://hfreg.dev/operator-verification/v1: ")


@pytest.mark.parametrize(
    ("path", "new"),
    [
        ("buildDefinition.buildType", ...),
        ("buildDefinition.externalParameters", []),
        ("buildDefinition.resolvedDependencies", ...),
        ("buildDefinition.resolvedDependencies.0.uri", 1),
        ("buildDefinition.resolvedDependencies.0.digest", {"sha512": "5" * 128}),
        ("buildDefinition.resolvedDependencies.0.digest", "5" * 64),
        ("runDetails", ...),
        ("runDetails.builder", ...),
        ("runDetails.builder.id", None),
        ("runDetails.metadata.startedOn", "yesterday"),
    ],
)
def test_check_5_a_provenance_of_another_form_is_refused(path: str, new: object) -> None:
    changed = STATEMENT | {"predicate": at(STATEMENT["predicate"], path, new)}
    refused(signing.signed(changed), "not a valid https://slsa.dev/provenance/v1: ")


@pytest.mark.parametrize("value", [{}, {"sha256": "5" * 63}, {"sha256": "x"}, {"sha256": "A" * 64}], ids=str)
def test_check_5_a_dependency_without_a_well_formed_digest_is_refused(value: Json) -> None:
    # provenance.py: `digest` is "Hexadecimal SHA-256".
    changed = STATEMENT | {
        "predicate": at(STATEMENT["predicate"], "buildDefinition.resolvedDependencies.0.digest", value)
    }
    refused(signing.signed(changed), "not a valid https://slsa.dev/provenance/v1: ")


def test_unknown_fields_of_a_predicate_are_passed_over() -> None:
    # in-toto: consumers ignore fields that they do not know.
    for statement in (STATEMENT, VERIFICATION):
        predicate = statement["predicate"] | {"addedLater": {"x": 1}}
        verified = verify_bundle(signing.signed(statement | {"predicate": predicate}), TRUSTED, where="bundle 1")
        assert verified.statement.predicate["addedLater"] == {"x": 1}


def test_a_predicate_has_its_fields_under_their_own_names_only() -> None:
    # The names are lowerCamelCase: a reader that also takes snake_case can be shown two values of one field.
    changed = copy.deepcopy(VERIFICATION)
    changed["predicate"]["finished_on"] = "2020-01-01T00:00:00Z"
    verified = verify_bundle(signing.signed(changed), TRUSTED, where="bundle 1")
    assert isinstance(verified.predicate, Verification)
    assert verified.predicate.finished_on == signing.FINISHED
    del changed["predicate"]["finishedOn"]
    refused(signing.signed(changed), "finishedOn: Field required")


# 6. The claims are ones that this signer may make.


@pytest.mark.parametrize(
    "builder",
    ["https://github.com/actions/runner/github-hosted", "https://hfreg.dev/builder/local/v2", "", "https://hfreg.dev/"],
)
def test_check_6_a_local_key_cannot_claim_another_builder(builder: str) -> None:
    changed = STATEMENT | {"predicate": at(STATEMENT["predicate"], "runDetails.builder.id", builder)}
    for key in (KEY, PUBLISHER):
        refused(signing.signed(changed, key), "a local key claims the builder")


# 7. The subjects are the artifacts.


def subjects_refused(subjects: dict[str, str], message: str) -> None:
    statement = verify_bundle(
        signing.signed(signing.statement(subjects, signing.PROVENANCE, signing.provenance())), TRUSTED, where="b"
    ).statement
    with pytest.raises(VerificationError, match=message) as caught:
        match_subjects(statement, ARTIFACTS, where="here")
    assert caught.value.where == "here"


def test_check_7_the_same_artifacts_match_in_any_order() -> None:
    backwards = dict(reversed(ARTIFACTS.items()))
    statement = verify_bundle(
        signing.signed(signing.statement(backwards, signing.PROVENANCE, signing.provenance())), TRUSTED, where="b"
    ).statement
    match_subjects(statement, ARTIFACTS, where="here")


def test_check_7_an_artifact_that_is_not_attested_is_refused() -> None:
    subjects_refused({"kernel": ARTIFACTS["kernel"]}, "source.tar is not attested")


def test_check_7_a_subject_that_is_not_here_is_refused() -> None:
    subjects_refused(
        ARTIFACTS | {"b": "sha256:" + "3" * 64, "a": "sha256:" + "3" * 64}, "is also about a, b, which is not"
    )


def test_check_7_another_artifact_of_the_same_name_is_refused() -> None:
    subjects_refused(
        ARTIFACTS | {"kernel": "sha256:" + "3" * 64},
        "kernel has the digest 111111111111, the statement is about 333333333333",
    )


def test_check_7_a_digest_under_another_name_is_refused() -> None:
    subjects_refused({"kernel": ARTIFACTS["source.tar"], "source.tar": ARTIFACTS["kernel"]}, "kernel has the digest")
    subjects_refused({"Kernel": ARTIFACTS["kernel"], "source.tar": ARTIFACTS["source.tar"]}, "kernel is not attested")


def test_check_7_differences_beyond_the_digits_that_are_shown_count() -> None:
    subjects_refused(ARTIFACTS | {"kernel": "sha256:" + "1" * 63 + "2"}, "kernel has the digest")


def test_a_rewritten_payload_is_another_statement() -> None:
    spaced = json.dumps(STATEMENT, indent=1).encode()
    one = verify_bundle(signing.signed(STATEMENT), TRUSTED, where="b")
    other = verify_bundle(signing.dump(signing.bundle(KEY, spaced)), TRUSTED, where="b")
    assert one.statement == other.statement
    assert one.digest != other.digest
