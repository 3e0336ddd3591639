"""RMSNormalization. ONNX RMSNormalization-23 with stash_type 1, in float64.

The specification computes the mean of squares in float32 (stash_type). Where the float32 squares overflow, the
specified mean is infinite and the result 0: the reference says so too.
"""

import numpy as np

FLOAT32_MAX = float(np.finfo(np.float32).max)


def rms_normalization(x: np.ndarray, scale: np.ndarray, *, axis: int, epsilon: float) -> np.ndarray:
    axes = tuple(range(axis % x.ndim, x.ndim))
    squares = np.square(x)
    mean = np.mean(np.where(squares > FLOAT32_MAX, np.inf, squares), axis=axes, keepdims=True)
    return x / np.sqrt(mean + epsilon) * scale


def error_scale(
    x: np.ndarray, scale: np.ndarray, *, axis: int, epsilon: float, expected: np.ndarray
) -> np.ndarray:
    """(2 * sqrt(n) + 6) * |y|: the sum of n squares errs like a random walk, the rest is six roundings."""
    n = int(np.prod(x.shape[axis % x.ndim :]))
    return (2.0 * np.sqrt(n) + 6.0) * np.abs(expected)
