"""Coverage of models whose served nodes are counted by hand."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper

from hfreg.errors import UsageError
from hfreg.matrix.coverage import Coverage, Ratio, cover
from hfreg.matrix.model import model_nodes
from unit import samples
from unit.matrix.made import V3, matrix, operator
from unit.matrix.test_model import BOOL, conditional, function, load, make_model, value

MATRIX = matrix(
    operator(samples.UNARY, name="relu", onnx="Relu", since_versions=(13, 14)),
    operator(samples.UNARY, {"float32": "passed", "float16": "crashed"}, name="exp", onnx="Exp", since_versions=(13,)),
    operator(samples.UNARY, "crashed", name="neg", onnx="Neg", since_versions=(13,)),
    operator(samples.UNARY, name="fused", onnx="Fused", domain="com.example", since_versions=(1,)),
    operator(samples.SOFTMAX, name="softmax", onnx="Softmax", since_versions=(13,)),
)


def coverage(model: onnx.ModelProto, target: str = V3) -> Coverage:
    return cover(MATRIX, model_nodes(model), model="model.onnx", target=target)


def chain(*operators: str, kind: int = onnx.TensorProto.FLOAT) -> onnx.ModelProto:
    """Nodes one after another; `domain::Name` for those of other domains."""
    nodes, infos = [], []
    for place, text in enumerate(operators):
        domain, _, name = text.rpartition("::")
        nodes.append(helper.make_node(name, [f"v{place}"], [f"v{place + 1}"], domain=domain))
        infos.append(value(f"v{place}", (2, 3), kind))
    ends = [infos[0]], [value(f"v{len(operators)}", (2, 3), kind)]
    return make_model(nodes, *ends, value_info=infos[1:], opsets=[("", 17), ("com.example", 1)])


def test_nodes_and_types_are_counted() -> None:
    found = coverage(chain("Relu", "Relu", "Exp", "com.example::Fused", "Neg", "Tanh", "Tanh", "com.example::Other"))
    # Served: 2 Relu, Exp and Fused. Not: Neg (crashed), 2 Tanh and Other (no package).
    assert found.nodes == Ratio(support=3, custom=1, total=8)
    assert found.nodes.value == 0.5
    # Types: Relu, Exp, Fused, Neg, Tanh, Other.
    assert found.types == Ratio(support=2, custom=1, total=6)
    assert found.types.value == 0.5
    assert found.served == {"exp@1.0.0": 1, "fused@1.0.0": 1, "relu@1.0.0": 2}


def test_a_type_counts_only_where_every_node_of_it_is_served() -> None:
    nodes = [helper.make_node("Exp", ["x"], ["y"]), helper.make_node("Exp", ["h"], ["z"])]
    half = value("h", (2,), onnx.TensorProto.FLOAT16)
    found = coverage(make_model(nodes, [value("x"), half], [value("y"), value("z", (2,), onnx.TensorProto.FLOAT16)]))
    assert found.nodes == Ratio(1, 0, 2)
    assert found.types == Ratio(0, 0, 1)
    assert [(gap.type_name, gap.code, gap.nodes) for gap in found.gaps] == [("Exp", "failed", 1)]


def test_one_name_in_two_domains_is_two_types() -> None:
    found = coverage(chain("Relu", "com.example::Relu"))
    assert found.types == Ratio(1, 0, 2)
    assert [gap.type_name for gap in found.gaps] == ["com.example::Relu"]


def test_gaps_are_grouped_by_reason_and_the_most_frequent_comes_first() -> None:
    found = coverage(chain("Tanh", "Neg", "Tanh", "Abs", "Tanh", "Neg"))
    assert [(gap.type_name, gap.code, gap.nodes, gap.example) for gap in found.gaps] == [
        ("Tanh", "no-package", 3, "main/Tanh_0"),
        ("Neg", "failed", 2, "main/Neg_1"),
        ("Abs", "no-package", 1, "main/Abs_3"),
    ]
    assert found.nodes == Ratio(0, 0, 6)


def test_nodes_in_branches_count(tmp_path: Path) -> None:
    model = make_model([conditional()], [value("b", (), BOOL), value("x")], [value("y")])
    found = coverage(load(model, tmp_path))
    # If, Relu, Exp, 2 Add: Relu and Exp are served.
    assert found.nodes == Ratio(2, 0, 5)
    assert found.types == Ratio(2, 0, 4)


def test_a_local_function_counts_with_its_calls_and_the_nodes_of_its_body(tmp_path: Path) -> None:
    twice = function("Twice", [helper.make_node("Relu", ["a"], ["h"]), helper.make_node("Exp", ["h"], ["r"])])
    nodes = [
        helper.make_node("Twice", ["x"], ["h"], domain="local"),
        helper.make_node("Twice", ["h"], ["y"], domain="local"),
    ]
    model = make_model(nodes, [value("x")], [value("y")], opsets=[("", 17), ("local", 1)], functions=[twice])
    found = coverage(load(model, tmp_path))
    # Two calls; Relu and Exp once. No package has `local::Twice`; in a body nothing is known of the types.
    assert (found.nodes.total, found.types.total) == (4, 3)
    assert {(gap.type_name, gap.code, gap.nodes) for gap in found.gaps} == {
        ("local::Twice", "no-package", 2),
        ("Relu", "type", 1),
        ("Exp", "type", 1),
    }


@pytest.mark.parametrize(
    ("shape", "code"),
    [((2, 3), None), ((None, None), None), (None, "shape"), ((), "shape")],
    ids=["known", "rank known", "nothing known", "scalar"],
)
def test_a_shape_that_is_not_known_is_a_gap_where_the_rank_matters(shape: object, code: str | None) -> None:
    model = make_model([helper.make_node("Softmax", ["x"], ["y"])], [value("x", shape)], [value("y", None)])
    found = coverage(model)
    assert [gap.code for gap in found.gaps] == ([code] if code else [])


def test_a_value_whose_type_is_not_known_is_a_gap() -> None:
    nodes = [helper.make_node("Unknown", ["x"], ["h"], domain="x"), helper.make_node("Relu", ["h"], ["y"])]
    found = coverage(make_model(nodes, [value("x")], [value("y")]))
    assert [(gap.type_name, gap.code) for gap in found.gaps] == [("Relu", "type"), ("x::Unknown", "no-package")]


def test_a_target_that_has_nothing_covers_nothing() -> None:
    found = coverage(chain("Relu", "Exp"), "aether")
    assert found.nodes == Ratio(0, 0, 2)
    assert {gap.code for gap in found.gaps} == {"planned"}
    with pytest.raises(UsageError, match="unknown target"):
        coverage(chain("Relu"), "z80")


def test_a_model_without_nodes_is_covered_to_no_part() -> None:
    assert Ratio(0, 0, 0).value == 0.0
    found = coverage(make_model([], [value("x")], [value("x")]))
    assert (found.nodes, found.types, found.gaps, found.served) == (Ratio(0, 0, 0), Ratio(0, 0, 0), [], {})


def test_the_report_as_json() -> None:
    assert coverage(chain("Relu", "Tanh", "Neg")).as_json() == {
        "model": "model.onnx",
        "target": V3,
        "operatorTypes": {"nSupport": 1, "nCustom": 0, "nTotal": 3, "coverage": 0.333333},
        "nodes": {"nSupport": 1, "nCustom": 0, "nTotal": 3, "coverage": 0.333333},
        "served": {"relu@1.0.0": 1},
        "gaps": [
            {"operator": "Neg", "code": "failed", "detail": "crashed", "nodes": 1, "example": "main/Neg_2"},
            {
                "operator": "Tanh",
                "code": "no-package",
                "detail": "no published package has it",
                "nodes": 1,
                "example": "main/Tanh_1",
            },
        ],
        "decisions": [
            {
                "node": "main/Relu_0",
                "operator": "Relu",
                "sinceVersion": 14,
                "kernel": f"relu.float32.general.{V3}.halide",
                "rejected": [],
            },
            {
                "node": "main/Tanh_1",
                "operator": "Tanh",
                "sinceVersion": 13,
                "kernel": None,
                "rejected": [
                    {"candidate": "ai.onnx::Tanh", "code": "no-package", "detail": "no published package has it"}
                ],
            },
            {
                "node": "main/Neg_2",
                "operator": "Neg",
                "sinceVersion": 13,
                "kernel": None,
                "rejected": [{"candidate": "neg@1.0.0", "code": "failed", "detail": "crashed"}],
            },
        ],
    }
