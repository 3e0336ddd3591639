"""The logarithm of softmax along one axis. Taking the largest value away first keeps every exponential finite."""

from hfreg.lang import Tensor, exp, log, nanmax, sum


def log_softmax(x: Tensor, *, axis: int) -> Tensor:
    d = x - nanmax(x, axis)  # NaN comes back through the sum
    return d - log(sum(exp(d), axis))
