"""Compare an output with the reference, element by element, under one bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hfreg.arrays import Array, Float64
from hfreg.dtypes import DType
from hfreg.evaluation.bounds import allowed_error, rule
from hfreg.evaluation.rounding import overflow_threshold, quantum, round_to, to_float64
from hfreg.ops.manifest import Accuracy


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an output relates to the reference."""

    elements: int
    wrong: int
    """Elements beyond the bound, or that differ in being NaN or infinite."""
    detail: str = ""
    """The worst element: index, value, reference, bound. Empty where nothing is wrong."""
    max_ratio: float = 0.0
    """The largest error divided by its bound: 1 is at the limit. What is left to it is the headroom."""
    max_ulp: float = 0.0
    """The largest error in units in the last place of the output type."""
    sum_squares_ulp: float = 0.0
    sum_ulp: float = 0.0
    """Signed: its mean is the bias."""

    @property
    def is_right(self) -> bool:
        return self.wrong == 0


def compare(
    actual: Array, expected: Array, dtype: DType, accuracy: Accuracy, scale: Float64 | None = None
) -> Comparison:
    """Compare one output.

    Args:
        actual: what the kernel wrote, of element type `dtype`.
        expected: the reference, of the same shape: float64 before rounding, or integers.
        dtype: the output's element type.
        accuracy: the manifest's contract.
        scale: the class's scale, broadcastable to the shape.
    """
    if not dtype.is_float:
        return _compare_exact(actual, np.asarray(expected), np.asarray(actual) != np.asarray(expected))
    got, want = to_float64(actual), np.asarray(expected, np.float64)
    if rule(accuracy).is_exact:
        rounded = round_to(want, dtype)
        differs = (got != rounded) & ~(np.isnan(got) & np.isnan(rounded))
        if accuracy.signed_zero:
            differs |= (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
        return _compare_exact(got, rounded, differs)
    bound = allowed_error(accuracy, want, dtype, scale)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _compare_bounded(got, want, dtype, bound)


def _compare_exact(got: Array, want: Array, differs: Array) -> Comparison:
    wrong = int(np.count_nonzero(differs))
    detail = ""
    if wrong:
        where = _largest(differs)
        detail = f"at {_index(where)}: {_show(got[where])}, expected exactly {_show(want[where])}"
    return Comparison(int(differs.size), wrong, detail, max_ratio=float(wrong > 0))


def _compare_bounded(got: Float64, want: Float64, dtype: DType, bound: Float64) -> Comparison:
    # 1. NaN where the reference is NaN, and nowhere else.
    wrong = np.isnan(got) != np.isnan(want)
    # 2. Infinity where the reference is infinite, with its sign; elsewhere only where the bound reaches the overflow.
    wrong |= np.isinf(want) & (got != want)
    reaches = (np.abs(want) + bound >= overflow_threshold(dtype)) & (np.sign(want) == np.sign(got))
    wrong |= np.isinf(got) & ~np.isinf(want) & ~reaches
    # 3. Finite values within the bound.
    error = np.where(np.isfinite(got) & np.isfinite(want), got - want, 0.0)
    in_ulp = error / quantum(want, dtype)
    ratio = np.where(wrong, np.inf, np.abs(error) / bound)
    wrong |= ratio > 1.0
    detail = ""
    if wrong.any():
        where = _largest(ratio)
        detail = (
            f"at {_index(where)}: {_show(got[where])}, expected {_show(want[where])}; the error is {error[where]:.3g}, "
            f"{np.abs(in_ulp[where]):.3g} ULP, {bound[where]:.3g} is allowed"
        )
    return Comparison(
        int(got.size),
        int(np.count_nonzero(wrong)),
        detail,
        max_ratio=float(ratio.max(initial=0.0)),
        max_ulp=float(np.abs(in_ulp).max(initial=0.0)),
        sum_squares_ulp=float(np.square(in_ulp).sum()),
        sum_ulp=float(in_ulp.sum()),
    )


def _largest(values: Array) -> tuple[np.intp, ...]:
    """The index of the first largest value."""
    return np.unravel_index(int(np.argmax(values)), values.shape) if values.shape else ()


def _index(where: tuple[np.intp, ...]) -> str:
    return str([int(i) for i in where])


def _show(value: np.generic | float) -> str:
    return f"{value:.9g}" if isinstance(value, (float, np.floating)) else str(value)
