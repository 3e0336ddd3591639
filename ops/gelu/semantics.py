"""Gelu, in both forms of ONNX Gelu-20."""

import math

from hfreg.lang import Tensor, erf, maximum, tanh

LOWEST = -3.4028235e38  # -inf becomes this: -inf times a zero would be NaN


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    x = maximum(x, LOWEST)
    if approximate == "tanh":
        return 0.5 * x * (1.0 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + erf(x * math.sqrt(0.5)))
