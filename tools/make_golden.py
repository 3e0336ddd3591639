"""Write the golden tests of the packages in `ops/`: python tools/make_golden.py

Every result is worked out here by plain loops over exact rationals or 60-digit numbers, so it shares no code with
semantics or references. Inputs are rounded to the element type first; results are rounded once, at the end. Cases that
are known bugs of other systems name the report that they come from.
"""

from __future__ import annotations

import itertools
import math
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from hfreg.dtypes import DTYPES
from hfreg.evaluation.rounding import round_to
from hfreg.ops.golden import write_golden
from hfreg.ops.package import MANIFEST, load_manifest

mpmath.mp.dps = 60
OPS = Path(__file__).resolve().parents[1] / "ops"
FLOATS = ("float32", "float16", "bfloat16")
Number = Any
Nested = Any
NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class Golden:
    """A case: nested lists of numbers, and a function that works the result out from exact inputs."""

    operator: str
    name: str
    inputs: tuple[Nested, ...]
    result: Callable[..., Nested]
    source: str
    types: tuple[str, ...] = FLOATS
    attributes: dict[str, Any] = field(default_factory=dict)
    output_type: str = ""
    input_types: tuple[str, ...] = ()
    """Element types of the inputs, where they are not the case's type."""


# ---- plain arithmetic on nested lists --------------------------------------------------------------------------------


def shape_of(values: Nested) -> tuple[int, ...]:
    return (
        (len(values), *shape_of(values[0])) if isinstance(values, list) and values else (0,) * isinstance(values, list)
    )


def exact(value: float) -> Number:
    """A float as a rational; what is not finite stays a float."""
    return Fraction(value) if math.isfinite(value) else value


def nest(array: np.ndarray) -> Nested:
    return [nest(row) for row in array] if array.ndim else exact(float(array))


def each(function: Callable[..., Number], *values: Nested) -> Nested:
    if isinstance(values[0], list):
        return [each(function, *row) for row in zip(*values, strict=True)]
    return function(*values)


def real(value: Number) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else mpmath.mpf(value)


def dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


def matrix_product(a: Nested, b: Nested) -> Nested:
    return [[dot(row, [line[j] for line in b]) for j in range(len(b[0]))] for row in a]


def softmax_row(row: Sequence[Number]) -> list[mpmath.mpf]:
    powers = [mpmath.mpf(0) if value == -INF else mpmath.exp(real(value)) for value in row]
    return [power / mpmath.fsum(powers) for power in powers]


def normalize_row(row: Sequence[Number], *, epsilon: float, centered: bool) -> list[mpmath.mpf]:
    mean = sum(row) / len(row) if centered else Fraction(0)
    variance = sum((value - mean) ** 2 for value in row) / len(row)
    inverse = 1 / mpmath.sqrt(real(variance) + mpmath.mpf(epsilon))
    return [real(value - mean) * inverse for value in row]


def gelu(x: Number, *, approximate: str) -> Number:
    if not isinstance(x, Fraction):
        return x if x != -INF else -0.0
    value = real(x)
    if approximate == "tanh":
        return value / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (value + mpmath.mpf("0.044715") * value**3)))
    return value / 2 * (1 + mpmath.erf(value / mpmath.sqrt(2)))


def windows(image: Nested, size: Sequence[int], stride: Sequence[int], pad: Sequence[int], fill: Number) -> Nested:
    """All windows of a plane, each a flat list; pads are top, left, bottom, right."""
    rows, columns = shape_of(image)

    def at(i: int, j: int) -> Number:
        return image[i][j] if 0 <= i < rows and 0 <= j < columns else fill

    height = (rows + pad[0] + pad[2] - size[0]) // stride[0] + 1
    width = (columns + pad[1] + pad[3] - size[1]) // stride[1] + 1
    cells = list(itertools.product(range(size[0]), range(size[1])))
    return [
        [[at(i * stride[0] - pad[0] + y, j * stride[1] - pad[1] + x) for y, x in cells] for j in range(width)]
        for i in range(height)
    ]


