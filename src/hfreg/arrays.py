"""Names for NumPy arrays in type hints."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of any element type."""
Float64 = np.ndarray[Any, np.dtype[np.float64]]
