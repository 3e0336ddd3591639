from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from hfreg.passports.predicates import Provenance, Verification
from hfreg.passports.predicates.base import Digest, Timestamp, format_time
from hfreg.passports.predicates.verification import json_schema
from unit import signing

TIMESTAMP, DIGEST = TypeAdapter(Timestamp), TypeAdapter(Digest)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC), "2026-01-31T12:00:05Z"),
        (datetime(2026, 1, 31, 12, 0, 5, 999999, tzinfo=UTC), "2026-01-31T12:00:05Z"),
        (datetime(2026, 1, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))), "2025-12-31T23:30:00Z"),
        (datetime(2024, 2, 29, 23, 59, 59, tzinfo=timezone(timedelta(hours=-1))), "2024-03-01T00:59:59Z"),
    ],
)
def test_times_are_written_in_utc_with_a_z(moment: datetime, text: str) -> None:
    assert format_time(moment) == text


@given(st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_a_time_comes_back_to_the_second(moment: datetime) -> None:
    text = format_time(moment)
    assert TIMESTAMP.validate_python(text) == text
    assert datetime.fromisoformat(text) == moment.replace(microsecond=0)
    assert datetime.fromisoformat(text).tzinfo is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31T12:00:00z",
        "2026-01-31t12:00:00Z",
        "2026-01-31T12:00:00.5Z",
        "2026-01-31T12:00:00+00:00",
        "2026-1-31T12:00:00Z",
        "2026-13-31T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:00Z\n",
        " 2026-01-31T12:00:00Z",
        "\u0662026-01-31T12:00:00Z",
        "0000-01-01T00:00:00Z",
    ],
)
def test_another_form_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        TIMESTAMP.validate_python(text)


@pytest.mark.parametrize(
    "text", ["", "0" * 64, "sha256:" + "0" * 63, "sha256:" + "A" * 64, "sha256:" + "0" * 64 + "\n"]
)
def test_another_form_of_digest_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        DIGEST.validate_python(text)
    assert DIGEST.validate_python("sha256:" + "0" * 64)


KERNEL = "sha256:" + "1" * 64
PERFORMANCE = {
    "workload": "small",
    "shapes": {"x": [2, 3]},
    "attributes": {},
    "threads": 1,
    "rounds": 15,
    "medianNs": 100.0,
    "p10Ns": 90.0,
    "p90Ns": 120.0,
    "madNs": 5.0,
    "peer": "onnxruntime 1.20",
    "peerMedianNs": 130.0,
    "speedup": 1.3,
    "classScheduleMedianNs": None,
    "toolchainEfficiency": None,
    "flop": 6.0,
    "bytes": 48.0,
    "arithmeticIntensityFlopPerByte": 0.125,
    "bandwidthGbS": 0.48,
    "peakBandwidthGbS": 9.6,
    "bandwidthUse": 0.05,
    "rooflineFraction": None,
}
DATA_SET = {
    "dataSet": "D1",
    "cases": 18,
    "failed": 1,
    "elements": 1000,
    "maxErrorRatio": None,
    "maxUlp": 2.0,
    "rmsUlp": 0.5,
    "biasUlp": -0.01,
    "failures": [{"case": "D1/zero-mean-0", "verdict": "wrong_result", "detail": "at [0]"}],
}
WHOLE = signing.verification(
    [
        signing.kernel_record(
            "kernel",
            KERNEL,
            verdict="wrong_result",
            detail="",
            nonce="n",
            seed="s",
            threads=2,
            evaluatedOn="2026-01-31T12:00:00Z",
            dataSets=[DATA_SET],
            performance=[PERFORMANCE],
            notes={"schedule": "class"},
        )
    ]
) | {"peaks": [{"threads": 1, "gflopS": 50.0, "bandwidthGbS": 9.5}]}


def test_every_field_of_a_verification_has_its_lower_camel_case_name() -> None:
    assert Verification.model_validate(WHOLE).model_dump(mode="json", by_alias=True) == WHOLE


def test_provenance_has_the_field_names_of_slsa() -> None:
    value = signing.provenance()
    value["buildDefinition"]["resolvedDependencies"][0]["name"] = ""
    assert Provenance.model_validate(value).model_dump(mode="json", by_alias=True) == value


def test_the_published_schema_accepts_a_verification_and_refuses_another_form() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(WHOLE, schema)
    changes: list[signing.Json] = [{"verdict": "fine"}, {"kernels": [{}]}, {"target": {"name": "x"}}]
    for change in changes:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(WHOLE | change, schema)
