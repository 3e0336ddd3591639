"""QuantizeLinear to 8 bits. The quotient is rounded to the type of x first: that is the type it is specified in."""

from hfreg.lang import Tensor, along, round_to, saturate


def quantize_linear(x: Tensor, y_scale: Tensor, y_zero_point: Tensor, *, axis: int | None) -> Tensor:
    if axis is not None:
        y_scale, y_zero_point = along(y_scale, axis, x), along(y_zero_point, axis, x)
    quotient = round_to(x / y_scale, x)
    return saturate(quotient, y_zero_point)
