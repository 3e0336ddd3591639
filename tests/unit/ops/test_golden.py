from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper, numpy_helper

from hfreg.arrays import Array
from hfreg.errors import ManifestError, RunError
from hfreg.ops.golden import GoldenCase, read_golden, write_golden
from hfreg.ops.manifest import Manifest
from hfreg.ops.package import load_manifest, read_files
from unit import samples
from unit.samples import golden_files, write_files

UNARY = samples.manifest(samples.UNARY)
RELU = samples.manifest(samples.UNARY, operator="Relu")
GEMM = load_manifest(
    samples.manifest_text(
        """
[types]
T = ["float32"]

[inputs.a]
type = "T"
shape = "m k"

[inputs.b]
type = "T"
shape = "k n"

[inputs.c]
type = "T"
shape = "n"
optional = true

[outputs.y]
type = "T"
shape = "m n"

[attributes.alpha]
type = "float"
default = 1.0

[accuracy]
bound = "E4"
""",
        operator="Gemm",
        since_versions=(11, 13),
    ),
    "op.toml",
)


def read(root: Path, manifest: Manifest) -> list[GoldenCase]:
    return list(read_golden(read_files(root), manifest))


def write(
    root: Path, name: str, manifest: Manifest, inputs: list[Array | None], *outputs: Array, **attributes: float
) -> None:
    write_golden(root / "golden" / name, manifest, inputs, outputs, attributes=attributes, source="by hand")


def problem(files: dict[str, bytes], manifest: Manifest = UNARY) -> str:
    with pytest.raises(ManifestError) as caught:
        list(read_golden(files, manifest))
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].where == "sample/golden/a"
    return caught.value.problems[0].message


def same(a: Array | None, b: Array | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_a_case_of_another_writer_is_read() -> None:
    (case,) = read_golden(golden_files(), UNARY)
    assert case.name == "a"
    assert case.source == "a calculation by hand"
    assert case.attributes == {}
    np.testing.assert_array_equal(case.inputs, [np.array([-1, 0, 2], np.float32)])
    np.testing.assert_array_equal(case.outputs, [np.array([0, 0, 2], np.float32)])


kinds = st.sampled_from(["float32", "float16", "float64", "int8", "uint16", "int64", "uint64", "bool"])


@given(
    kinds.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))),
)
def test_a_case_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, array: Array) -> None:
    root = tmp_path_factory.mktemp("golden")
    write(root, "some-case", UNARY, [array], array[::-1] if array.ndim else array)
    (case,) = read(root, UNARY)
    assert (case.name, case.source) == ("some-case", "by hand")
    assert same(case.inputs[0], array)
    assert same(case.outputs[0], np.ascontiguousarray(array[::-1]) if array.ndim else array)


def test_bfloat16_nan_and_minus_zero_keep_their_bits(tmp_path: Path) -> None:
    bits = np.array([0x8000, 0x7FC1, 0xFF80, 0x0001], np.uint16)
    write(tmp_path, "bits", UNARY, [bits.view(ml_dtypes.bfloat16)], bits.view(np.float16))
    (case,) = read(tmp_path, UNARY)
    assert case.inputs[0] is not None
    assert case.inputs[0].dtype == ml_dtypes.bfloat16
    assert case.inputs[0].view(np.uint16).tolist() == bits.tolist()
    assert case.outputs[0].view(np.uint16).tolist() == bits.tolist()


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for place in ("one", "two"):
        write(tmp_path / place, "a", GEMM, [x, x.T, None], x @ x.T, alpha=0.5)
    assert read_files(tmp_path / "one") == read_files(tmp_path / "two")
    assert set(read_files(tmp_path / "one")) == {
        "golden/a/model.onnx",
        "golden/a/test_data_set_0/input_0.pb",
        "golden/a/test_data_set_0/input_1.pb",
        "golden/a/test_data_set_0/output_0.pb",
    }


def test_an_absent_input_and_attributes_come_back(tmp_path: Path) -> None:
    x = np.ones((2, 2), np.float32)
    write(tmp_path, "plain", GEMM, [x, x, None], x)
    write(tmp_path, "scaled", GEMM, [x, x, x[0]], x, alpha=0.5)
    plain, scaled = read(tmp_path, GEMM)
    assert plain.inputs[2] is None and len(plain.inputs) == 3
    assert plain.attributes == {"alpha": 1.0}
    assert same(scaled.inputs[2], x[0])
    assert scaled.attributes == {"alpha": 0.5}


