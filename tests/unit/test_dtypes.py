from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest

from hfreg.dtypes import DTYPES, DType, dtype, from_dlpack, from_numpy, from_onnx
from hfreg.errors import UsageError

FLOATS = ["float32", "float16", "bfloat16", "float64"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]

# dlpack.h: kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLBool 6. HalideRuntime.h: int 0, uint 1, float 2, bfloat 4,
# and bool is a uint.
CODES = {
    "float32": (2, 2),
    "float16": (2, 2),
    "bfloat16": (4, 4),
    "float64": (2, 2),
    "int8": (0, 0),
    "uint8": (1, 1),
    "int16": (0, 0),
    "uint16": (1, 1),
    "int32": (0, 0),
    "uint32": (1, 1),
    "int64": (0, 0),
    "uint64": (1, 1),
    "bool": (6, 1),
}


def test_the_tables_of_these_tests_know_every_type() -> None:
    assert set(DTYPES) == set(CODES) == {*FLOATS, *INTEGERS, "bool"}


@pytest.mark.parametrize("name", FLOATS)
def test_the_constants_of_a_float_type_are_those_of_its_format(name: str) -> None:
    ours, info = DTYPES[name], ml_dtypes.finfo(DTYPES[name].numpy)
    assert ours.is_float and ours.kind == "float"
    assert ours.bits == info.bits
    assert ours.precision == info.nmant + 1
    assert ours.unit_roundoff == float(info.eps) / 2
    assert ours.smallest_normal == float(info.smallest_normal)
    assert ours.smallest_subnormal == float(info.smallest_subnormal)
    assert ours.largest == float(info.max)
    assert ours.lowest == float(info.min)


@pytest.mark.parametrize("name", INTEGERS)
def test_the_limits_of_an_integer_type_are_those_of_numpy(name: str) -> None:
    ours, info = DTYPES[name], np.iinfo(name)
    assert not ours.is_float
    assert ours.bits == info.bits
    assert ours.kind == {"i": "int", "u": "uint"}[info.kind]
    assert int(ours.largest) == info.max
    assert int(ours.lowest) == info.min


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_has_the_numpy_type_of_its_name(name: str) -> None:
    ours = DTYPES[name]
    assert ours.numpy == np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    assert ours.itemsize == np.zeros(1, ours.numpy).nbytes
    assert str(ours) == name
    assert dtype(name) is ours


@pytest.mark.parametrize("name", DTYPES)
def test_a_type_is_found_under_each_of_its_names(name: str) -> None:
    ours = DTYPES[name]
    onnx_name = {"float32": "FLOAT", "float64": "DOUBLE"}.get(name, name.upper())
    assert ours.onnx == onnx.TensorProto.DataType.Value(onnx_name)
    assert (ours.dlpack, ours.halide) == CODES[name]
    assert from_onnx(ours.onnx) is ours
    assert from_dlpack(ours.dlpack, ours.bits) is ours
    assert from_numpy(ours.numpy) is ours


@pytest.mark.parametrize(
    "other",
    [np.dtype(">f4"), np.dtype("complex64"), np.dtype("U3"), np.dtype("O"), np.dtype("M8[s]"), np.dtype([("a", "f4")])],
    ids=str,
)
def test_other_numpy_types_have_no_counterpart(other: np.dtype[np.generic]) -> None:
    assert from_numpy(other) is None


@pytest.mark.parametrize("found", [from_onnx(onnx.TensorProto.STRING), from_onnx(0), from_onnx(-1), from_dlpack(2, 8)])
def test_other_codes_have_no_counterpart(found: DType | None) -> None:
    assert found is None


@pytest.mark.parametrize("name", ["float", "FLOAT32", "", "float8"])
def test_an_unknown_name_is_wrong_use_and_the_known_ones_are_listed(name: str) -> None:
    with pytest.raises(UsageError, match="unknown element type") as caught:
        dtype(name)
    assert all(known in caught.value.hint for known in DTYPES)
