"""Gelu. ONNX Gelu-20: x * Phi(x), or with approximate="tanh" 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3))).

Both are written without cancellation: 1 + erf(z) is erfc(-z), and 1 + tanh(z) is 2 / (1 + exp(-2z)), so float64 has a
relative error of a few units in the last place, far more than 24 bits beyond every type here. The limits at -inf and
inf are 0 and inf.
"""

import math

import numpy as np

_erfc = np.vectorize(math.erfc, otypes=[float])


def _half_weight(x: np.ndarray, approximate: str) -> np.ndarray:
    """Phi(x), or its approximation."""
    if approximate == "tanh":
        z = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 1 / (1 + np.exp(-2 * z))
    return 0.5 * _erfc(-x * math.sqrt(0.5))


def gelu(x: np.ndarray, *, approximate: str) -> np.ndarray:
    if x.size == 0:
        return x
    finite = np.where(np.isinf(x), 0.0, x)
    return np.where(x == -np.inf, -0.0, np.where(x == np.inf, np.inf, finite * _half_weight(finite, approximate)))


def error_scale(x: np.ndarray, *, approximate: str, expected: np.ndarray) -> np.ndarray:
    """The sum of the magnitudes of the terms 0.5 * x and 0.5 * x * erf(...) (or tanh)."""
    return np.abs(0.5 * x) + np.abs(expected - 0.5 * x)