def test_an_absent_input_in_the_middle_has_an_empty_name(tmp_path: Path) -> None:
    manifest = samples.manifest(samples.BROADCAST.replace("[inputs.b]", "[inputs.b]\noptional = true"))
    x = np.ones(2, np.float32)
    write(tmp_path, "gap", manifest, [x, None, 2 * x], 3 * x)
    model = onnx.load(tmp_path / "golden/gap/model.onnx")
    assert list(model.graph.node[0].input) == ["a", "", "c"]
    assert [value.name for value in model.graph.input] == ["a", "c"]
    (case,) = read(tmp_path, manifest)
    assert same(case.inputs[0], x) and case.inputs[1] is None and same(case.inputs[2], 2 * x)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_another_runtime_runs_a_case_and_finds_the_stored_output(tmp_path: Path, alpha: float) -> None:
    # onnxruntime is the witness; the sums of small integers are exact.
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    write(tmp_path, "gemm", GEMM, [a, b, b[0]], np.float32(alpha) * (a @ b) + b[0], alpha=alpha)
    folder = tmp_path / "golden" / "gemm"
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    data = folder / "test_data_set_0"
    feeds = {}
    for position, value in enumerate(session.get_inputs()):
        tensor = onnx.TensorProto.FromString((data / f"input_{position}.pb").read_bytes())
        assert tensor.name == value.name
        feeds[value.name] = numpy_helper.to_array(tensor)
    (got,) = session.run(None, feeds)
    expected = numpy_helper.to_array(onnx.TensorProto.FromString((data / "output_0.pb").read_bytes()))
    np.testing.assert_array_equal(got, expected)


def test_the_model_is_valid_and_asks_for_the_newest_version_that_the_package_has(tmp_path: Path) -> None:
    x = np.array([1], np.float32)
    write(tmp_path, "a", RELU, [x], x)
    model = onnx.load(tmp_path / "golden/a/model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 13)]


def test_an_element_type_that_hfreg_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="complex64 is no element type of hfreg") as caught:
        write(tmp_path, "a", UNARY, [np.ones(2, np.complex64)], np.ones(2, np.float32))
    assert caught.value.where == "x"


def test_several_data_sets_of_one_model_are_several_cases() -> None:
    files = golden_files()
    for name, content in golden_files().items():
        files[name.replace("test_data_set_0", "test_data_set_1")] = content
    assert [case.name for case in read_golden(files, UNARY)] == ["a", "a-1"]


def test_cases_come_in_the_order_of_their_names() -> None:
    files = (
        golden_files(folder="golden/b") | golden_files(folder="golden/a") | {"golden/README.md": b"", "op.toml": b""}
    )
    assert [case.name for case in read_golden(files, UNARY)] == ["a", "b"]
    assert list(read_golden({}, UNARY)) == []


def test_a_case_of_another_operator_is_refused() -> None:
    assert problem(golden_files("Relu")) == "the node is ai.onnx::Relu, expected ai.onnx::Sample"


def test_a_model_of_several_nodes_is_refused() -> None:
    files = golden_files()
    model = onnx.load_model_from_string(files["golden/a/model.onnx"])
    model.graph.node.append(helper.make_node("Sample", ["y"], ["z"]))
    files["golden/a/model.onnx"] = model.SerializeToString()
    assert problem(files) == "the model has 2 nodes, a golden test has one"


def test_an_attribute_that_the_package_does_not_have_is_refused() -> None:
    files = golden_files()
    model = onnx.load_model_from_string(files["golden/a/model.onnx"])
    model.graph.node[0].attribute.append(helper.make_attribute("axis", 1))
    files["golden/a/model.onnx"] = model.SerializeToString()
    assert "sample has no attribute 'axis'" in problem(files)


@pytest.mark.parametrize("name", list(golden_files()))
def test_a_file_that_is_missing_or_broken_is_reported(name: str) -> None:
    missing = {key: content for key, content in golden_files().items() if key != name}
    assert problem(missing) == f"there is no {name}"
    assert "cannot be read" in problem(golden_files() | {name: b"\xff"})


def test_text_attributes_are_read_as_text(tmp_path: Path) -> None:
    manifest = samples.manifest(
        samples.UNARY + '[attributes.mode]\ntype = "string"\ndefault = "a"\nallowed = ["a"]\n'
        '[attributes.pads]\ntype = "ints"\nlength = 2\ndefault = [0, 0]\n'
    )
    x = np.ones(1, np.float32)
    write_golden(tmp_path / "golden/a", manifest, [x], [x], attributes={"mode": "a", "pads": [1, 2]}, source="s")
    (case,) = read(tmp_path, manifest)
    assert case.attributes == {"mode": "a", "pads": [1, 2]}


def test_a_tensor_kept_outside_its_file_is_refused_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A package is what its digest covers; a tensor that points to another file would be data from somewhere else.
    monkeypatch.chdir(write_files(tmp_path, {"secret": b"\0" * 12}))
    files = golden_files()
    tensor = onnx.TensorProto(name="x", data_type=onnx.TensorProto.FLOAT, dims=[3])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret")
    files["golden/a/test_data_set_0/input_0.pb"] = tensor.SerializeToString()
    assert "cannot be read" in problem(files)
