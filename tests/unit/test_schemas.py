"""The published JSON Schemas are those of the code, describe themselves, and take and refuse the right documents."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from hfreg.cli.main import cli
from hfreg.errors import BuildError
from hfreg.evaluation.environment import describe_machine
from hfreg.evaluation.results import DataSetResult, Failure, KernelEvaluation
from hfreg.kernels.artifact import Kernel, KernelKey
from hfreg.kernels.build import Failed
from hfreg.kernels.targets import target
from hfreg.passports.issue import KernelFindings, TargetFindings, make_verification
from hfreg.passports.predicates.verification import Peaks, PerformanceRecord
from unit import publishing

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    "op": ROOT / "ops" / "op.schema.json",
    "verification": ROOT / "passports" / "operator-verification" / "v1.schema.json",
}
PACKAGES = sorted(path.parent.name for path in (ROOT / "ops").glob("[a-z]*/op.toml"))
DIGEST = "sha256:" + "5" * 64
IN_WORDS = {"OperatorIdentity", "FailureRecord", "DataSetRecord", "PerformanceRecord", "Peaks", "Environment"}
"""Objects whose fields the specification describes in words."""


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(SCHEMAS[name].read_text()))


def errors(name: str, document: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(document)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_file_is_what_the_command_prints(name: str) -> None:
    result = CliRunner().invoke(cli, ["schema", name])
    assert result.exit_code == 0
    assert SCHEMAS[name].read_text() == result.output, f"write it again: hfreg schema {name} > {SCHEMAS[name]}"


@pytest.mark.parametrize("name", SCHEMAS)
def test_it_is_a_schema(name: str) -> None:
    schema = json.loads(SCHEMAS[name].read_text())
    Draft202012Validator.check_schema(schema)
    assert schema["$id"].startswith("https://")


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every object of a schema with each of its fields."""
    for name, entry in {schema["title"]: schema, **schema.get("$defs", {})}.items():
        for field in entry.get("properties", {}):
            yield name, field


def test_every_field_of_op_toml_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "op-package.md").read_text()
    missing = [
        f"{owner}.{field}"
        for owner, field in properties(json.loads(SCHEMAS["op"].read_text()))
        if not any(form in text for form in (f"`{field}`", f"[{field}]", f"[{field}."))
    ]
    assert missing == []


def test_every_field_of_the_predicate_is_in_its_specification() -> None:
    texts = [ROOT / "passports" / "operator-verification" / "v1.md", ROOT / "docs" / "measuring.md"]
    text = "".join(path.read_text() for path in texts)
    missing = [
        f"{owner}.{field}"
        for owner, field in properties(json.loads(SCHEMAS["verification"].read_text()))
        if owner not in IN_WORDS and f"`{field}`" not in text and f".{field}`" not in text
    ]
    assert missing == []


def test_there_are_packages() -> None:
    assert len(PACKAGES) >= 10


@pytest.mark.parametrize("name", PACKAGES)
def test_the_manifests_of_the_packages_validate(name: str) -> None:
    assert errors("op", tomllib.loads((ROOT / "ops" / name / "op.toml").read_text())) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"colour": "red"}, "$"),
        ({"schema": 2}, "$.schema"),
        ({"name": "Softmax"}, "$.name"),
        ({"types": {"T": ["float33"]}}, "$.types.T[0]"),
        ({"accuracy": {"bound": "E9"}}, "$.accuracy.bound"),
        ({"inputs": {}}, "$.inputs"),
    ],
)
def test_a_wrong_manifest_does_not_validate(change: dict[str, Any], place: str) -> None:
    document = tomllib.loads((ROOT / "ops" / "relu" / "op.toml").read_text()) | change
    assert [error.json_path for error in validator("op").iter_errors(document)] == [place]


def predicate() -> dict[str, Any]:
    """The predicate that the pipeline makes of a kernel that passed, one that failed and one that was not built."""
    package = publishing.load()
    key = KernelKey("sample", (("T", "float32"),), "general", "x86_64-v4", "halide")
    other = KernelKey("sample", (("T", "float16"),), "general", "x86_64-v4", "halide")
    good = DataSetResult("D1", 18, 0, 5000, 0.4, 1.5, 0.3, -0.01, ())
    bad = DataSetResult("D2", 48, 1, 900, float("inf"), 3.0, 0.3, 0.0, (Failure("D2/x-nan", "wrong_result", "at [0]"),))
    times = PerformanceRecord(
        workload="w", shapes={"x": [4]}, threads=1, rounds=7, median_ns=10.0, p10_ns=9.0, p90_ns=12.0, mad_ns=0.5,
        bytes=32.0, bandwidth_gb_s=3.2, peak_bandwidth_gb_s=7.0, bandwidth_use=0.45,
    )  # fmt: skip
    kernels = (
        KernelFindings(Kernel(key, b"kernel"), KernelEvaluation("passed", (good,), "0" * 32, DIGEST), (times,)),
        KernelFindings(Kernel(other, b"other"), KernelEvaluation("wrong_result", (good, bad), "0" * 32, DIGEST)),
        KernelFindings(Failed(KernelKey("sample", (("T", "float16"),), "general", "x86_64-v4", "c"), BuildError("no"))),
    )
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    findings = TargetFindings(
        package=package, target=target("x86_64-v4"), kernels=kernels, artifacts={"source.tar": DIGEST}, tools=(),
        evaluator=DIGEST, machine=describe_machine(), started=now, finished=now,
        peaks=(Peaks(threads=1, gflop_s=89.0, bandwidth_gb_s=7.4),),
    )  # fmt: skip
    return make_verification(findings).model_dump(mode="json", by_alias=True)


def test_a_predicate_of_the_pipeline_validates() -> None:
    made = predicate()
    assert [kernel["verdict"] for kernel in made["kernels"]] == ["passed", "wrong_result", "not_built"]
    assert errors("verification", made) == []


def test_unknown_fields_of_a_predicate_are_allowed() -> None:
    made = predicate()
    made["kernels"][0]["carbonFootprintGrams"] = 3
    assert errors("verification", made) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdict",), "splendid"),
        (("package",), "sha512:00"),
        (("kernels", 0, "verdict"), "fine"),
        (("kernels", 0, "dataSets", 0, "cases"), "many"),
        (("finishedOn",), "yesterday"),
        (("environment",), None),
    ],
)
def test_a_wrong_predicate_does_not_validate(path: tuple[str | int, ...], value: Any) -> None:
    made = copy.deepcopy(predicate())
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert errors("verification", made) != []
