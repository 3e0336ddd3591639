"""Peers: other implementations of an operator, to compare times and results with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfreg.arrays import Array
from hfreg.dtypes import from_numpy
from hfreg.ops.manifest import AttributeValue, Manifest

ONNX_DOMAIN = ""


@dataclass(frozen=True)
class PeerCall:
    """A call that is ready to run, with its buffers bound."""

    name: str
    """The peer and its version."""
    run: Callable[[], None]
    result: Callable[[], Array]


def onnx_model(
    manifest: Manifest, inputs: Sequence[Array | None], attributes: Mapping[str, AttributeValue], outputs: Sequence[Any]
) -> bytes:
    """A model of one node for a call.

    Args:
        manifest: the operator.
        inputs: the inputs.
        attributes: the attributes of the node.
        outputs: the element type of each output.
    """
    from onnx import helper

    names = [name if array is not None else "" for name, array in zip(manifest.inputs, inputs, strict=True)]
    while names and not names[-1]:
        names.pop()
    operator = manifest.operator
    node = helper.make_node(operator.name, names, list(manifest.outputs), domain=operator.domain, **attributes)
    fed = [
        helper.make_tensor_value_info(name, _onnx_type(array.dtype), array.shape)
        for name, array in zip(manifest.inputs, inputs, strict=True)
        if array is not None
    ]
    made = [
        helper.make_tensor_value_info(name, _onnx_type(np.dtype(dtype)), None)
        for name, dtype in zip(manifest.outputs, outputs, strict=True)
    ]
    opsets = [helper.make_opsetid(operator.domain, max(operator.since_versions))]
    if operator.domain != ONNX_DOMAIN:
        opsets.append(helper.make_opsetid(ONNX_DOMAIN, 20))
    graph = helper.make_graph([node], manifest.name, fed, made)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return bytes(model.SerializeToString())


def _onnx_type(dtype: np.dtype[Any]) -> int:
    known = from_numpy(dtype)
    assert known is not None
    return known.onnx


def onnxruntime_call(
    manifest: Manifest,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, AttributeValue],
    outputs: Sequence[tuple[Any, tuple[int, ...]]],
    *,
    threads: int,
) -> PeerCall | None:
    """The operator in onnxruntime on the CPU, or None where it has no kernel for these types.

    Args:
        manifest: the operator.
        inputs: the inputs.
        attributes: the attributes of the node.
        outputs: element type and shape of each output.
        threads: how many threads it may use within the operator.
    """
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        model = onnx_model(manifest, inputs, attributes, [dtype for dtype, _ in outputs])
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name, array in zip(manifest.inputs, inputs, strict=True):
            if array is not None:
                value = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
                binding.bind_ortvalue_input(name, value)
        results = [
            onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), np.dtype(dtype).type, "cpu")
            for dtype, shape in outputs
        ]
        for name, value in zip(manifest.outputs, results, strict=True):
            binding.bind_ortvalue_output(name, value)
        session.run_with_iobinding(binding)
    except Exception:
        return None
    return PeerCall(
        f"onnxruntime {onnxruntime.__version__}",
        lambda: session.run_with_iobinding(binding),
        lambda: np.array(results[0].numpy()),
    )
