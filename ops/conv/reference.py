"""Conv. ONNX Conv-22 in two dimensions, in float64: windows of the padded input, contracted with the weights."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def conv(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None,
    *,
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    group: int,
) -> np.ndarray:
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    reach = [(size - 1) * step + 1 for size, step in zip(w.shape[2:], dilations, strict=True)]
    windows = sliding_window_view(padded, reach, axis=(2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    n, channels, p, q, kh, kw = windows.shape
    grouped = windows.reshape(n, group, channels // group, p, q, kh, kw)
    weights = w.reshape(group, w.shape[0] // group, *w.shape[1:])
    y = np.einsum("ngcpqyx,gocyx->ngopq", grouped, weights, optimize=True).reshape(n, w.shape[0], p, q)
    return y if b is None else y + b[:, None, None]
