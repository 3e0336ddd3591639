"""Relu: max(x, 0)."""

from hfreg.lang import Tensor, maximum


def relu(x: Tensor) -> Tensor:
    return maximum(x, 0.0)
