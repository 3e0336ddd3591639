"""RMSNormalization."""

from hfreg.lang import Scalar, Tensor, mean, sqrt


def rms_normalization(x: Tensor, scale: Tensor, *, axis: int, epsilon: Scalar) -> Tensor:
    return x * (1.0 / sqrt(mean(x * x, axis) + epsilon)) * scale
