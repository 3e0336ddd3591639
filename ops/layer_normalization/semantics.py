"""LayerNormalization, in passes: a one-pass variance cancels where the mean is large.

The mean of a long row errs by several units in the last place, and where the variance is small that is most of the
result. What is left of the mean after it was taken away once is small, and so is the error of taking that away.
"""

from hfreg.lang import Scalar, Tensor, mean, sqrt


def layer_normalization(x: Tensor, scale: Tensor, bias: Tensor, *, axis: int, epsilon: Scalar) -> Tensor:
    d = x - mean(x, axis)
    d = d - mean(d, axis)
    return d * (1.0 / sqrt(mean(d * d, axis) + epsilon)) * scale + bias
