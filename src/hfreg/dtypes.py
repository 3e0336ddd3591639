"""The element types that operators are written for, and what each is called elsewhere.

`unit_roundoff` is half a unit in the last place of 1.0: 2**-p for a significand of p bits (IEEE 754).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from hfreg.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "int", "uint", "bool"]


@dataclass(frozen=True)
class DType:
    """One element type."""

    name: str
    """The name in manifests, passports and messages: NumPy's."""
    kind: Kind
    bits: int
    onnx: int
    """`onnx.TensorProto.DataType`."""
    dlpack: int
    """`DLDataTypeCode`: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool."""
    halide: int
    """`halide_type_code_t`: 0 int, 1 uint, 2 float, 4 bfloat."""
    precision: int = field(default=0)
    """Bits of the significand, the hidden one included; 0 for integers."""
    max_exponent: int = field(default=0)
    """Largest e with 2**e finite; the smallest normal number is 2**(1 - max_exponent)."""

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type (`ml_dtypes` provides bfloat16)."""
        import numpy as np

        if self.name == "bfloat16":
            import ml_dtypes

            return np.dtype(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
        return np.dtype(self.name)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def unit_roundoff(self) -> float:
        return 2.0**-self.precision

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.max_exponent)

    @property
    def smallest_subnormal(self) -> float:
        return 2.0 ** (2 - self.max_exponent - self.precision)

    @property
    def largest(self) -> int | float:
        """The largest finite value; of integers an `int`, since float64 cannot hold it for 64 bits."""
        if self.is_float:
            return (2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.max_exponent
        return int(2 ** (self.bits - (self.kind == "int")) - 1)

    @property
    def lowest(self) -> int | float:
        """The lowest finite value."""
        return -self.largest if self.is_float else -int(2 ** (self.bits - 1)) if self.kind == "int" else 0

    def __str__(self) -> str:
        return self.name


DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        DType("float32", "float", 32, onnx=1, dlpack=2, halide=2, precision=24, max_exponent=127),
        DType("float16", "float", 16, onnx=10, dlpack=2, halide=2, precision=11, max_exponent=15),
        DType("bfloat16", "float", 16, onnx=16, dlpack=4, halide=4, precision=8, max_exponent=127),
        DType("float64", "float", 64, onnx=11, dlpack=2, halide=2, precision=53, max_exponent=1023),
        DType("int8", "int", 8, onnx=3, dlpack=0, halide=0),
        DType("uint8", "uint", 8, onnx=2, dlpack=1, halide=1),
        DType("int16", "int", 16, onnx=5, dlpack=0, halide=0),
        DType("uint16", "uint", 16, onnx=4, dlpack=1, halide=1),
        DType("int32", "int", 32, onnx=6, dlpack=0, halide=0),
        DType("uint32", "uint", 32, onnx=12, dlpack=1, halide=1),
        DType("int64", "int", 64, onnx=7, dlpack=0, halide=0),
        DType("uint64", "uint", 64, onnx=13, dlpack=1, halide=1),
        DType("bool", "bool", 8, onnx=9, dlpack=6, halide=1),
    )
}
_BY_ONNX = {dtype.onnx: dtype for dtype in DTYPES.values()}
_BY_DLPACK = {(dtype.dlpack, dtype.bits): dtype for dtype in DTYPES.values()}


def dtype(name: str) -> DType:
    """The type of that name.

    Raises:
        UsageError: no such type.
    """
    try:
        return DTYPES[name]
    except KeyError:
        raise UsageError(f"unknown element type {name!r}", hint="known types: " + ", ".join(DTYPES)) from None


def from_numpy(numpy_dtype: np.dtype[np.generic]) -> DType | None:
    """The type of a NumPy array in native byte order, or None where hfreg has none for it."""
    return DTYPES.get(numpy_dtype.name) if numpy_dtype.isnative else None


def from_onnx(code: int) -> DType | None:
    """The type of an `onnx.TensorProto.DataType` number, or None."""
    return _BY_ONNX.get(code)


def from_dlpack(code: int, bits: int) -> DType | None:
    """The type of a DLPack (code, bits) pair, or None."""
    return _BY_DLPACK.get((code, bits))
