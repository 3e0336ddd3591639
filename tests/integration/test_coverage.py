"""Coverage of real models: every node counted as an independent walk counts it, and a true reason for every gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import pytest

from hfreg.kernels.targets import targets
from integration.surface import Result, hfreg_here, host

pytestmark = pytest.mark.build

MODELS = {
    "silero_vad": ("data/silero_vad.onnx", "data/silero_vad_half.onnx", "data/silero_vad_16k_op15.onnx"),
    "rapidocr_onnxruntime": (
        "models/ch_PP-OCRv4_det_infer.onnx",
        "models/ch_PP-OCRv4_rec_infer.onnx",
        "models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    ),
}
PUBLISHED = {
    "Add", "Conv", "Gelu", "LayerNormalization", "MatMul", "MaxPool", "QuantizeLinear", "RMSNormalization", "Relu",
    "Softmax",
}  # fmt: skip
CODES = {"no-package", "since-version", "signature", "attribute", "type", "shape", "failed", "untested", "unsupported"}


def path_of(package: str, name: str) -> Path:
    """A model inside an installed package, which is not imported."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"needs the package {package}, installed without its dependencies")
    return Path(found.submodule_search_locations[0]) / name


@pytest.fixture(params=[(package, name) for package, names in MODELS.items() for name in names], ids=lambda p: p[1])
def model(request: pytest.FixtureRequest) -> Path:
    return path_of(*request.param)


def walk(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes of a graph and of the graphs inside its nodes' attributes."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            value = onnx.helper.get_attribute_value(attribute)
            if isinstance(value, onnx.GraphProto):
                yield from walk(value)
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for inner in value:
                    yield from walk(inner)


def all_nodes(path: Path) -> list[onnx.NodeProto]:
    proto = onnx.load(path)
    assert not proto.functions
    return list(walk(proto.graph))


def run(model: Path, registry: Path, *extra: str) -> Result:
    result = hfreg_here("coverage", model, "--target", host(), "--registry", registry, *extra)
    assert result.status == 0, str(result)
    return result


def coverage(model: Path, registry: Path) -> dict[str, Any]:
    [report] = run(model, registry, "--json").json()
    assert isinstance(report, dict)
    return report


def test_every_node_is_counted_once(model: Path, ten: Path) -> None:
    report, nodes = coverage(model, ten), all_nodes(model)
    counted = Counter(decision["operator"] for decision in report["decisions"])
    assert counted == Counter(node.op_type for node in nodes)
    assert report["nodes"]["nTotal"] == len(nodes)
    assert report["operatorTypes"]["nTotal"] == len({node.op_type for node in nodes})


def test_c_is_what_its_formula_says(model: Path, ten: Path) -> None:
    report = coverage(model, ten)
    served = [decision for decision in report["decisions"] if decision["kernel"]]
    types: dict[str, list[bool]] = {}
    for decision in report["decisions"]:
        types.setdefault(decision["operator"], []).append(decision["kernel"] is not None)
    for ratio, support in (
        (report["nodes"], len(served)),
        (report["operatorTypes"], sum(all(entries) for entries in types.values())),
    ):
        assert (ratio["nSupport"], ratio["nCustom"]) == (support, 0), "these models have ONNX operators only"
        assert ratio["coverage"] == pytest.approx((ratio["nSupport"] + ratio["nCustom"]) / ratio["nTotal"], abs=1e-6)
    assert sum(report["served"].values()) == len(served)
    assert len(served) + sum(gap["nodes"] for gap in report["gaps"]) == len(report["decisions"])


def test_every_gap_has_a_reason(model: Path, ten: Path) -> None:
    report = coverage(model, ten)
    for gap in report["gaps"]:
        assert gap["code"] in CODES
        assert gap["detail"]
        assert gap["example"].startswith("main/")
        assert (gap["code"] == "no-package") == (gap["operator"] not in PUBLISHED), gap
    for decision in report["decisions"]:
        assert (decision["kernel"] is None) <= bool(decision["rejected"])


def test_the_text_says_the_same(model: Path, ten: Path) -> None:
    report, text = coverage(model, ten), run(model, ten).out
    nodes = report["nodes"]
    assert f"nodes: C = ({nodes['nSupport']} + 0) / {nodes['nTotal']} = {nodes['coverage']:.1%}" in text
    for gap in report["gaps"]:
        assert gap["operator"] in text and gap["detail"] in text


def inferred(path: Path) -> tuple[onnx.ModelProto, dict[str, onnx.TypeProto.Tensor]]:
    """A model without subgraphs, and what `onnx.shape_inference` finds out about its values."""
    proto = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    infos = (*proto.graph.input, *proto.graph.value_info, *proto.graph.output)
    values = {info.name: info.type.tensor_type for info in infos}
    for tensor in proto.graph.initializer:
        values[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims).tensor_type
    for node in proto.graph.node:
        if node.op_type == "Constant" and node.attribute[0].type == onnx.AttributeProto.TENSOR:
            tensor = node.attribute[0].t
            values[node.output[0]] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims).tensor_type
    return proto, values


@pytest.mark.parametrize("name", MODELS["rapidocr_onnxruntime"])
def test_elementwise_nodes_are_served_where_their_types_and_ranks_are_known(name: str, ten: Path) -> None:
    path = path_of("rapidocr_onnxruntime", name)
    proto, values = inferred(path)
    served = Counter(d["operator"] for d in coverage(path, ten)["decisions"] if d["kernel"])
    for operator in ("Relu", "Add"):
        known = [
            node
            for node in proto.graph.node
            if node.op_type == operator
            and all(
                value in values
                and values[value].elem_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
                and values[value].HasField("shape")
                for value in node.input
            )
        ]
        assert served[operator] == len(known)


def test_nodes_inside_subgraphs_say_where_they_are(ten: Path) -> None:
    report = coverage(path_of("silero_vad", "data/silero_vad.onnx"), ten)
    paths = [decision["node"] for decision in report["decisions"]]
    assert any(".then_branch/" in path for path in paths) and any(".else_branch/" in path for path in paths)
    assert len(set(paths)) == len(paths)


def test_a_1d_convolution_is_refused_for_its_attributes(ten: Path) -> None:
    report = coverage(path_of("silero_vad", "data/silero_vad.onnx"), ten)
    gaps = [gap for gap in report["gaps"] if gap["operator"] == "Conv"]
    assert [gap["code"] for gap in gaps] == ["attribute"]
    assert "expected 2 integers" in gaps[0]["detail"]


def test_every_target_is_asked(ten: Path) -> None:
    path = path_of("rapidocr_onnxruntime", MODELS["rapidocr_onnxruntime"][2])
    reports = hfreg_here("coverage", path, "--registry", ten, "--json").json()
    assert {report["target"] for report in reports} == set(targets())
    for report in reports:
        codes = {gap["code"] for gap in report["gaps"] if gap["operator"] == "Relu"}
        known = targets()[report["target"]]
        expected = set() if report["target"] == host() else {"untested" if known.is_available else "planned"}
        assert codes == expected, report["target"]
        assert (report["nodes"]["nSupport"] > 0) == (report["target"] == host())


def test_a_model_that_is_none(ten: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    result = hfreg_here("coverage", tmp_path / "model.onnx", "--registry", ten)
    assert result.status == 2
    assert "not an ONNX model" in result.err
