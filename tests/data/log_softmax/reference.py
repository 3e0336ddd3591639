"""LogSoftmax-13 in float64: x - max - log(sum(exp(x - max))). Floats arrive as float64."""

import numpy as np


def log_softmax(x: np.ndarray, *, axis: int) -> np.ndarray:
    if x.size == 0:
        return x
    d = x - np.max(x, axis=axis, keepdims=True)
    return d - np.log(np.sum(np.exp(d), axis=axis, keepdims=True))


def error_scale(x: np.ndarray, *, axis: int, expected: np.ndarray) -> np.ndarray:
    """|d| for the subtraction; 2 |L| for the logarithm L; 3 + sqrt(n) + E|d| for the relative error of the sum."""
    if x.size == 0:
        return x
    d = x - np.max(x, axis=axis, keepdims=True)
    e = np.exp(d)
    total = np.sum(e, axis=axis, keepdims=True)
    weight = np.sum(np.where(e > 0, e * np.abs(d), 0.0), axis=axis, keepdims=True) / total
    finite = np.where(np.isfinite(d), np.abs(d), 0.0)
    return finite + 2.0 * np.abs(np.log(total)) + 3.0 + np.sqrt(x.shape[axis]) + weight
