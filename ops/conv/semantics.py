"""Conv in two dimensions: a contraction of windows with weights, channels viewed as groups."""

from hfreg.lang import Scalar, Tensor, along, contract, window

Pair = tuple[Scalar, Scalar]


def conv(
    x: Tensor,
    w: Tensor,
    b: Tensor,
    *,
    kernel_shape: Pair,
    strides: Pair,
    dilations: Pair,
    pads: tuple[Scalar, Scalar, Scalar, Scalar],
) -> Tensor:
    """x: [n, g, c, h, w], w: [g, o, (c kh kw)], b: [g, o]; the result is [n, g, o, p, q].

    A pointwise convolution is a matrix product: x is [n, g, c, (h w)] and w [g, o, c].
    """
    if x.rank == 4:
        y = contract("goc,ngcp->ngop", w, x)
    else:
        windows = window(x, (3, 4), kernel_shape, strides=strides, pads=pads, dilations=dilations, fill=0.0)
        y = contract("ngchwyx,go(cyx)->ngohw", windows, w)
    return y + along(b, (1, 2), y)
