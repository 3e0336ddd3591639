"""MaxPool in two dimensions: the maximum of windows over an input padded with -inf."""

from hfreg.lang import Scalar, Tensor, max, window

Pair = tuple[Scalar, Scalar]


def max_pool(
    x: Tensor,
    *,
    kernel_shape: Pair,
    strides: Pair,
    dilations: Pair,
    pads: tuple[Scalar, Scalar, Scalar, Scalar],
) -> Tensor:
    windows = window(x, (2, 3), kernel_shape, strides=strides, pads=pads, dilations=dilations, fill=float("-inf"))
    return max(windows, (-2, -1), keepdims=False)
