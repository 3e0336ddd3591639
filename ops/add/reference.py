"""Add. ONNX Add-14: element-wise sum with multidirectional broadcasting.

Inputs arrive as float64. The sum of two float32 values rounded to float64 and then to float32 is the correctly rounded
sum, since 53 >= 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?", 1995); the same holds for 16-bit types.
"""

import numpy as np


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + b
