from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from hfreg.errors import UsageError, VerificationError
from hfreg.kernels.targets import targets
from hfreg.matrix.cells import VersionEvidence
from hfreg.matrix.export import export_matrix
from hfreg.matrix.matrix import Matrix, ReasonCode, Rejection, Request
from hfreg.passports.keys import TrustedKeys
from hfreg.registry.artifact import OperatorArtifact
from hfreg.registry.registry import Registry
from unit import publishing, samples, signing
from unit.matrix.made import V3, matrix, operator, request

UNARY = operator(samples.UNARY)
SOFTMAX = operator(samples.SOFTMAX)
BROADCAST = operator(samples.BROADCAST)
CAST = operator(
    samples.UNARY.replace('T = ["float32", "float16"]', 'T = ["float32"]\nU = ["float16", "int32"]').replace(
        '[outputs.y]\ntype = "T"', '[outputs.y]\ntype = "U"'
    )
    + '[attributes.to]\ntype = "int"\ndefault = 0\ntype_of = "U"\n'
)
MODE = '[attributes.mode]\ntype = "string"\ndefault = "a"\nallowed = ["a", "b"]\n[[classes]]\nname = "a"\n'
MODES = operator(samples.UNARY + MODE + 'attributes = { mode = "a" }\n')


def rejected(version: VersionEvidence, target: str = V3, **changes: Any) -> Rejection:
    decision = matrix(version).resolve(request(**changes), target)
    assert decision.cell is None
    assert decision.reason is not None
    assert decision.rejected == (decision.reason,)
    return decision.reason


def test_a_verified_kernel_serves() -> None:
    decision = matrix(UNARY).resolve(request(), V3)
    assert decision.cell is not None
    assert decision.cell.serving is not None
    assert decision.cell.serving.name == f"sample.float32.general.{V3}.halide"
    assert decision.rejected == ()
    assert decision.reason is None


CASES: list[tuple[str, VersionEvidence, dict[str, Any], str]] = [
    ("no-package", UNARY, {"operator": "Other"}, "no published package has it"),
    ("no-package", UNARY, {"domain": "com.example"}, "no published package has it"),
    ("since-version", UNARY, {"since_version": 6}, "version 6 of the operator, the package has 1, 13"),
    ("signature", UNARY, {"types": ("float32",) * 2, "shapes": ((2,),) * 2}, "2 inputs, the package has 1"),
    ("signature", UNARY, {"outputs": 2}, "2 outputs are used, the package has 1"),
    ("signature", UNARY, {"types": (), "shapes": ()}, "the input 'x' is missing"),
    ("signature", UNARY, {"types": (None,), "shapes": (None,)}, "the input 'x' is missing"),
    ("signature", BROADCAST, {}, "the input 'b' is missing"),
    ("attribute", UNARY, {"attributes": {"axis": 1}}, "sample has no attribute 'axis'"),
    ("attribute", SOFTMAX, {"attributes": {"axis": "1"}}, "expected one int, got '1'"),
    ("attribute", MODES, {"attributes": {"mode": "c"}}, "'c' is not served; served: 'a', 'b'"),
    ("attribute", SOFTMAX, {"attributes": {"axis": "?"}}, "the value of axis is not known"),
    ("type", UNARY, {"types": ("int32",)}, "x is int32, served: float32, float16"),
    ("type", UNARY, {"types": ("?",)}, "the element type of x is not known"),
    ("type", UNARY, {"types": ("string",)}, "x is string, served: float32, float16"),
    (
        "type",
        BROADCAST,
        {"types": ("float32", "int32"), "shapes": ((2,), (2,))},
        "b is int32, but another input of type T is float32",
    ),
    ("type", CAST, {"attributes": {"to": 11}}, "to asks for float64, served: float16, int32"),  # TensorProto.DOUBLE
    ("type", CAST, {"attributes": {"to": 99}}, "to asks for 99, served: float16, int32"),
    ("shape", UNARY, {"shapes": (None,)}, "the rank of x is not known"),
    ("shape", UNARY, {"shapes": ()}, "the rank of x is not known"),
    ("shape", SOFTMAX, {"attributes": {"axis": 2}}, "axis is 2, expected -2 to 1: x has 2 axes"),
    ("shape", SOFTMAX, {"shapes": ((),)}, "x has shape [], expected [outer... n inner...]"),
    (
        "shape",
        BROADCAST,
        {"types": ("float32", "float32"), "shapes": ((2,), (3,))},
        "b has shape [3], expected [i...]: i is [2] in a",
    ),
    ("shape", MODES, {"attributes": {"mode": "b"}}, "mode is 'b', expected 'a'"),
    ("failed", operator(samples.UNARY, "crashed"), {}, "crashed"),
    ("untested", operator(samples.UNARY, "not_run"), {}, "the machine that signed could not run it"),
    ("unsupported", operator(samples.UNARY, {"float16": "passed"}), {}, "the package has no kernel for it"),
]


