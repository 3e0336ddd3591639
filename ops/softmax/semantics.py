"""Softmax along one axis. The largest value is taken away first, so no exponential overflows."""

from hfreg.lang import Tensor, exp, max, sum


def softmax(x: Tensor, *, axis: int) -> Tensor:
    e = exp(x - max(x, axis))
    return e / sum(e, axis)
