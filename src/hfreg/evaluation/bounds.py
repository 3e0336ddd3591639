"""How far a result may be from the reference: one rule for each accuracy class. docs/accuracy.md derives them.

For an output element with reference value `ref`, the largest error allowed is

    u_out * max(|ref|, smallest normal) + B

plus 2**-126 where the manifest declares that subnormal intermediate results are flushed. `u_out` is the unit roundoff
of the output type and B the class's own term, in which `u_acc` is the unit roundoff
of the accumulator (float32 for every type here) and `scale` an array that the package's reference works out:

    E0  moves, comparisons            the same value, to the bit
    E1  one correctly rounded step    the correctly rounded value, to the bit
    E2  one elementary function       a number of ULP, instead of the above; of log in [0.5, 2], 2**-21
    E3  composites                    4 * u_acc * scale,  scale = sum of |intermediate terms|
    E4  contractions                  16 * u_acc * scale, scale = the contraction of the absolute values
    E5  normalizations                constant * u_acc * scale, scale by operator
    E7  integer contractions          the same value
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hfreg.arrays import Float64
from hfreg.dtypes import DTYPES, DType
from hfreg.evaluation.rounding import quantum
from hfreg.ops.manifest import Accuracy

ACCUMULATOR = DTYPES["float32"]

ScaleSource = Literal["none", "absolute", "reference"]


@dataclass(frozen=True, slots=True)
class BoundRule:
    """The rule of one class."""

    name: str
    is_exact: bool
    """Whether the result must be the reference, correctly rounded."""
    scale: ScaleSource = "none"
    """Where the scale comes from: the reference run on absolute values, or its function `error_scale`."""
    constant: float = 0.0
    """B = constant * u_acc * scale."""


RULES: dict[str, BoundRule] = {
    rule.name: rule
    for rule in (
        BoundRule("E0", is_exact=True),
        BoundRule("E1", is_exact=True),
        BoundRule("E2", is_exact=False),
        BoundRule("E3", is_exact=False, scale="reference", constant=4.0),
        BoundRule("E4", is_exact=False, scale="absolute", constant=16.0),
        BoundRule("E5", is_exact=False, scale="reference", constant=1.0),
        BoundRule("E7", is_exact=True),
    )
}

FUNCTION_ULP = {"exp": 3.0, "log": 3.0, "sin": 4.0, "cos": 4.0, "tanh": 5.0, "sigmoid": 5.0, "erf": 16.0, "pow": 16.0}
"""E2 in float32, in ULP (the OpenCL full profile's table, except for sigmoid). 16-bit types: 1 ULP."""
LOG_ERROR_NEAR_ONE = 2.0**-21
"""E2 in float32, of log between 0.5 and 2: what its result there, which goes through 0, may be off."""


def rule(accuracy: Accuracy) -> BoundRule:
    """The rule that a manifest asks for."""
    return RULES[accuracy.bound]


def allowed_error(accuracy: Accuracy, expected: Float64, dtype: DType, scale: Float64 | None) -> Float64:
    """The largest error allowed at each element.

    Args:
        accuracy: the manifest's contract.
        expected: the reference values, any shape.
        dtype: the output's element type.
        scale: an array that broadcasts with `expected`, for the rules that have one.
    """
    chosen = rule(accuracy)
    flushed = ACCUMULATOR.smallest_normal if accuracy.flushes_subnormals else 0.0
    magnitude = np.abs(np.where(np.isfinite(expected), expected, 0.0))
    if chosen.name == "E2":
        return _function_error(accuracy.function, magnitude, dtype) + flushed
    half_subnormal = max(dtype.smallest_subnormal / 2, math.ulp(0.0))  # of float64, no float64
    bound = np.maximum(dtype.unit_roundoff * magnitude, half_subnormal) + flushed
    if scale is None:
        return bound
    with np.errstate(over="ignore", invalid="ignore"):
        return bound + chosen.constant * ACCUMULATOR.unit_roundoff * np.where(np.isfinite(scale), scale, 0.0)


def _function_error(function: str, magnitude: Float64, dtype: DType) -> Float64:
    if dtype.name != "float32":
        return quantum(magnitude, dtype)
    error = FUNCTION_ULP[function] * quantum(magnitude, dtype)
    return np.where(magnitude <= math.log(2.0), LOG_ERROR_NEAR_ONE, error) if function == "log" else error
