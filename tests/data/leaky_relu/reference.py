import numpy as np


def leaky_relu(x: np.ndarray, *, alpha: float) -> np.ndarray:
    return np.where(x < 0, alpha * x, x)
