"""LayerNormalization. ONNX LayerNormalization-17 with stash_type 1, in float64."""

import numpy as np


def _parts(x: np.ndarray, axis: int, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """x minus its mean, and 1 / sqrt(variance + epsilon)."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    d = x - np.mean(x, axis=axes, keepdims=True)
    variance = np.mean(np.square(d), axis=axes, keepdims=True)
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
