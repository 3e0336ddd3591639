"""Rounding of float64 values to an element type, exactly, and distances in units in the last place.

Nothing here goes through an intermediate type: a float64 is rounded once, to nearest, ties to even (IEEE 754), with
gradual underflow and overflow to infinity.
"""

from __future__ import annotations

import numpy as np

from hfreg.arrays import Array, Float64
from hfreg.dtypes import DType


def quantum(values: Float64, dtype: DType) -> Float64:
    """The unit in the last place of each value's binade, 2**(e - p + 1); of zero and subnormals, the smallest one."""
    magnitude = np.where(np.isfinite(values), np.abs(values), 1.0)
    _, exponent = np.frexp(np.maximum(magnitude, dtype.smallest_normal))
    return np.asarray(np.ldexp(1.0, exponent - dtype.precision), np.float64)


def round_to(values: Float64, dtype: DType) -> Float64:
    """The nearest value of a floating-point type, as float64."""
    values = np.asarray(values, np.float64)
    unit = quantum(values, dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = np.copysign(np.rint(values / unit) * unit, values)
    overflow = np.isfinite(values) & (np.abs(rounded) > dtype.largest)
    return np.where(np.isfinite(values), np.where(overflow, np.copysign(np.inf, values), rounded), values)


def overflow_threshold(dtype: DType) -> float:
    """The smallest magnitude that rounds to infinity: half a unit above the largest finite value."""
    return dtype.largest + 2.0 ** (dtype.max_exponent - dtype.precision)


def to_float64(array: Array) -> Float64:
    """An array of any element type as float64, exactly (integers of up to 53 bits)."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return np.asarray(array).astype(np.float64)