def convolve(x: Nested, w: Nested, b: Sequence[Number], *, stride: Sequence[int], pad: Sequence[int]) -> Nested:
    """One image, one group."""
    size = shape_of(w)[2:]
    planes = [windows(plane, size, stride, pad, Fraction(0)) for plane in x[0]]

    def value(o: int, i: int, j: int) -> Number:
        kernels = [[v for line in kernel for v in line] for kernel in w[o]]
        return b[o] + sum(dot(planes[c][i][j], kernels[c]) for c in range(len(planes)))

    p, q = shape_of(planes[0])[:2]
    return [[[[value(o, i, j) for j in range(q)] for i in range(p)] for o in range(len(w))]]


def pool(x: Nested, *, size: Sequence[int], stride: Sequence[int], pad: Sequence[int]) -> Nested:
    def largest(window: Sequence[Number]) -> Number:
        return NAN if any(isinstance(v, float) and math.isnan(v) for v in window) else max(window)

    return [
        [[[largest(w) for w in line] for line in windows(plane, size, stride, pad, -INF)] for plane in image]
        for image in x
    ]


def quantize(x: Number, scale: Number, zero_point: Number, *, low: int, high: int) -> Number:
    if not isinstance(x, Fraction):
        return 0 if math.isnan(x) else low if x < 0 else high
    return min(max(round(x / scale) + zero_point, low), high)  # Python rounds to even


# ---- the cases -------------------------------------------------------------------------------------------------------

_random = random.Random(20240229)


def values(*shape: int, scale: int = 4) -> Nested:
    """Multiples of 1/4 that every type holds exactly."""
    if not shape:
        return _random.randint(-4 * scale, 4 * scale) / 4
    return [values(*shape[1:], scale=scale) for _ in range(shape[0])]


RATIONAL = "exact rational arithmetic, rounded once"
DIGITS = "60-digit arithmetic, rounded once"


