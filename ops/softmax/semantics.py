"""Softmax along one axis. The largest value is taken away first, so no exponential overflows."""

from hfreg.lang import Tensor, exp, nanmax, sum


def softmax(x: Tensor, *, axis: int) -> Tensor:
    e = exp(x - nanmax(x, axis))  # NaN comes back through its exponential, and the sum
    return e * (1.0 / sum(e, axis))
