"""LayerNormalization. ONNX LayerNormalization-17 with stash_type 1, in float64.

The specification computes mean and variance in float32 (stash_type). Where the float32 sum of squares overflows, so
does the specified variance, and the normalized value is 0: the reference says so too.
"""

import numpy as np

FLOAT32_MAX = float(np.finfo(np.float32).max)


def _parts(x: np.ndarray, axis: int, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """x minus its mean, and 1 / sqrt(variance + epsilon)."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    d = x - np.mean(x, axis=axes, keepdims=True)
    squares = np.square(d)
    variance = np.mean(np.where(squares > FLOAT32_MAX, np.inf, squares), axis=axes, keepdims=True)
    return d, 1.0 / np.sqrt(variance + epsilon)


def layer_normalization(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray | None, *, axis: int, epsilon: float
) -> np.ndarray:
    d, inverse = _parts(x, axis, epsilon)
    y = d * inverse * scale
    return y if bias is None else y + bias


def error_scale(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray | None, *, axis: int, epsilon: float, expected: np.ndarray
) -> np.ndarray:
    """4 * (max |x| / sqrt(variance + epsilon) * |scale| + |bias|): the mean errs by the size of the largest element."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    _, inverse = _parts(x, axis, epsilon)
    largest = np.max(np.abs(x), axis=axes, keepdims=True, initial=0.0)
    scale_term = largest * inverse * np.abs(scale)
    return 4.0 * (scale_term if bias is None else scale_term + np.abs(bias))