def cases() -> Iterator[Golden]:
    yield Golden(
        "relu", "nan", ([NAN, 1.0, -2.0, -0.0],), lambda x: each(lambda v: v if v != v or v > 0 else Fraction(0), x),
        "apache/tvm#19572: a comparison that drops NaN gives 0",
    )  # fmt: skip
    yield Golden("relu", "values", (values(3, 5),), lambda x: each(lambda v: max(v, Fraction(0)), x), RATIONAL)

    yield Golden(
        "add", "same_shape", (values(3, 4), values(3, 4)), lambda a, b: each(lambda p, q: p + q, a, b), RATIONAL
    )
    yield Golden(
        "add", "row", (values(3, 4), values(4)), lambda a, b: [each(lambda p, q: p + q, r, b) for r in a], RATIONAL
    )
    yield Golden(
        "add", "outer", (values(3, 1), values(1, 4)), lambda a, b: [[r[0] + c for c in b[0]] for r in a], RATIONAL
    )
    yield Golden(
        "add", "infinities", ([INF, INF, -INF, 1.0], [1.0, -INF, -INF, NAN]), lambda a, b: [INF, NAN, -INF, NAN],
        "IEEE 754: inf - inf is NaN",
    )  # fmt: skip

    for form in ("none", "tanh"):
        yield Golden(
            "gelu", f"{form}_values", ([-3.0, -1.0, -0.125, 0.0, 0.5, 2.0, 6.0],),
            lambda x, form=form: each(lambda v: gelu(v, approximate=form), x), DIGITS, attributes={"approximate": form},
        )  # fmt: skip
        yield Golden(
            "gelu", f"{form}_limits", ([NAN, INF, -INF],), lambda x: [NAN, INF, -0.0],
            "the limits of x * Phi(x)", attributes={"approximate": form},
        )  # fmt: skip
    yield Golden(
        "gelu", "tanh_is_not_erf", ([-3.0, -1.0, 0.5, 2.0],), lambda x: each(lambda v: gelu(v, approximate="tanh"), x),
        "apache/tvm#18750, openvino#24215: the erf form was used for approximate=tanh",
        types=("float32",), attributes={"approximate": "tanh"},
    )  # fmt: skip

    yield Golden(
        "softmax", "large", ([[1000.0, 1001.0, -INF]],), lambda x: [softmax_row(row) for row in x],
        "openvino#35648 and its like: exp overflows without the shift", types=("float32", "bfloat16"), attributes={"axis": -1},
    )  # fmt: skip
    yield Golden(
        "softmax",
        "last_axis",
        (values(3, 7),),
        lambda x: [softmax_row(row) for row in x],
        DIGITS,
        attributes={"axis": -1},
    )
    yield Golden(
        "softmax", "first_axis", (values(4, 3),),
        lambda x: [list(row) for row in zip(*[softmax_row(column) for column in zip(*x, strict=True)], strict=True)],
        DIGITS, attributes={"axis": 0},
    )  # fmt: skip
    yield Golden(
        "softmax", "masked_row", ([[-INF, -INF], [0.0, -INF]],), lambda x: [[NAN, NAN], [Fraction(1), Fraction(0)]],
        "ONNX Softmax-13 by its formula: a row of nothing but -inf is NaN", attributes={"axis": 1},
    )  # fmt: skip

    yield Golden(
        "layer_normalization", "large_mean", ([[40000.0, 40001.0, 40002.0, 40003.0]], [1.0] * 4, [0.0] * 4),
        lambda x, s, b: [normalize_row(row, epsilon=1e-5, centered=True) for row in x],
        "onnxruntime#28463: E[x^2] - E[x]^2 goes negative", types=("float32",), attributes={"axis": -1, "epsilon": 1e-5},
    )  # fmt: skip
    yield Golden(
        "layer_normalization", "values", (values(3, 5), values(5), values(5)),
        lambda x, s, b: [
            [v * real(p) + real(q) for v, p, q in zip(normalize_row(row, epsilon=1e-5, centered=True), s, b, strict=True)]
            for row in x
        ],
        DIGITS, attributes={"axis": -1, "epsilon": 1e-5},
    )  # fmt: skip
    yield Golden(
        "rms_normalization", "square_overflows", ([[600.0, -600.0, 300.0, 300.0]], [1.0] * 4),
        lambda x, s: [normalize_row(row, epsilon=1e-5, centered=False) for row in x],
        "onnxruntime#29034: 600^2 overflows float16, and all becomes 0", types=("float16", "float32"),
        attributes={"axis": -1, "epsilon": 1e-5, "stash_type": 1},
    )  # fmt: skip
    yield Golden(
        "rms_normalization", "values", (values(3, 5), values(5)),
        lambda x, s: [
            [v * real(p) for v, p in zip(normalize_row(row, epsilon=1e-5, centered=False), s, strict=True)] for row in x
        ],
        DIGITS, attributes={"axis": -1, "epsilon": 1e-5},
    )  # fmt: skip

    yield Golden("mat_mul", "matrix", (values(3, 5), values(5, 4)), matrix_product, RATIONAL)
    yield Golden(
        "mat_mul", "batch", (values(2, 3, 5), values(2, 5, 2)),
        lambda a, b: [matrix_product(p, q) for p, q in zip(a, b, strict=True)], RATIONAL,
    )  # fmt: skip
    yield Golden("mat_mul", "vectors", (values(6), values(6)), dot, RATIONAL)
    yield Golden(
        "mat_mul", "row_times_matrix", (values(5), values(5, 3)), lambda a, b: matrix_product([a], b)[0], RATIONAL
    )

    yield Golden(
        "conv", "padded", (values(1, 2, 5, 4), values(3, 2, 3, 3, scale=1), values(3)),
        lambda x, w, b: convolve(x, w, b, stride=(1, 1), pad=(1, 1, 1, 1)), RATIONAL,
        attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    )  # fmt: skip
    yield Golden(
        "conv", "strided", (values(1, 1, 7, 6), values(2, 1, 3, 2, scale=1), values(2)),
        lambda x, w, b: convolve(x, w, b, stride=(2, 3), pad=(0, 1, 2, 0)), RATIONAL,
        attributes={"kernel_shape": [3, 2], "strides": [2, 3], "pads": [0, 1, 2, 0]},
    )  # fmt: skip
    yield Golden(
        "conv", "depthwise", (values(1, 3, 4, 4), values(3, 1, 3, 3, scale=1), values(3)),
        lambda x, w, b: [
            [
                convolve([[x[0][c]]], [w[c]], [b[c]], stride=(1, 1), pad=(1, 1, 1, 1))[0][0]
                for c in range(3)
            ]
        ],
        RATIONAL, attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "group": 3},
    )  # fmt: skip

    yield Golden(
        "max_pool", "padded", (values(1, 2, 5, 4),), lambda x: pool(x, size=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1)), RATIONAL,
        attributes={"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    )  # fmt: skip
    yield Golden(
        "max_pool", "nan_wins", ([[[[1.0, NAN, 2.0], [3.0, 4.0, 5.0]]]],),
        lambda x: pool(x, size=(2, 2), stride=(1, 1), pad=(0, 0, 0, 0)),
        "IEEE 754 maximum: NaN in a window gives NaN", attributes={"kernel_shape": [2, 2]},
    )  # fmt: skip

    for kind, low, high in (("uint8", 0, 255), ("int8", -128, 127)):
        yield Golden(
            "quantize_linear", f"ties_{kind}", ([0.25, 0.75, 1.25, 1.75, -1.0, 200.0], 0.5, 0),
            lambda x, s, z, low=low, high=high: [quantize(v, s, z, low=low, high=high) for v in x],
            "sonos/tract#2850, onnxruntime#25045: ties go to the even number",
            output_type=kind, input_types=("", "", kind),
        )  # fmt: skip
        yield Golden(
            "quantize_linear", f"per_axis_{kind}", (values(2, 3, scale=64), [0.5, 0.25, 2.0], [3, 0, 10]),
            lambda x, s, z, low=low, high=high: [
                [quantize(v, p, q, low=low, high=high) for v, p, q in zip(row, s, z, strict=True)] for row in x
            ],
            RATIONAL, attributes={"axis": 1}, output_type=kind, input_types=("", "", kind),
        )  # fmt: skip
        yield Golden(
            "quantize_linear", f"infinite_{kind}", ([INF, -INF, NAN], 1.0, 0),
            lambda x, s, z, low=low, high=high: [quantize(v, s, z, low=low, high=high) for v in x],
            "infinities saturate; NaN becomes 0, of which ONNX says nothing",
            output_type=kind, input_types=("", "", kind),
        )  # fmt: skip


def as_array(nested: Nested, type_name: str) -> np.ndarray:
    """A nested list rounded once to an element type."""
    dtype = DTYPES[type_name]
    if not dtype.is_float:
        return np.array(each(int, nested), dtype.numpy)
    return round_to(np.array(each(float, nested), np.float64), dtype).astype(dtype.numpy)


def write(case: Golden) -> int:
    folder = OPS / case.operator
    manifest = load_manifest((folder / MANIFEST).read_text(), MANIFEST)
    for type_name in case.types:
        kinds = [case.input_types[i] if i < len(case.input_types) else "" for i in range(len(case.inputs))]
        inputs = [as_array(v, kind or type_name) for v, kind in zip(case.inputs, kinds, strict=True)]
        result = case.result(*(nest(array) for array in inputs))
        output = as_array(result, case.output_type or type_name)
        padding = [None] * (len(manifest.inputs) - len(inputs))
        write_golden(
            folder / "golden" / f"{case.name}_{type_name}", manifest, [*inputs, *padding], [output],
            attributes=case.attributes, source=case.source,
        )  # fmt: skip
    return len(case.types)


def main() -> None:
    """Write all cases anew."""
    everything = list(cases())
    for operator in {case.operator for case in everything}:
        shutil.rmtree(OPS / operator / "golden", ignore_errors=True)
    print(sum(map(write, everything)), "golden tests written")


if __name__ == "__main__":
    main()