@pytest.mark.parametrize(
    ("code", "version", "changes", "detail"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_a_node_that_nothing_serves_is_told_why(
    code: str, version: VersionEvidence, changes: dict[str, Any], detail: str
) -> None:
    reason = rejected(version, **changes)
    assert reason.code == code
    assert detail in reason.detail
    expected = {"no-package": {"ai.onnx::Other", "com.example::Sample"}}.get(code, {"sample@1.0.0"})
    assert reason.candidate in expected


def test_a_planned_target_serves_nothing() -> None:
    reason = rejected(UNARY, "aether")
    assert (reason.code, reason.detail) == ("planned", "the target is planned")


def test_a_target_without_a_passport_is_untested() -> None:
    reason = rejected(UNARY, "x86_64-v4")
    assert (reason.code, reason.detail) == ("untested", "published without kernels for this target")


def test_there_is_a_test_for_each_reason_code() -> None:
    assert {case[0] for case in CASES} | {"planned"} == set(get_args(ReasonCode))


def test_an_unknown_target_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="unknown target 'z80'") as caught:
        matrix(UNARY).resolve(request(), "z80")
    assert caught.value.hint == "known: x86_64-v3, x86_64-v4, aether"


def serving(version: VersionEvidence, **changes: Any) -> str:
    decision = matrix(version).resolve(request(**changes), V3)
    assert decision.cell is not None, decision.reason
    assert decision.cell.serving is not None
    return decision.cell.serving.name


@pytest.mark.parametrize(
    ("version", "changes", "kernel"),
    [
        (UNARY, {"types": ("float16",)}, "float16.general"),
        (UNARY, {"shapes": ((None, None),)}, "float32.general"),
        (UNARY, {"since_version": 1}, "float32.general"),
        (UNARY, {"shapes": ((),)}, "float32.general"),
        (SOFTMAX, {}, "float32.last"),
        (SOFTMAX, {"attributes": {"axis": 0}}, "float32.inner"),
        (SOFTMAX, {"attributes": {"axis": 1}}, "float32.last"),
        (SOFTMAX, {"attributes": {"axis": -2}, "shapes": ((None, 3),)}, "float32.inner"),
        (BROADCAST, {"types": ("int32", "int32"), "shapes": ((2, 1), (3,))}, "int32.general"),
        (BROADCAST, {"types": ("int32",) * 3, "shapes": ((2,), (1,), ())}, "int32.general"),
        (BROADCAST, {"types": ("int32", "int32", None), "shapes": ((2,), (1,), None)}, "int32.general"),
        (CAST, {}, "float32-float16.general"),
        (CAST, {"attributes": {"to": 6}}, "float32-int32.general"),  # TensorProto.INT32
        (MODES, {"attributes": {"mode": "a"}}, "float32.a"),
    ],
)
def test_types_attributes_and_shapes_choose_the_kernel(
    version: VersionEvidence, changes: dict[str, Any], kernel: str
) -> None:
    assert serving(version, **changes) == f"sample.{kernel}.{V3}.halide"


def test_an_output_that_the_node_does_not_use_does_not_matter() -> None:
    assert serving(UNARY, outputs=0)


VERSIONS = ["1.0.0", "1.9.0", "1.10.0"]


@pytest.mark.parametrize("order", [VERSIONS, VERSIONS[::-1]], ids=["ascending", "descending"])
def test_the_highest_version_that_can_serves(order: list[str]) -> None:
    found = matrix(*(operator(samples.UNARY, version=version) for version in order)).resolve(request(), V3)
    assert found.cell is not None and found.cell.version == "1.10.0"
    assert found.rejected == ()


def test_a_lower_version_serves_where_the_higher_ones_cannot_and_each_says_why() -> None:
    found = matrix(
        operator(samples.UNARY, version="1.0.0"),
        operator(samples.UNARY, "crashed", version="1.1.0"),
        operator(samples.UNARY, version="2.0.0", since_versions=(14,)),
    ).resolve(request(), V3)
    assert found.cell is not None and found.cell.version == "1.0.0"
    assert [(r.candidate, r.code) for r in found.rejected] == [
        ("sample@2.0.0", "since-version"),
        ("sample@1.1.0", "failed"),
    ]
    assert found.reason is None


def test_where_nothing_serves_the_best_candidate_says_why() -> None:
    # matrix.py: "lowest first: the best one gets the last word", and `reason` is "what the last candidate, which got
    # furthest, was rejected for". The newest version fails only in its kernels; the old one is about another operator.
    found = matrix(
        operator(samples.UNARY, version="1.0.0", since_versions=(6,)),
        operator(samples.UNARY, "crashed", version="2.0.0"),
    ).resolve(request(), V3)
    assert found.cell is None
    assert {(r.candidate, r.code) for r in found.rejected} == {
        ("sample@1.0.0", "since-version"),
        ("sample@2.0.0", "failed"),
    }
    assert found.reason == Rejection("sample@2.0.0", "failed", "crashed")


def test_a_lower_version_that_gets_further_says_why() -> None:
    found = matrix(
        operator(samples.UNARY, "crashed", version="1.0.0"),
        operator(samples.UNARY, version="2.0.0", since_versions=(14,)),
    ).resolve(request(), V3)
    assert found.reason == Rejection("sample@1.0.0", "failed", "crashed")


def test_a_pre_release_does_not_serve_where_a_release_does() -> None:
    # versions.py: a pre-release is admitted only where it is named exactly, and a node names none.
    found = matrix(operator(samples.UNARY), operator(samples.UNARY, version="2.0.0-rc.1")).resolve(request(), V3)
    assert found.cell is not None and found.cell.version == "1.0.0"


def test_operators_of_several_packages_and_domains_are_kept_apart() -> None:
    found = matrix(
        operator(samples.UNARY, name="relu", onnx="Relu"),
        operator(samples.UNARY, name="gelu", onnx="Gelu", domain="com.microsoft", since_versions=(1,)),
    )
    chosen = found.resolve(request(operator="Relu"), V3).cell
    assert chosen is not None and chosen.operator == "relu"
    chosen = found.resolve(request(operator="Gelu", domain="com.microsoft", since_version=1), V3).cell
    assert chosen is not None and chosen.operator == "gelu"
    reason = found.resolve(request(operator="Gelu", since_version=1), V3).reason
    assert reason == Rejection("ai.onnx::Gelu", "no-package", "no published package has it")
    reason = found.resolve(request(operator="Relu", domain="com.microsoft"), V3).reason
    assert reason is not None and reason.candidate == "com.microsoft::Relu"


@pytest.mark.parametrize("kernel_shape", [[1.5], ["3"], [None]], ids=str)
def test_an_attribute_of_the_wrong_form_is_a_rejection_and_no_crash(kernel_shape: list[Any]) -> None:
    # What a model's node says is data: a list of floats for `ints` is an attribute that no package serves.
    pool = operator(samples.POOL)
    asked = request(attributes={"kernel_shape": kernel_shape}, shapes=((1, 2, 9),))
    reason = matrix(pool).resolve(asked, V3).reason
    assert reason is not None and reason.code == "attribute"


def test_a_request_can_be_asked_without_any_version() -> None:
    assert matrix().resolve(request(), V3).reason == Rejection(
        "ai.onnx::Sample", "no-package", "no published package has it"
    )
    assert matrix().cells == []


# A matrix of a registry


@pytest.fixture
def root(tmp_path: Path) -> Path:
    artifact = publishing.artifact_of(publishing.load())
    Registry(tmp_path).publish(artifact, publishing.passports_of(artifact))
    return tmp_path


def test_the_matrix_of_a_registry_has_its_verified_cells(root: Path) -> None:
    found = Matrix.open(root, trusted=signing.TRUSTED)
    assert {target.name for target in found.targets} == set(targets())
    verified = [(c.operator, dict(c.types), c.target) for c in found.cells if c.state == "verified"]
    assert verified == [("sample", {"T": kind}, V3) for kind in ("float16", "float32")]
    decision = found.resolve(request(), V3)
    assert decision.cell is not None and decision.cell.serving is not None
    assert decision.cell.serving.digest == signing.digest(b"kernel/sample/float32/x86_64-v3")


def test_a_version_whose_signer_is_not_trusted_is_left_out_and_said_so(root: Path) -> None:
    found = Matrix.open(root, trusted=TrustedKeys({"other": next(iter(signing.TRUSTED.keys.values()))}))
    assert found.cells == []
    assert list(found.left_out) == ["sample@1.0.0"]
    assert "is not trusted here" in found.left_out["sample@1.0.0"]
    assert found.resolve(request(), V3).cell is None
    (entry,) = export_matrix(found)["leftOut"]
    assert entry["reference"] == "sample@1.0.0"


def test_a_stranger_in_the_registry_takes_nothing_from_the_others(root: Path) -> None:
    stranger = publishing.load(name="other")
    artifact = publishing.artifact_of(stranger)
    Registry(root).publish(artifact, publishing.passports_of(artifact, key=signing.STRANGER))
    found = Matrix.open(root, trusted=signing.TRUSTED)
    assert list(found.left_out) == ["other@1.0.0"]
    assert {cell.operator for cell in found.cells} == {"sample"}
    assert any(cell.state == "verified" for cell in found.cells)


def test_trusting_nobody_is_not_the_same_as_asking_for_the_machines_keys(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hfreg.matrix.matrix.trusted_keys", lambda: signing.TRUSTED)
    assert Matrix.open(root).cells
    assert Matrix.open(root, trusted=TrustedKeys({})).cells == []


def test_whoever_can_write_the_registry_cannot_make_a_kernel_serve_another_operator(tmp_path: Path) -> None:
    # No key is needed to write the config's op.toml; the passports, honest ones, are about the Sample operator.
    artifact = publishing.artifact_of(publishing.load())
    manifest = artifact.config.manifest.replace('name = "Sample"', 'name = "Sigmoid"')
    forged = OperatorArtifact(replace(artifact.config, manifest=manifest), artifact.layers)
    Registry(tmp_path).publish(forged, publishing.passports_of(artifact))
    try:
        found = Matrix.open(tmp_path, trusted=signing.TRUSTED)
    except VerificationError:
        return
    assert found.resolve(request(operator="Sigmoid"), V3).cell is None


def test_the_same_passports_give_the_same_document(root: Path) -> None:
    document = export_matrix(Matrix.open(root, trusted=signing.TRUSTED))
    assert document == export_matrix(Matrix.open(root, trusted=signing.TRUSTED))
    assert document["format"] == "https://hfreg.dev/matrix/v1"
    assert document["newestEvidence"] == signing.FINISHED
    assert [entry["name"] for entry in document["operators"]] == ["sample"]
    assert len(document["cells"]) == 2 * len(targets())


def test_a_request_is_a_value() -> None:
    assert request() == Request("", "Sample", 13, {}, ("float32",), ((2, 3),), outputs=1)
