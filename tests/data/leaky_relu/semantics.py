from hfreg.lang import Scalar, Tensor, where


def leaky_relu(x: Tensor, *, alpha: Scalar) -> Tensor:
    return where(x < 0.0, alpha * x, x)
