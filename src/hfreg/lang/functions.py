"""The vocabulary of operator authors. It shadows `max`, `sum`, `round` and `abs` on purpose, as NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import halide as hl

from hfreg.lang import floats
from hfreg.lang.elements import FLOAT32
from hfreg.lang.reduction import Monoid, reduce
from hfreg.lang.tensor import Expr, Extent, Input, Operand, Tensor, elementwise, strict


def exp(x: Tensor) -> Tensor:
    """e**x. Cheaper where `x` is the distance to a maximum, as in `x - max(x, axis)`."""
    function = floats.exp_of_difference if x.is_difference else floats.exp
    return elementwise("exp", function, x, is_costly=True)


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    return elementwise("log", floats.log, x, is_costly=True)


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return elementwise("tanh", floats.tanh, x, is_costly=True)


def erf(x: Tensor) -> Tensor:
    """The error function."""
    return elementwise("erf", floats.erf, x, is_costly=True)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return elementwise("sigmoid", floats.sigmoid, x, is_costly=True)


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    return elementwise("sqrt", floats.sqrt, x)


def abs(x: Tensor) -> Tensor:
    """The magnitude."""
    return elementwise("abs", floats.abs, x)


def round(x: Tensor) -> Tensor:
    """The nearest integer, the even one of two, as a float."""
    return elementwise("round", floats.round_half_even, x)


def maximum(a: Operand, b: Operand) -> Tensor:
    """The larger value, NaN if either is."""
    return elementwise("maximum", _number_or(floats.maximum, hl.max), a, b)


def minimum(a: Operand, b: Operand) -> Tensor:
    """The smaller value, NaN if either is."""
    return elementwise("minimum", _number_or(floats.minimum, hl.min), a, b)


def where(condition: Tensor, a: Operand, b: Operand) -> Tensor:
    """`a` where the condition holds, else `b`; one of them is a tensor. A condition is `x < y`, or a boolean input."""

    def if_true(first: Expr, is_true: Expr, other: Expr) -> Expr:
        return hl.select(hl.cast(hl.UInt(1), is_true), first, other)

    def if_false(other: Expr, is_true: Expr, first: Expr) -> Expr:
        return if_true(first, is_true, other)

    # the first of the operands is a tensor of the result's type
    return (
        elementwise("where", if_true, a, condition, b)
        if isinstance(a, Tensor)
        else elementwise("where", if_false, b, condition, a)
    )


def round_to(x: Tensor, like: Tensor) -> Tensor:
    """`x`, rounded to the element type of an input."""
    assert isinstance(like, Input)
    kind = like.element
    return elementwise("round_to", lambda value: floats.or_nan(value, kind.load(kind.store(value))), x)


def round_saturate(x: Tensor, offset: Tensor) -> Tensor:
    """Round to the nearest integer, the even one of two, add an 8-bit integer, and take the nearest of its type.

    NaN becomes 0.
    """
    assert isinstance(offset, Tensor)
    return elementwise("round_saturate", floats.round_saturate, x, offset)


def max(x: Tensor, axis: int | Sequence[int], *, keepdims: bool = True) -> Tensor:
    """The largest value along some axes, NaN if one of them is."""
    combine = _number_or(floats.maximum, hl.max)
    return reduce(Monoid("max", combine, _lowest(x), is_idempotent=True, is_maximum=True), x, axis, keepdims=keepdims)


def nanmax(x: Tensor, axis: int | Sequence[int], *, keepdims: bool = True) -> Tensor:
    """The largest value along some axes, NaN left out; -inf where there is no other. Cheaper than `max`."""
    monoid = Monoid("max", hl.max, _lowest(x), is_idempotent=True, is_maximum=True)
    return reduce(monoid, x, axis, keepdims=keepdims)


def sum(x: Tensor, axis: int | Sequence[int], *, keepdims: bool = True) -> Tensor:
    """The sum along some axes."""
    return reduce(Monoid("sum", lambda a, b: strict(a + b), hl.cast(x.dtype, 0)), x, axis, keepdims=keepdims)


def mean(x: Tensor, axis: int | Sequence[int], *, keepdims: bool = True) -> Tensor:
    """The mean along some axes."""
    count: Extent = 1
    for place in [axis] if isinstance(axis, int) else axis:
        count = x.extent(place) * count
    total = sum(x, axis, keepdims=keepdims)
    return elementwise("mean", lambda value, n: strict(value / n), total, hl.cast(FLOAT32, count))


def _number_or(
    of_floats: Callable[[Expr, Expr], Expr], of_integers: Callable[[Expr, Expr], Expr]
) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: of_floats(a, b) if a.type().is_float() else of_integers(a, b)


def _lowest(x: Tensor) -> Expr:
    return hl.f32(float("-inf")) if x.dtype == FLOAT32 else x.dtype.min()
