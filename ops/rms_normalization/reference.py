"""RMSNormalization. ONNX RMSNormalization-23 with stash_type 1, in float64."""

import numpy as np


def rms_normalization(x: np.ndarray, scale: np.ndarray, *, axis: int, epsilon: float) -> np.ndarray:
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = np.mean(np.square(x), axis=axes, keepdims=True)
    return x / np.sqrt(mean + epsilon) * scale


def error_scale(x: np.ndarray, scale: np.ndarray, *, axis: int, epsilon: float, expected: np.ndarray) -> np.ndarray:
    """(2 * sqrt(n) + 6) * |y|: the sum of n squares errs like a random walk, the rest is six roundings."""
    n = int(np.prod(x.shape[axis % x.ndim :]))
    return (2.0 * np.sqrt(n) + 6.0) * np.abs(expected)
