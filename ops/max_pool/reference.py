"""MaxPool. ONNX MaxPool-22 in two dimensions, exact. Padding is -inf; NaN in a window gives NaN (IEEE 754 maximum)."""

import numpy as np


def max_pool(
    x: np.ndarray,
    *,
    kernel_shape: list[int],
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    ceil_mode: int,
) -> np.ndarray:
    def positions(axis: int) -> int:
        extent, before, after = x.shape[2 + axis], pads[axis], pads[2 + axis]
        room = extent + before + after - ((kernel_shape[axis] - 1) * dilations[axis] + 1)
        count = room // strides[axis] + 1
        # rounded up, unless the last window would start in the padding behind the input
        if ceil_mode and room % strides[axis] and count * strides[axis] < extent + before:
            count += 1
        return count

    p, q = positions(0), positions(1)
    y = np.full((*x.shape[:2], p, q), -np.inf)
    for i in range(p):
        for j in range(q):
            rows = [i * strides[0] - pads[0] + k * dilations[0] for k in range(kernel_shape[0])]
            columns = [j * strides[1] - pads[1] + k * dilations[1] for k in range(kernel_shape[1])]
            rows = [row for row in rows if 0 <= row < x.shape[2]]
            columns = [column for column in columns if 0 <= column < x.shape[3]]
            if rows and columns:
                window = x[:, :, rows][:, :, :, columns]
                y[:, :, i, j] = np.max(window, axis=(2, 3))
    return y
