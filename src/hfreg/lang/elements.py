"""Element types in memory, and what kernels compute in: 16-bit floats are widened to float32 and rounded once.

bfloat16, and float16 on targets without instructions for it, are stored as plain 16-bit integers and converted on their
bits. Halide's own conversions turn some NaN into 0 or infinity, and on wasm32 lose signs; these keep NaN, infinities
and subnormals. Their arithmetic on bits is unsigned: Halide lets LLVM assume that signed integers never overflow, and
LLVM then drops what depends on a sign bit that a shift put there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import halide as hl

from hfreg.dtypes import DType

Expr = Any
Convert = Callable[[Expr], Expr]
FLOAT32, INT32, UINT16, UINT32 = hl.Float(32), hl.Int(32), hl.UInt(16), hl.UInt(32)

_SIGN, _MAGNITUDE, _INFINITY = 0x8000, 0x7FFF, 0x7C00
_FLOAT16_SMALLEST_NORMAL = 2.0**-14
_FLOAT16_OVERFLOWS = 0x477FF000  # the bits of 65520.0, halfway from the largest finite float16 to 2**16
_FLOAT32_INFINITY = 0x7F800000


@dataclass(frozen=True, slots=True)
class Element:
    """How one element type is stored and computed."""

    memory: Any
    """The Halide type of the buffer."""
    computed: Any
    """The Halide type of expressions."""
    load: Convert
    """From memory to what is computed. Exact."""
    store: Convert
    """From what is computed to memory, rounded to nearest even."""


def element(dtype: DType, *, has_float16: bool) -> Element:
    """The element for a type.

    Args:
        dtype: the type.
        has_float16: whether the target converts float16 by itself.
    """
    if dtype.name == "bfloat16":
        return Element(UINT16, FLOAT32, from_bfloat16, to_bfloat16)
    if dtype.name == "float16" and not has_float16:
        return Element(UINT16, FLOAT32, from_float16, to_float16)
    memory = {"float": hl.Float, "int": hl.Int, "uint": hl.UInt, "bool": hl.UInt}[dtype.kind](dtype.bits)
    computed = FLOAT32 if dtype.name == "float16" else memory
    return Element(memory, computed, lambda value: hl.cast(computed, value), lambda value: hl.cast(memory, value))


def from_bfloat16(bits: Expr) -> Expr:
    """The upper half of a float32 as that float32."""
    return hl.reinterpret(FLOAT32, hl.cast(UINT32, bits) << 16)


def to_bfloat16(value: Expr) -> Expr:
    """The upper half of a float32, rounded by an addition that carries into it; NaN stays NaN."""
    bits = hl.reinterpret(UINT32, value)
    rounded = (bits + _u32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    is_nan = (bits & _u32(0x7FFFFFFF)) > _u32(_FLOAT32_INFINITY)
    return hl.cast(UINT16, hl.select(is_nan, _u32(0x7FC0), rounded))


def from_float16(bits: Expr) -> Expr:
    """The bits of a float16 as float32.

    The fields, moved into place, are a float32 that is too small by the difference of the exponent biases; one
    multiplication by 2**112 makes it right, for subnormals too.
    """
    wide = hl.cast(UINT32, bits)
    fields = (wide & _u32(_MAGNITUDE)) << 13
    finite = hl.reinterpret(FLOAT32, fields) * hl.f32(2.0**112)
    is_special = (wide & _u32(_INFINITY)) == _u32(_INFINITY)
    magnitude = hl.select(is_special, fields | _u32(_FLOAT32_INFINITY), hl.reinterpret(UINT32, finite))
    return hl.reinterpret(FLOAT32, magnitude | ((wide & _u32(_SIGN)) << 16))


def to_float16(value: Expr) -> Expr:
    """A float32 as the bits of a float16.

    Normal results are rounded by an integer addition that carries into the exponent; for subnormal ones, adding 0.5
    leaves the result in the low bits, since the unit in the last place of 0.5 is the smallest subnormal.
    """
    bits = hl.reinterpret(UINT32, value)
    magnitude = bits & _u32(0x7FFFFFFF)
    size = hl.reinterpret(FLOAT32, magnitude)
    normal = (magnitude - _u32(112 << 23) + _u32(0x0FFF) + ((magnitude >> 13) & 1)) >> 13
    subnormal = hl.reinterpret(UINT32, hl.strict_float(size + hl.f32(0.5))) - _u32(0x3F000000)
    rounded = hl.select(hl.strict_float(size < hl.f32(_FLOAT16_SMALLEST_NORMAL)), subnormal, normal)
    rounded = hl.select(magnitude >= _u32(_FLOAT16_OVERFLOWS), _u32(_INFINITY), rounded)
    rounded = hl.select(magnitude > _u32(_FLOAT32_INFINITY), _u32(0x7E00), rounded)
    return hl.cast(UINT16, rounded | ((bits >> 16) & _u32(_SIGN)))


def _u32(value: int) -> Expr:
    return hl.u32(value)
