"""A passport: each thing that its statements, its artifacts and its caller have to agree on, made to differ."""

from __future__ import annotations

from typing import Any

import pytest

from hfreg.errors import VerificationError
from hfreg.passports.passport import Passport, expected_verdict, verify_passport
from hfreg.passports.predicates.verification import KernelRecord
from unit import signing
from unit.signing import KEY, PACKAGE, PUBLISHER, STRANGER, TRUSTED, Json, kernel_record

REFERENCE, TARGET = "sample@1.0.0", "x86_64-v3"
F32, F16, BF16 = (f"sample.{kind}.general.{TARGET}.halide" for kind in ("float32", "float16", "bfloat16"))
KERNELS = {F32: "sha256:" + "1" * 64, F16: "sha256:" + "2" * 64}
ARTIFACTS = KERNELS | {"source.tar": "sha256:" + "3" * 64, f"runtime.{TARGET}.so": "sha256:" + "4" * 64}
RECORDS = [
    kernel_record(F32, KERNELS[F32]),
    kernel_record(F16, KERNELS[F16], types={"T": "float16"}),
]


def bundles(**changes: Any) -> tuple[bytes, bytes]:
    return signing.passport(ARTIFACTS, RECORDS, **changes)


def verify(found: tuple[bytes, ...], **changes: Any) -> Passport:
    asked: dict[str, Any] = {"reference": REFERENCE, "target": TARGET, "package": PACKAGE, "artifacts": ARTIFACTS}
    return verify_passport(found, TRUSTED, **(asked | changes))


def refused(found: tuple[bytes, ...], message: str, **changes: Any) -> None:
    with pytest.raises(VerificationError, match=message) as caught:
        verify(found, **changes)
    asked = changes.get("reference", REFERENCE), changes.get("target", TARGET)
    assert caught.value.where.startswith("passport of {} on {}".format(*asked))


def statements(*predicates: tuple[str, Json], artifacts: dict[str, str] | None = None) -> tuple[bytes, ...]:
    """Bundles over predicates of any kind."""
    subjects = ARTIFACTS if artifacts is None else artifacts
    return tuple(signing.signed(signing.statement(subjects, kind, predicate)) for kind, predicate in predicates)


PROVENANCE = (signing.PROVENANCE, signing.provenance())
VERIFICATION = (signing.VERIFICATION, signing.verification(RECORDS))


@pytest.mark.parametrize("is_reversed", [False, True])
def test_an_honest_passport_verifies_in_any_order(is_reversed: bool) -> None:
    found = bundles()
    passport = verify(found[::-1] if is_reversed else found)
    assert passport.reference == REFERENCE
    assert passport.target == TARGET
    assert [s.statement.predicate_type for s in passport.statements] == [signing.PROVENANCE, signing.VERIFICATION]
    assert passport.kernel(F16).types == {"T": "float16"}
    assert passport.verification.verdict == "passed"


@pytest.mark.parametrize(
    ("first", "second", "is_own"), [(KEY, KEY, True), (PUBLISHER, PUBLISHER, False), (KEY, PUBLISHER, False)]
)
def test_a_passport_is_self_attested_where_only_the_own_key_signed(first: Any, second: Any, is_own: bool) -> None:
    passport = verify((bundles(key=first)[0], bundles(key=second)[1]))
    assert passport.is_self_attested is is_own
    assert passport.signers == tuple(sorted({signing.hint_of(first), signing.hint_of(second)}))


@pytest.mark.parametrize("place", [0, 1])
def test_one_bundle_that_does_not_verify_is_enough(place: int) -> None:
    found = list(bundles())
    found[place] = bundles(key=STRANGER)[place]
    refused(tuple(found), "is not trusted here")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ((), "has 0 provenance and 0 verification statements, expected one of each"),
        (statements(PROVENANCE), "has 1 provenance and 0 verification"),
        (statements(VERIFICATION), "has 0 provenance and 1 verification"),
        (statements(PROVENANCE, PROVENANCE), "has 2 provenance and 0 verification"),
        (statements(PROVENANCE, VERIFICATION, VERIFICATION), "has 1 provenance and 2 verification"),
        (statements(PROVENANCE, PROVENANCE, VERIFICATION), "has 2 provenance and 1 verification"),
    ],
)
def test_there_is_one_statement_of_each_kind(found: tuple[bytes, ...], message: str) -> None:
    refused(found, message)


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in ARTIFACTS.items() if key != name}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("subjects", "message"),
    [
        (without(F32), f"{F32} is not attested"),
        (without("source.tar"), "source.tar is not attested"),
        (without(f"runtime.{TARGET}.so"), "runtime.x86_64-v3.so is not attested"),
        (ARTIFACTS | {"more": "sha256:" + "9" * 64}, "is also about more, which is not here"),
        (ARTIFACTS | {F32: "sha256:" + "9" * 64}, f"{F32} has the digest 111111111111, the statement is about 9999"),
        (ARTIFACTS | {F32: KERNELS[F16], F16: KERNELS[F32]}, f"{F32} has the digest"),
    ],
    ids=["kernel missing", "source missing", "runtime missing", "one more", "another kernel", "kernels swapped"],
)
def test_both_statements_are_about_exactly_the_artifacts(place: int, subjects: dict[str, str], message: str) -> None:
    found = list(bundles())
    found[place] = statements((PROVENANCE, VERIFICATION)[place], artifacts=subjects)[0]
    refused(tuple(found), message)


