"""Nodes of an ONNX model as requests to the matrix: all graphs, subgraphs and local functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper

from hfreg.dtypes import from_onnx
from hfreg.errors import UsageError
from hfreg.matrix.matrix import UNKNOWN, Request
from hfreg.ops.binding import PartialShape

_ALIASES = {"ai.onnx": ""}
_PLAIN = (
    AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING,
    AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ValueType:
    """What is known of a value."""

    dtype: str
    """An element type, or `?`."""
    shape: PartialShape | None
    """None where not even the rank is known."""


@dataclass(frozen=True, slots=True)
class ModelNode:
    """A node and where it is."""

    path: str
    """The graphs around it and its own name: `main/If_12.then_branch/Conv_3`."""
    request: Request


@dataclass(frozen=True)
class _Scope:
    """What is visible in a graph."""

    path: str
    opsets: Mapping[str, int]
    values: dict[str, ValueType] = field(default_factory=dict)


def load_model(path: Path) -> onnx.ModelProto:
    """Read a model and infer its shapes; weights kept in other files are not needed.

    Raises:
        UsageError: it is no ONNX model.
    """
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:
        raise UsageError(f"not an ONNX model: {error}", where=str(path)) from error
    if not model.graph.node:
        raise UsageError("not an ONNX model: it has no nodes", where=str(path))
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        return model  # inference gave up: what the model itself says is what there is


def model_nodes(model: onnx.ModelProto) -> Iterator[ModelNode]:
    """Every node of a model, each once, in the order of the file."""
    opsets = {_ALIASES.get(entry.domain, entry.domain): entry.version for entry in model.opset_import}
    yield from _graph_nodes(model.graph, _Scope("main", opsets))
    for function in model.functions:
        own = {_ALIASES.get(entry.domain, entry.domain): entry.version for entry in function.opset_import}
        yield from _nodes(function.node, _Scope(f"function {function.name}", own))


def _graph_nodes(graph: onnx.GraphProto, scope: _Scope) -> Iterator[ModelNode]:
    for info in (*graph.input, *graph.value_info, *graph.output):
        scope.values[info.name] = _value_type(info.type)
    for tensor in graph.initializer:
        scope.values[tensor.name] = _typed(tensor.data_type, tuple(tensor.dims))
    for sparse in graph.sparse_initializer:
        scope.values[sparse.values.name] = _typed(sparse.values.data_type, tuple(sparse.dims))
    yield from _nodes(graph.node, scope)


def _nodes(nodes: Any, scope: _Scope) -> Iterator[ModelNode]:
    for position, node in enumerate(nodes):
        name = node.name or f"{node.op_type}_{position}"
        _note_constant(node, scope)
        yield ModelNode(f"{scope.path}/{name}", _request(node, scope))
        for attribute in node.attribute:
            graphs = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
            for graph in graphs:
                inner = _Scope(f"{scope.path}/{name}.{attribute.name}", scope.opsets, dict(scope.values))
                yield from _graph_nodes(graph, inner)


def _note_constant(node: onnx.NodeProto, scope: _Scope) -> None:
    """A constant's type stands in the node itself."""
    if node.op_type == "Constant" and node.output and node.attribute and node.attribute[0].HasField("t"):
        tensor = node.attribute[0].t
        scope.values[node.output[0]] = _typed(tensor.data_type, tuple(tensor.dims))


def _request(node: onnx.NodeProto, scope: _Scope) -> Request:
    domain, operator = _plain_item(_ALIASES.get(node.domain, node.domain)), _plain_item(node.op_type)
    known = [scope.values.get(name, ValueType(UNKNOWN, None)) if name else None for name in node.input]
    used = max((place for place, name in enumerate(node.output, start=1) if name), default=1)
    return Request(
        domain=domain,
        operator=operator,
        since_version=_since_version(operator, domain, scope.opsets.get(domain, 1)),
        attributes={_plain_item(attribute.name): _plain(attribute) for attribute in node.attribute},
        types=tuple(None if value is None else value.dtype for value in known),
        shapes=tuple(None if value is None else value.shape for value in known),
        outputs=used,
    )


def _since_version(operator: str, domain: str, opset: int) -> int:
    """The version of the operator that an opset has; for unknown operators the opset itself."""
    try:
        return int(onnx.defs.get_schema(operator, opset, domain).since_version)
    except (onnx.defs.SchemaError, TypeError):  # TypeError: an opset beyond 32 bits
        return opset


def _plain(attribute: AttributeProto) -> Any:
    """The value of an attribute; `?` where only the caller of a function knows it, the name of a graph or tensor."""
    if attribute.ref_attr_name:
        return UNKNOWN
    if attribute.type not in _PLAIN:
        return _plain_item(attribute.name)
    value: Any = helper.get_attribute_value(attribute)
    return _plain_item(value) if isinstance(value, (int, float, bytes)) else [_plain_item(item) for item in value]


def _plain_item(value: Any) -> Any:
    """A number or text; protobuf gives bytes for any text that is not UTF-8."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return float(str(np.float32(value))) if isinstance(value, float) else value  # 0.1, as a manifest writes it


def _value_type(proto: onnx.TypeProto) -> ValueType:
    if not proto.HasField("tensor_type"):
        return ValueType(UNKNOWN, None)
    tensor = proto.tensor_type
    shape: PartialShape | None = None
    if tensor.HasField("shape"):
        extents = (int(d.dim_value) if d.HasField("dim_value") else -1 for d in tensor.shape.dim)
        shape = tuple(extent if extent >= 0 else None for extent in extents)
    return _typed(tensor.elem_type, shape)


def _typed(code: int, shape: PartialShape | None) -> ValueType:
    dtype = from_onnx(code)
    other = {number: name.lower() for name, number in TensorProto.DataType.items() if number}
    return ValueType(dtype.name if dtype else other.get(code, UNKNOWN), shape)
