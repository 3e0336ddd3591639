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
    manifest: Manifest,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, AttributeValue],
    outputs: Sequence[Any],
    *,
    opset: int,
) -> bytes:
    """A model of one node for a call.

    Args:
        manifest: the operator.
        inputs: the inputs.
        attributes: the attributes of the node.
        outputs: the element type of each output.
        opset: the version of the operator's domain.
    """
    from onnx import helper, numpy_helper

    operator, given = manifest.operator, dict(zip(manifest.inputs, inputs, strict=True))
    names = [name if array is not None else "" for name, array in given.items()]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(operator.name, names, list(manifest.outputs), domain=operator.domain, **attributes)
    fed = [
        helper.make_tensor_value_info(name, _onnx_type(array.dtype), array.shape)
        for name, array in given.items()
        if array is not None and not manifest.inputs[name].is_weight
    ]
    constants = [
        numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        for name, array in given.items()
        if array is not None and manifest.inputs[name].is_weight
    ]
    made = [
        helper.make_tensor_value_info(name, _onnx_type(np.dtype(dtype)), None)
        for name, dtype in zip(manifest.outputs, outputs, strict=True)
    ]
    opsets = [helper.make_opsetid(operator.domain, opset)]
    if operator.domain != ONNX_DOMAIN:
        opsets.append(helper.make_opsetid(ONNX_DOMAIN, 20))
    graph = helper.make_graph([node], manifest.name, fed, made, constants)
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
    for version in sorted(manifest.operator.since_versions, reverse=True):
        model = onnx_model(manifest, inputs, attributes, [dtype for dtype, _ in outputs], opset=version)
        try:
            return _bind(onnxruntime, manifest, model, inputs, outputs, threads=threads)
        except Exception:  # noqa: S112 (whatever it raises for a version, a type or a node that it does not serve)
            continue
    return None


def _bind(
    onnxruntime: Any,
    manifest: Manifest,
    model: bytes,
    inputs: Sequence[Array | None],
    outputs: Sequence[tuple[Any, tuple[int, ...]]],
    *,
    threads: int,
) -> PeerCall:
    """A session with its buffers bound, after one run."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in zip(manifest.inputs, inputs, strict=True):
        if array is not None and not manifest.inputs[name].is_weight:
            value = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array).reshape(array.shape))
            binding.bind_ortvalue_input(name, value)
    results = [
        onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), np.dtype(dtype).type, "cpu")
        for dtype, shape in outputs
    ]
    for name, value in zip(manifest.outputs, results, strict=True):
        binding.bind_ortvalue_output(name, value)
    session.run_with_iobinding(binding)
    return PeerCall(
        f"onnxruntime {onnxruntime.__version__}",
        lambda: session.run_with_iobinding(binding),
        lambda: np.array(results[0].numpy()),
    )