OTHER = "sha256:" + "6" * 64


@pytest.mark.parametrize(
    ("provenance", "verification", "message"),
    [
        (
            {},
            {"reference": "sample@1.0.1"},
            "the verification's operator is 'sample@1.0.1', expected 'sample@1.0.0'",
        ),
        ({}, {"reference": "other@1.0.0"}, "the verification's operator is 'other@1.0.0'"),
        ({}, {"target": "x86_64-v4"}, "the verification's target is 'x86_64-v4', expected 'x86_64-v3'"),
        ({}, {"package": OTHER}, f"the verification's package is '{OTHER}'"),
        ({"reference": "sample@1.0.1"}, {}, "the provenance's package is 'sample@1.0.1'"),
        ({"target": "x86_64-v4"}, {}, "the provenance's target is 'x86_64-v4'"),
        ({"package": OTHER}, {}, rf"the provenance's source is \['{OTHER}'\]"),
    ],
)
def test_the_statements_speak_of_what_was_asked_for(provenance: Json, verification: Json, message: str) -> None:
    refused(
        statements(
            (signing.PROVENANCE, signing.provenance(**provenance)),
            (signing.VERIFICATION, signing.verification(RECORDS, **verification)),
        ),
        message,
    )


def test_provenance_names_the_source_of_the_package_once() -> None:
    dependencies = signing.provenance()["buildDefinition"]["resolvedDependencies"]
    for changed in (dependencies[1:], [dependencies[0], *dependencies]):
        predicate = signing.provenance()
        predicate["buildDefinition"]["resolvedDependencies"] = changed
        refused(statements((signing.PROVENANCE, predicate), VERIFICATION), "the provenance's source is")


def test_provenance_without_a_digest_of_the_source_is_refused() -> None:
    predicate = signing.provenance()
    predicate["buildDefinition"]["resolvedDependencies"][0]["digest"] = {}
    with pytest.raises(VerificationError):
        verify(statements((signing.PROVENANCE, predicate), VERIFICATION))


@pytest.mark.parametrize("field", ["package", "target"])
@pytest.mark.parametrize("value", [None, 1, ["sample@1.0.0"]], ids=str)
def test_a_parameter_of_another_form_is_not_what_was_asked_for(field: str, value: object) -> None:
    predicate = signing.provenance()
    predicate["buildDefinition"]["externalParameters"][field] = value
    refused(statements((signing.PROVENANCE, predicate), VERIFICATION), f"the provenance's {field} is")


def test_the_passports_of_two_targets_cannot_be_swapped() -> None:
    def artifacts(target: str, digit: str) -> dict[str, str]:
        return {f"sample.float32.general.{target}.halide": "sha256:" + digit * 64, "source.tar": "sha256:" + "3" * 64}

    v3, v4 = artifacts("x86_64-v3", "1"), artifacts("x86_64-v4", "2")
    found = {
        target: signing.passport(content, [kernel_record(*next(iter(content.items())))], target=target)
        for target, content in (("x86_64-v3", v3), ("x86_64-v4", v4))
    }
    assert verify(found["x86_64-v3"], artifacts=v3).target == "x86_64-v3"
    refused(found["x86_64-v4"], "is not attested", artifacts=v3)
    refused(found["x86_64-v3"], "is not attested", artifacts=v4, target="x86_64-v4")
    refused((found["x86_64-v3"][0], found["x86_64-v4"][1]), "is not attested", artifacts=v3)


def test_a_passport_of_a_target_with_the_same_artifacts_is_still_another_targets() -> None:
    # A kernel of target-independent bytes: only the statements' own words tell the targets apart.
    artifacts = {"kernel": "sha256:" + "1" * 64}
    found = signing.passport(artifacts, [kernel_record("kernel", artifacts["kernel"])], target="x86_64-v4")
    refused(found, "the verification's target is 'x86_64-v4'", artifacts=artifacts)


def test_a_passport_of_another_version_does_not_serve() -> None:
    refused(bundles(), "operator is 'sample@1.0.0', expected 'sample@2.0.0'", reference="sample@2.0.0")
    refused(bundles(), "package is", package=OTHER)


def with_records(*records: Json, verdict: str | None = None) -> tuple[bytes, ...]:
    return statements(PROVENANCE, (signing.VERIFICATION, signing.verification(records, verdict=verdict)))


