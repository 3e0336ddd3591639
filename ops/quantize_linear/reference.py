"""QuantizeLinear. ONNX QuantizeLinear-23, precision 0: saturate(round_half_even(x / y_scale) + y_zero_point).

The division has the precision of y_scale's type, so the quotient is rounded to that type before it is rounded to an
integer. A float64 quotient rounded to float32 or a 16-bit type is the correctly rounded one (innocuous double
rounding, 53 >= 2 * 24 + 2). NaN, of which the specification says nothing, becomes 0.

Older versions do not say what precision the division has. onnxruntime 1.32 divides float16 in float32 up to version 21
and in float16 from version 23 on; onnx.reference always divides in float16, and so does this package.
"""

import ml_dtypes
import numpy as np

RANGES = {"uint8": (0, 255), "int8": (-128, 127)}
ELEMENTS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def quantize_linear(
    x: np.ndarray,
    y_scale: np.ndarray,
    y_zero_point: np.ndarray | None,
    *,
    axis: int,
    types: dict[str, str],
) -> np.ndarray:
    zero_point = np.zeros(y_scale.shape) if y_zero_point is None else y_zero_point.astype(np.float64)
    if y_scale.ndim == 1 and y_scale.size == x.shape[axis]:
        along = [-1 if place == axis % x.ndim else 1 for place in range(x.ndim)]
        y_scale, zero_point = y_scale.reshape(along), zero_point.reshape(along)
    # float64 to bfloat16 goes by way of float32 in ml_dtypes, which is innocuous too: 24 >= 2 * 8 + 2
    quotient = (x / y_scale).astype(ELEMENTS[types["T"]]).astype(np.float64)
    low, high = RANGES[types["T2"]]
    rounded = np.clip(np.rint(quotient) + zero_point, low, high)
    return np.where(np.isnan(rounded), 0, rounded).astype(types["T2"])
