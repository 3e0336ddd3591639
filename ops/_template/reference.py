"""The oracle of $name: independent of the semantics, in higher precision. Floats arrive as float64."""

import numpy as np


def $name(x: np.ndarray) -> np.ndarray:
    return x * x
