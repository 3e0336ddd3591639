"""Softmax. ONNX Softmax-13: exp(x) / sum(exp(x)) along one axis, in float64 with the largest value taken away.

By IEEE 754 rules a row that holds NaN or inf, or nothing but -inf, is NaN; a single -inf gives 0.
"""

import numpy as np


def softmax(x: np.ndarray, *, axis: int) -> np.ndarray:
    if x.size == 0:
        return x
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def error_scale(x: np.ndarray, *, axis: int, expected: np.ndarray) -> np.ndarray:
    """p * (3 + 2 * |x - max| + sqrt(n)): the subtraction and exp, their argument's rounding, and the sum."""
    if x.size == 0:
        return x
    distance = np.abs(x - np.max(x, axis=axis, keepdims=True))
    weight = np.where(np.isfinite(distance), distance, 0.0)
    return expected * (3.0 + 2.0 * weight + np.sqrt(x.shape[axis]))
