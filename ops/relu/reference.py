"""Relu. ONNX Relu-14: y = max(0, x), element by element. Exact."""

import numpy as np


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)
