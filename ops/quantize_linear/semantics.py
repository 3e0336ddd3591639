"""QuantizeLinear to 8 bits. The quotient is rounded to the type of x first: that is the type it is specified in."""

from hfreg.lang import Tensor, along, round_saturate, round_to


def quantize_linear(x: Tensor, y_scale: Tensor, y_zero_point: Tensor, *, axis: int | None) -> Tensor:
    quotient = x / (y_scale if axis is None else along(y_scale, axis, x))
    zero_point = y_zero_point if axis is None else along(y_zero_point, axis, x)
    return round_saturate(round_to(quotient, x), zero_point)
