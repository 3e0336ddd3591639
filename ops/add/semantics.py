"""Add: a + b, broadcast as in NumPy."""

from hfreg.lang import Tensor


def add(a: Tensor, b: Tensor) -> Tensor:
    return a + b
