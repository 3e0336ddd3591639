"""Models built here node by node, so that every node can be counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hfreg.errors import UsageError
from hfreg.matrix.matrix import Request
from hfreg.matrix.model import load_model, model_nodes

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name: str, shape: Any = (2, 3), kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def make_model(nodes: list[Any], inputs: list[Any], outputs: list[Any], **more: Any) -> onnx.ModelProto:
    opsets = more.pop("opsets", [("", 17)])
    functions = more.pop("functions", [])
    graph = helper.make_graph(nodes, "g", inputs, outputs, **more)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)


def nodes_of(model: onnx.ModelProto) -> dict[str, Request]:
    """The nodes by their paths; no path is there twice."""
    found = list(model_nodes(model))
    paths = [node.path for node in found]
    assert len(paths) == len(set(paths))
    return {node.path: node.request for node in found}


def load(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return load_model(path)


RELU = helper.make_node("Relu", ["x"], ["y"])
PLAIN = make_model([RELU], [value("x")], [value("y")])


def test_a_node_becomes_a_request_with_its_types_and_shapes() -> None:
    assert nodes_of(PLAIN) == {
        "main/Relu_0": Request("", "Relu", 14, {}, ("float32",), ((2, 3),), outputs=1),
    }


@pytest.mark.parametrize(("opset", "since"), [(6, 6), (12, 6), (13, 13), (14, 14), (17, 14), (21, 14)])
def test_the_version_of_an_operator_is_the_newest_that_the_opset_has(opset: int, since: int) -> None:
    # ONNX's operator list: Relu has the versions 1, 6, 13 and 14.
    model = make_model([RELU], [value("x")], [value("y")], opsets=[("", opset)])
    assert nodes_of(model)["main/Relu_0"].since_version == since


def test_an_opset_that_no_schema_can_have_is_taken_as_it_is() -> None:
    model = make_model([RELU], [value("x")], [value("y")], opsets=[("", 2**40)])
    assert nodes_of(model)["main/Relu_0"].since_version in (14, 2**40)


def test_the_domain_of_onnx_has_two_names() -> None:
    node = helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx")
    model = make_model([node], [value("x")], [value("y")], opsets=[("ai.onnx", 13)])
    request = nodes_of(model)["main/Relu_0"]
    assert (request.domain, request.since_version) == ("", 13)


def test_a_custom_domain_has_its_own_opset() -> None:
    nodes = [
        helper.make_node("Fused", ["x"], ["h"], domain="com.example", alpha=0.5),
        helper.make_node("Relu", ["h"], ["y"], name="last"),
    ]
    model = make_model(nodes, [value("x")], [value("y")], opsets=[("", 17), ("com.example", 3)])
    found = nodes_of(model)
    assert found["main/Fused_0"] == Request(
        "com.example", "Fused", 3, {"alpha": 0.5}, ("float32",), ((2, 3),), outputs=1
    )
    assert found["main/last"].types == ("?",)  # nothing is known of what an unknown operator makes


def test_an_unknown_operator_or_domain_is_a_request_like_any_other() -> None:
    nodes = [
        helper.make_node("NoSuchOperator", ["x"], ["h"]),
        helper.make_node("Other", ["h"], ["y"], domain="not.imported"),
    ]
    found = nodes_of(make_model(nodes, [value("x")], [value("y")]))
    assert (found["main/NoSuchOperator_0"].domain, found["main/NoSuchOperator_0"].since_version) == ("", 17)
    assert (found["main/Other_1"].domain, found["main/Other_1"].since_version) == ("not.imported", 1)


def test_shapes_that_are_missing_in_part_or_whole_are_not_known() -> None:
    inputs = [
        value("a", ("batch", 3)),
        value("b", (None, 4)),
        value("c", None),
        value("d", (0, 5)),
        value("e", ()),
        value("g", (-1, 4)),
        helper.make_value_info("f", helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [1]))),
    ]
    nodes = [helper.make_node("Op", [*"abcdefg", "unknown"], ["y"], domain="x")]
    request = nodes_of(make_model(nodes, inputs, [value("y")]))["main/Op_0"]
    assert request.shapes == ((None, 3), (None, 4), None, (0, 5), (), None, (None, 4), None)
    assert request.types == ("float32",) * 5 + ("?", "float32", "?")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TensorProto.FLOAT16, "float16"),
        (TensorProto.BFLOAT16, "bfloat16"),
        (TensorProto.DOUBLE, "float64"),
        (TensorProto.INT8, "int8"),
        (TensorProto.UINT64, "uint64"),
        (TensorProto.BOOL, "bool"),
        (TensorProto.STRING, "string"),
        (TensorProto.COMPLEX64, "complex64"),
        (TensorProto.FLOAT8E4M3FN, "float8e4m3fn"),
        (TensorProto.UNDEFINED, "?"),
        (99, "?"),
    ],
)
def test_element_types_have_numpys_names(kind: int, name: str) -> None:
    request = nodes_of(make_model([RELU], [value("x", (2,), kind)], [value("y")]))["main/Relu_0"]
    assert request.types == (name,)


def test_absent_inputs_and_unused_outputs_are_told() -> None:
    nodes = [
        helper.make_node("Clip", ["x", "", "high"], ["c"]),
        helper.make_node("Dropout", ["c"], ["y", ""]),
        helper.make_node("Split", ["c"], ["p", "", "q", ""], domain="x"),
        helper.make_node("Sink", ["c"], ["", ""], domain="x"),
    ]
    found = nodes_of(make_model(nodes, [value("x"), value("high", ())], [value("y")]))
    assert found["main/Clip_0"].types == ("float32", None, "float32")
    assert found["main/Clip_0"].shapes == ((2, 3), None, ())
    assert [request.outputs for request in found.values()] == [1, 1, 3, 1]


def test_attributes_have_plain_values() -> None:
    tensor = numpy_helper.from_array(np.ones(2, np.float32))
    node = helper.make_node(
        "Op", ["x"], ["y"], domain="x", i=3, f=0.5, s="text", ints=[1, 2], floats=[0.5, 1.5], t=tensor
    )
    attributes = nodes_of(make_model([node], [value("x")], [value("y")]))["main/Op_0"].attributes
    plain = {"i": 3, "f": 0.5, "s": "text", "ints": [1, 2], "floats": [0.5, 1.5], "t": "t"}
    assert {name: attributes[name] for name in plain} == plain
    assert all(type(item) is int for item in attributes["ints"])  # type: ignore[union-attr]


def test_a_list_of_texts_is_text_like_a_single_one() -> None:
    node = helper.make_node("Op", ["x"], ["y"], domain="x", strings=["a", "b"])
    attributes: Any = nodes_of(make_model([node], [value("x")], [value("y")]))["main/Op_0"].attributes
    assert attributes["strings"] == ["a", "b"]


def test_a_name_that_is_no_text_is_a_request_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(PLAIN.SerializeToString().replace(b"Relu", b"Re\xffu"))
    found = nodes_of(load_model(tmp_path / "model.onnx"))
    assert [request.operator for request in found.values()] == ["Re\ufffdu"]


def test_a_float_attribute_equals_the_number_that_a_manifest_writes() -> None:
    # ONNX stores float32: 0.1 comes back as 0.10000000149..., which a manifest's `allowed = [0.1]` refuses.
    node = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.1)
    attributes = nodes_of(make_model([node], [value("x")], [value("y")]))["main/LeakyRelu_0"].attributes
    assert attributes["alpha"] == 0.1


def test_initializers_and_constants_have_types_and_shapes() -> None:
    weights = numpy_helper.from_array(np.ones((3, 4), np.float32), "w")
    constant = helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(np.ones(4, np.int64)))
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "s"), numpy_helper.from_array(np.zeros(1, np.int64)), [5, 6]
    )
    nodes = [constant, helper.make_node("Op", ["w", "k", "s"], ["y"], domain="x")]
    model = make_model(nodes, [], [value("y")], initializer=[weights], sparse_initializer=[sparse])
    found = nodes_of(model)
    assert list(found) == ["main/Constant_0", "main/Op_1"]
    assert found["main/Op_1"].types == ("float32", "int64", "float32")
    assert found["main/Op_1"].shapes == ((3, 4), (4,), (5, 6))


def branch(name: str, operator: str) -> onnx.GraphProto:
    """A graph of two nodes that uses a value of the graph around it."""
    nodes = [
        helper.make_node(operator, ["x"], [f"{name}_h"]),
        helper.make_node("Add", [f"{name}_h", "w"], [f"{name}_y"], name="sum"),
    ]
    weights = numpy_helper.from_array(np.ones((2, 3), np.float32), "w")
    return helper.make_graph(nodes, name, [], [value(f"{name}_y")], initializer=[weights])


def conditional(name: str = "choice") -> onnx.NodeProto:
    return helper.make_node(
        "If", ["b"], ["y"], name=name, then_branch=branch("t", "Relu"), else_branch=branch("e", "Exp")
    )


def test_the_nodes_of_both_branches_count_once_each() -> None:
    model = make_model(
        [conditional(), helper.make_node("Neg", ["y"], ["z"])], [value("b", (), BOOL), value("x")], [value("z")]
    )
    found = nodes_of(model)
    assert sorted(found) == [
        "main/Neg_1",
        "main/choice",
        "main/choice.else_branch/Exp_0",
        "main/choice.else_branch/sum",
        "main/choice.then_branch/Relu_0",
        "main/choice.then_branch/sum",
    ]
    relu = found["main/choice.then_branch/Relu_0"]
    assert (relu.types, relu.shapes) == (("float32",), ((2, 3),))  # x belongs to the graph around it
    assert found["main/choice.then_branch/sum"].shapes[1] == (2, 3)  # w to its own
    assert found["main/choice"].types == ("bool",)
    assert found["main/choice"].attributes == {"then_branch": "then_branch", "else_branch": "else_branch"}


def test_a_name_inside_a_branch_hides_the_one_outside_and_only_there() -> None:
    inner = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["t_y"])], "t", [], [value("t_y")],
        initializer=[numpy_helper.from_array(np.ones(7, np.float16), "x")],
    )  # fmt: skip
    nodes = [
        helper.make_node("If", ["b"], ["y"], name="c", then_branch=inner, else_branch=branch("e", "Exp")),
        helper.make_node("Neg", ["x"], ["z"]),
    ]
    found = nodes_of(make_model(nodes, [value("b", (), BOOL), value("x")], [value("z")]))
    assert found["main/c.then_branch/Relu_0"].shapes == ((7,),)
    assert found["main/c.then_branch/Relu_0"].types == ("float16",)
    assert found["main/c.else_branch/Exp_0"].shapes == ((2, 3),)
    assert found["main/Neg_1"].types == ("float32",)


def test_branches_within_branches_are_walked() -> None:
    outer = helper.make_graph([conditional("inner")], "o", [], [value("y")])
    node = helper.make_node("If", ["b"], ["z"], name="outer", then_branch=outer, else_branch=branch("f", "Exp"))
    found = nodes_of(make_model([node], [value("b", (), BOOL), value("x")], [value("z")]))
    # outer; inner and its 2 + 2; the 2 of the other branch
    assert len(found) == 1 + (1 + 4) + 2
    assert "main/outer.then_branch/inner.else_branch/Exp_0" in found


def test_a_list_of_graphs_is_walked() -> None:
    node = helper.make_node("Switch", ["x"], ["y"], domain="x", cases=[branch("a", "Relu"), branch("b", "Exp")])
    found = list(model_nodes(make_model([node], [value("x")], [value("y")])))
    assert sorted(node.request.operator for node in found) == ["Add", "Add", "Exp", "Relu", "Switch"]


def function(name: str, nodes: list[Any], *, opset: int = 13, **more: Any) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["a"], ["r"], nodes, imports, **more)


def test_the_nodes_of_a_local_function_count_once_and_so_does_every_call() -> None:
    twice = function("Twice", [helper.make_node("Relu", ["a"], ["h"]), helper.make_node("Exp", ["h"], ["r"])])
    nodes = [
        helper.make_node("Twice", ["x"], ["h"], domain="local"),
        helper.make_node("Twice", ["h"], ["y"], domain="local"),
    ]
    model = make_model(nodes, [value("x")], [value("y")], opsets=[("", 17), ("local", 1)], functions=[twice])
    found = nodes_of(model)
    assert list(found) == ["main/Twice_0", "main/Twice_1", "function Twice/Relu_0", "function Twice/Exp_1"]
    assert found["function Twice/Relu_0"].since_version == 13  # the function's own opset, not the model's
    assert found["function Twice/Relu_0"].types == ("?",)
    assert found["main/Twice_0"].domain == "local"


def test_a_function_whose_nodes_take_its_attributes_is_walked() -> None:
    # ONNX IR, "Attribute references in function bodies": `ref_attr_name` stands in place of a value.
    leaky = helper.make_node("LeakyRelu", ["a"], ["r"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    body = function("Leaky", [leaky], opset=17, attributes=["slope"])
    call = helper.make_node("Leaky", ["x"], ["y"], domain="local", slope=0.5)
    model = make_model([call], [value("x")], [value("y")], opsets=[("", 17), ("local", 1)], functions=[body])
    onnx.checker.check_model(model)
    found = nodes_of(model)
    assert list(found) == ["main/Leaky_0", "function Leaky/LeakyRelu_0"]
    assert found["main/Leaky_0"].attributes == {"slope": 0.5}
    assert found["function Leaky/LeakyRelu_0"].attributes == {"alpha": "?"}  # only the caller knows


def test_a_branch_inside_a_function_is_walked() -> None:
    body = function("Choose", [helper.make_node("Cast", ["a"], ["b"], to=BOOL), conditional()])
    call = helper.make_node("Choose", ["x"], ["z"], domain="local")
    model = make_model([call], [value("x")], [value("z")], opsets=[("", 17), ("local", 1)], functions=[body])
    assert len(nodes_of(model)) == 1 + 2 + 4


def test_a_file_is_loaded_and_its_shapes_are_inferred(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Transpose", ["h"], ["y"])]
    model = make_model(nodes, [value("x", ("n", 3))], [value("y", None)])
    assert nodes_of(model)["main/Transpose_1"].shapes == (None,)
    found = nodes_of(load(model, tmp_path))
    assert found["main/Transpose_1"].shapes == ((None, 3),)
    assert found["main/Transpose_1"].types == ("float32",)


def test_a_model_whose_shapes_contradict_each_other_is_taken_as_it_is(tmp_path: Path) -> None:
    model = make_model([RELU], [value("x", (2, 3))], [value("y", (4, 5, 6))])
    assert nodes_of(load(model, tmp_path))["main/Relu_0"].shapes == ((2, 3),)


def test_weights_in_other_files_are_not_needed(tmp_path: Path) -> None:
    weights = TensorProto(name="w", data_type=FLOAT, dims=[3, 4], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="absent.bin")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = make_model([node], [value("x")], [value("y", None)], initializer=[weights])
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    request = nodes_of(load_model(tmp_path / "model.onnx"))["main/MatMul_0"]
    assert request.shapes == ((2, 3), (3, 4))


@pytest.mark.parametrize("content", [None, b"", b"junk", b"\xff" * 100], ids=["absent", "empty", "text", "bytes"])
def test_what_is_no_model_is_wrong_use(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="not an ONNX model") as caught:
        load_model(path)
    assert caught.value.where == str(path)
