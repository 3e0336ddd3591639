"""Each operator agrees with onnxruntime on random cases of every type, within the bound of its package.

onnxruntime computes in float64 where its CPU provider has a kernel for it, else in float32, on the very inputs of the
operator (widening is exact). Operators whose results are exact are compared in their own type where onnxruntime has
it, and else with its float32 result, rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hfreg import load
from hfreg.dtypes import DTYPES
from hfreg.evaluation.bounds import rule
from hfreg.evaluation.compare import compare
from hfreg.evaluation.rounding import round_to
from hfreg.ops.binding import select
from hfreg.ops.package import OpPackage, load_package
from hfreg.ops.reference import Reference
from hfreg.ops.signature import complete_attributes
from integration.surface import PACKAGES

onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime (the extra hfreg[build])")

pytestmark = pytest.mark.build

CASES = 200

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
FLOATS = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Call:
    """Inputs as float64, to be rounded to the type under test, or integers; and attributes."""

    inputs: tuple[Array | None, ...]
    attributes: dict[str, Any]


def shape_of(rng: Rng, rank: tuple[int, int] = (1, 4), limit: int = 2000) -> tuple[int, ...]:
    """Extents around the edges of vectors, and small ones."""
    while True:
        extents = tuple(
            int(rng.choice([1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 100])) for _ in range(rng.integers(*rank))
        )
        if np.prod(extents) <= limit:
            return extents


def values(rng: Rng, shape: tuple[int, ...]) -> Array:
    scale = 2.0 ** rng.integers(-3, 4)
    return np.asarray(scale * rng.standard_normal(shape))


def unary(rng: Rng) -> Call:
    return Call((values(rng, shape_of(rng)),), {})


def add(rng: Rng) -> Call:
    shape = shape_of(rng)
    other = tuple(1 if rng.random() < 0.3 else extent for extent in shape)[int(rng.integers(0, len(shape) + 1)) :]
    pair = (values(rng, shape), values(rng, other))
    return Call(pair if rng.random() < 0.5 else pair[::-1], {})


def gelu(rng: Rng) -> Call:
    return Call((values(rng, shape_of(rng)),), {"approximate": str(rng.choice(["none", "tanh"]))})


def softmax(rng: Rng) -> Call:
    shape = shape_of(rng)
    return Call((values(rng, shape),), {"axis": int(rng.integers(-len(shape), len(shape)))})


def normalization(inputs: int) -> Callable[[Rng], Call]:
    def make(rng: Rng) -> Call:
        shape = shape_of(rng)
        axis = int(rng.integers(-len(shape), len(shape)))
        x = values(rng, shape) + 3.0 * rng.standard_normal()
        weights = [values(rng, shape[axis % len(shape) :]) for _ in range(int(rng.integers(1, inputs + 1)))]
        return Call((x, *weights), {"axis": axis, "epsilon": float(np.float32(10.0 ** rng.uniform(-6, -2)))})

    return make


def mat_mul(rng: Rng) -> Call:
    m, k, n = (int(rng.choice([1, 2, 5, 8, 16, 17, 31, 33, 70])) for _ in range(3))
    batch = shape_of(rng, (0, 3), 12)
    left = tuple(1 if rng.random() < 0.3 else extent for extent in batch)
    right = batch if rng.random() < 0.5 else ()
    a = (k,) if rng.random() < 0.1 else (*left, m, k)
    b = (k,) if rng.random() < 0.1 else (*right, k, n)
    return Call((values(rng, a), values(rng, b)), {})


def window(rng: Rng) -> dict[str, Any]:
    size = [int(rng.integers(1, 5)) for _ in range(2)]
    attributes: dict[str, Any] = {
        "kernel_shape": size,
        "strides": [int(n) for n in rng.integers(1, 4, 2)],
        "dilations": [int(n) for n in rng.integers(1, 3, 2)],
    }
    if rng.random() < 0.3:
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        attributes["dilations"] = [1, 1]
        # onnxruntime's MaxPool fails for strides beyond the window, where SAME needs no padding
        attributes["strides"] = [min(pair) for pair in zip(attributes["strides"], size, strict=True)]
    else:
        attributes["pads"] = [int(rng.integers(0, size[i % 2])) for i in range(4)]
    return attributes


def conv(rng: Rng) -> Call:
    attributes = window(rng)
    if rng.random() < 0.25:
        attributes = {"kernel_shape": [1, 1]}
    group = int(rng.choice([1, 1, 2, 4]))
    channels, filters = (int(rng.choice([1, 2, 3, 8])) for _ in range(2))
    x = values(rng, (int(rng.integers(1, 3)), group * channels, *(int(n) for n in rng.integers(8, 20, 2))))
    w = values(rng, (group * filters, channels, *attributes["kernel_shape"]))
    b = values(rng, (group * filters,)) if rng.random() < 0.6 else None
    return Call((x, w, b), attributes | {"group": group})


def max_pool(rng: Rng) -> Call:
    attributes = window(rng)
    if "pads" in attributes:
        attributes["ceil_mode"] = int(rng.integers(0, 2))
    return Call((values(rng, (int(rng.integers(1, 3)), 3, *(int(n) for n in rng.integers(8, 24, 2)))),), attributes)


def quantize_linear(rng: Rng) -> Call:
    shape = shape_of(rng)
    axis = int(rng.integers(-len(shape), len(shape)))
    channels: tuple[int, ...] = (shape[axis],) if rng.random() < 0.5 else ()
    scale = 2.0 ** rng.uniform(-6, 0, channels)
    zero_point = rng.integers(-128, 128, channels) if rng.random() < 0.8 else None
    return Call((values(rng, shape), scale, zero_point), {"axis": axis})


@dataclass(frozen=True)
class Operator:
    """How an operator is called, and the version of it that onnxruntime is asked for."""

    make: Callable[[Rng], Call]
    opset: int


OPERATORS = {
    "relu": Operator(unary, 14),
    "add": Operator(add, 14),
    "gelu": Operator(gelu, 20),
    "softmax": Operator(softmax, 13),
    "layer_normalization": Operator(normalization(2), 17),
    "rms_normalization": Operator(normalization(1), 23),
    "mat_mul": Operator(mat_mul, 13),
    "conv": Operator(conv, 22),
    "max_pool": Operator(max_pool, 22),
    "quantize_linear": Operator(quantize_linear, 23),
}
ALL = [
    (name, kind, output, language)
    for name in OPERATORS
    for kind in FLOATS
    for output in (("uint8", "int8") if name == "quantize_linear" else ("",))
    for language in load_package(PACKAGES / name).languages
]


class Peer:
    """One operator in onnxruntime, on the CPU."""

    def __init__(self, node_type: str, opset: int) -> None:
        self.node_type, self.opset = node_type, opset
        self._lacks: set[str] = set()

    def __call__(
        self, call: Call, inputs: list[Array | None], kinds: tuple[str, ...], output: str
    ) -> tuple[Array, str]:
        """The result, and the first of the types for which there is a kernel."""
        for kind in kinds:
            if kind in self._lacks:
                continue
            try:
                return self._run(call, inputs, kind, output), kind
            except Exception as error:
                if "NOT_IMPLEMENTED" not in str(error) and "Type Error" not in str(error):
                    raise
                self._lacks.add(kind)
        raise AssertionError(f"onnxruntime has no {self.node_type} for any of {kinds}")

    def _run(self, call: Call, inputs: list[Array | None], kind: str, output: str) -> Array:
        cast = [None if a is None else a.astype(DTYPES[kind].numpy) if a.dtype.kind not in "iu" else a for a in inputs]
        names = [f"i{place}" if array is not None else "" for place, array in enumerate(cast)]
        fed = {
            name: np.ascontiguousarray(a).reshape(a.shape) for name, a in zip(names, cast, strict=True) if a is not None
        }
        while not names[-1]:
            names.pop()
        node = helper.make_node(self.node_type, names, ["y"], **call.attributes)
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in fed.items()
        ]
        y = helper.make_tensor_value_info("y", DTYPES[output or kind].onnx, None)
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(helper.make_graph([node], "g", infos, [y]), opset_imports=opsets, ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(a, DTYPES[kind].onnx)
                  if kind == "bfloat16" and a.dtype.kind not in "iu" else onnxruntime.OrtValue.ortvalue_from_numpy(a)
                  for name, a in fed.items()}  # fmt: skip
        return np.array(session.run_with_ort_values(None, values)[0].numpy())


def laid_out(rng: Rng, array: Array | None) -> Array | None:
    """The array, at times not contiguous."""
    if array is None or array.ndim == 0 or rng.random() < 0.7:
        return array
    if rng.random() < 0.5:
        return array.T.copy().T
    larger = np.zeros([2 * n for n in array.shape], array.dtype)
    view = larger[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def calls(name: str, kind: str, output: str) -> Iterator[tuple[Call, list[Array | None]]]:
    rng = np.random.default_rng([ord(letter) for letter in f"{name} {kind} {output}"])
    for _ in range(5 * CASES):
        call = OPERATORS[name].make(rng)
        inputs = [
            None if a is None else a.astype(output if a.dtype.kind in "iu" else DTYPES[kind].numpy) for a in call.inputs
        ]
        if output and inputs[-1] is None:  # without a zero point, an attribute says which type is wanted
            call.attributes["output_dtype"] = DTYPES[output].onnx
        yield call, [laid_out(rng, array) for array in inputs]


def serves(package: OpPackage, language: str, call: Call, inputs: list[Array | None]) -> bool:
    """Whether kernels in a language are there for the attribute class of a call."""
    entry = package.manifest.languages.get(language)
    if entry is None or not entry.classes:
        return True
    shapes = [None if array is None else array.shape for array in inputs]
    signature, _ = select(package.signatures, shapes, complete_attributes(package.manifest, call.attributes))
    return signature.class_name in entry.classes


@pytest.mark.parametrize(("name", "kind", "output", "language"), ALL)
def test_200_random_cases(name: str, kind: str, output: str, language: str, ten: Path) -> None:
    package, operator = load_package(PACKAGES / name), load(name, registry=ten, language=language)
    served = 0
    manifest, dtype = package.manifest, DTYPES[output or kind]
    chosen = rule(manifest.accuracy)
    types = {"T": DTYPES[kind], **({"T2": dtype} if output else {})}
    peer = Peer(manifest.operator.name, OPERATORS[name].opset)
    kinds = (kind, "float32") if chosen.is_exact else ("float64", "float32")
    with Reference(package) as reference:
        for number, (call, inputs) in enumerate(calls(name, kind, output)):
            if not serves(package, language, call, inputs):
                continue
            if served == CASES:
                break
            served += 1
            y = operator(*inputs, **call.attributes)
            asked = (
                quotient(inputs, axis=call.attributes["axis"], dtype=DTYPES[kind].numpy)
                if output and kind == "bfloat16"
                else inputs
            )
            expected, computed = peer(call, asked, kinds, output)
            assert y.shape == expected.shape
            known = expected if output else expected.astype(np.float64)
            if chosen.is_exact and computed != kind and not output:
                known = round_to(known, dtype)
            scale = None
            if chosen.scale != "none":
                attributes = complete_attributes(manifest, call.attributes)
                given = [*inputs, *[None] * (len(manifest.inputs) - len(inputs))]
                scale = scale_of(reference, chosen.scale, given, padded(call, attributes, y.shape), types)
            found = compare(y, known, dtype, manifest.accuracy, scale)
            shapes = [None if a is None else a.shape for a in inputs]
            assert found.is_right, f"case {number}, {shapes}, {call.attributes}, against {computed}: {found.detail}"
    assert served == CASES


def quotient(inputs: list[Array | None], *, axis: int, dtype: Any) -> list[Array | None]:
    """The quotient of QuantizeLinear in y_scale's own type (precision 0), for onnxruntime, which has no bfloat16 there.

    It is divided in float32, and rounding that to bfloat16 is innocuous: 24 >= 2 * 8 + 2. The scale left over is 1.
    """
    x, scale, *rest = inputs
    assert x is not None and scale is not None
    wide = scale.astype(np.float32)
    along = wide.reshape([-1 if place == axis % x.ndim else 1 for place in range(x.ndim)]) if scale.ndim else wide
    divided = (x.astype(np.float32) / along).astype(dtype)
    return [divided, np.ones_like(scale), *rest]


def padded(call: Call, attributes: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """The attributes with automatic padding worked out, as ONNX Conv-22 says, since references take none."""
    mode = attributes.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return attributes
    pads = [0, 0, 0, 0]
    if mode != "VALID":
        x = call.inputs[0]
        assert x is not None
        for i in range(2):
            reach = (attributes["kernel_shape"][i] - 1) * attributes["dilations"][i] + 1
            total = max((shape[2 + i] - 1) * attributes["strides"][i] + reach - x.shape[2 + i], 0)
            small, large = total // 2, total - total // 2
            pads[i], pads[2 + i] = (small, large) if mode == "SAME_UPPER" else (large, small)
    return attributes | {"pads": pads}


def scale_of(
    reference: Reference, source: str, inputs: list[Array | None], attributes: dict[str, Any], types: dict[str, Any]
) -> Array:
    """What the bound is relative to: the package's own scale, or the operator on absolute values."""
    if source == "absolute":
        absolute = [None if array is None else np.abs(array) for array in inputs]
        return np.abs(reference(absolute, attributes, types=types, scale=False).outputs[0]).astype(np.float64)
    scale = reference(inputs, attributes, types=types, scale=True).scale
    assert scale is not None
    return scale