def test_every_kernel_has_one_record_with_its_digest() -> None:
    about = "the verification's record of {} is not about the kernel here"
    refused(with_records(RECORDS[0]), about.format(F16))
    refused(with_records(*RECORDS, RECORDS[0]), "a kernel has two records")
    refused(with_records(RECORDS[0], kernel_record(F16, KERNELS[F32])), about.format(F16))
    refused(with_records(*RECORDS, kernel_record("more", "sha256:" + "9" * 64)), about.format("more"))
    refused(with_records(RECORDS[0], kernel_record(F16, None, verdict="not_built")), about.format(F16))


def test_a_kernel_that_could_not_be_built_has_a_record_and_no_artifact() -> None:
    record = kernel_record(BF16, None, verdict="not_built", types={"T": "bfloat16"}, detail="halide: no")
    passport = verify(with_records(*RECORDS, record))
    assert passport.verification.verdict == "failed"
    assert passport.kernel(BF16).digest is None


def test_a_kernel_without_a_digest_cannot_have_passed() -> None:
    # "digest: None where it could not be built": what was not built did not run, and the matrix would serve it.
    types = {"T": "bfloat16"}
    refused(
        with_records(*RECORDS, kernel_record(BF16, None, types=types)), "has the verdict 'passed' and the digest None"
    )
    refused(with_records(*RECORDS, kernel_record(BF16, None, types=types, verdict="crashed")), "the digest None")
    refused(with_records(RECORDS[0], RECORDS[1] | {"verdict": "not_built"}), "has the verdict 'not_built' and")


@pytest.mark.parametrize("verdict", ["wrong_result", "not_run", "crashed", "timed_out", "not_repeatable"])
def test_a_verdict_that_does_not_follow_from_the_records_is_refused(verdict: str) -> None:
    record = RECORDS[1] | {"verdict": verdict}
    message = "the verdict 'passed' does not follow from the kernels' own"
    refused(with_records(RECORDS[0], record, verdict="passed"), message)
    refused(with_records(RECORDS[0], record, verdict="not_run"), "the verdict 'not_run' does not follow")
    refused(with_records(*RECORDS, verdict="failed"), "the verdict 'failed' does not follow")
    assert verify(with_records(RECORDS[0], record)).verification.verdict == "failed"


DATA_SET = {
    "dataSet": "D1", "cases": 2, "failed": 0, "elements": 9, "maxErrorRatio": 0.5, "maxUlp": 1.0, "rmsUlp": 0.1,
    "biasUlp": 0.0, "failures": [],
}  # fmt: skip


def test_a_kernel_passes_only_where_its_data_sets_do() -> None:
    # verification.py: "How a kernel ended. Only `passed` is good" - and a data set with failures is not.
    failed = DATA_SET | {"failed": 1, "failures": [{"case": "D1/a", "verdict": "wrong_result", "detail": ""}]}
    honest = RECORDS[0] | {"dataSets": [DATA_SET]}
    assert verify(with_records(honest, RECORDS[1])).verification.verdict == "passed"
    refused(
        with_records(RECORDS[0] | {"dataSets": [DATA_SET, failed]}, RECORDS[1]), f"{F32} has passed with cases that"
    )


@pytest.mark.parametrize(
    "change", [{"types": {"T": "float16"}}, {"attributeClass": "last"}, {"language": "c"}], ids=lambda c: next(iter(c))
)
def test_a_record_speaks_of_what_its_kernel_is_named_for(change: Json) -> None:
    # The matrix takes types and class from the record: a float32 kernel must not be entered as a float16 one.
    refused(with_records(RECORDS[0] | change, RECORDS[1]), f"the verification's record of {F32} speaks of sample.")


@pytest.mark.parametrize("name", ["runtime", "source"])
def test_an_operator_may_have_any_name(name: str) -> None:
    # `runtime` and `source` are valid names in op.toml; their kernels are not host runtimes or sources.
    kernel = f"{name}.float32.general.{TARGET}.halide"
    artifacts = {kernel: "sha256:" + "1" * 64, "source.tar": "sha256:" + "3" * 64}
    found = signing.passport(artifacts, [kernel_record(kernel, artifacts[kernel])], reference=f"{name}@1.0.0")
    assert verify(found, reference=f"{name}@1.0.0", artifacts=artifacts).reference == f"{name}@1.0.0"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["passed"], "passed"),
        (["passed", "passed"], "passed"),
        (["not_run"], "not_run"),
        (["not_run", "not_run"], "not_run"),
        (["passed", "not_run"], "failed"),
        (["passed", "crashed"], "failed"),
        (["not_built"], "failed"),
        (["not_run", "not_built"], "failed"),
        ([], "failed"),
    ],
)
def test_the_verdict_follows_from_the_kernels(verdicts: list[str], expected: str) -> None:
    # verification.py: passed where every kernel passed, not_run where none could run, else failed.
    records = [KernelRecord.model_validate(kernel_record("k", None, verdict=verdict)) for verdict in verdicts]
    assert expected_verdict(records) == expected
