"""LayerNormalization, in two passes: a one-pass variance cancels where the mean is large."""

from hfreg.lang import Scalar, Tensor, mean, sqrt


def layer_normalization(x: Tensor, scale: Tensor, bias: Tensor, *, axis: int, epsilon: Scalar) -> Tensor:
    d = x - mean(x, axis)
    return d * (1.0 / sqrt(mean(d * d, axis) + epsilon)) * scale + bias
