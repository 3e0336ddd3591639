"""Derive the constants of `hfreg.lang.floats`: python tools/fit_floats.py (needs scipy)

Each function is reduced to a small interval where it is a polynomial P plus terms that cost no accuracy; `floats.py`
says how. P is the best one there is under a weight that turns its error into the relative error of the function:
`minimax` finds it as a linear program over a grid of Chebyshev points. `fit` then rounds the coefficients to float32
one at a time, the lowest power first, and lets the higher ones make up for it. Targets are computed with 40 digits.

The output is the constants that `floats.py` holds, each polynomial with the largest relative error that exact
arithmetic on its rounded coefficients would make, in units of u = 2**-24. It is an error if `floats.py` holds others.
"""

import dataclasses
import sys
from collections.abc import Callable

import mpmath as mp
import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from hfreg.lang import floats

mp.mp.dps = 40
_POINTS = 600  # even, so that none falls on 0, where a target may be a removable singularity
_U = 2.0**-24
_ROOT = 4  # erf is fitted through the fourth root of 1 - erf
Function = Callable[[mp.mpf], mp.mpf]
Values = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """P(x) of `terms` terms on [low, high]; `weight` * (error of P) is the relative error of the function."""

    target: Function
    weight: Function
    low: mp.mpf
    high: mp.mpf
    terms: int
    fixed: tuple[float, ...] = ()
    """Coefficients that are given, lowest power first."""


def minimax(target: Values, weight: Values, x: Values, terms: int) -> Values:
    """Coefficients c, lowest power first, that minimize the largest |weight * (target - sum(c[i] * x**i))|."""
    basis = weight[:, None] * x[:, None] ** np.arange(terms)
    scale = np.abs(basis).max(axis=0)
    basis /= scale
    start = np.linalg.lstsq(basis, weight * target, rcond=None)[0]
    left = (weight * target - basis @ start) / _U
    # Minimize the bound b in -b <= left - basis @ step <= b.
    ones = np.ones((x.size, 1))
    solution = linprog(
        [0.0] * terms + [1.0],
        np.block([[-basis, -ones], [basis, -ones]]),
        np.concatenate([-left, left]),
        bounds=(None, None),
    ).x
    coefficients: Values = (start + _U * solution[:terms]) / scale
    return coefficients


def fit(problem: Problem) -> tuple[list[float], float]:
    """Float32 coefficients, highest power first, and the largest relative error in units of u."""
    angles = [mp.pi * (i + mp.mpf(1) / 2) / _POINTS for i in range(_POINTS)]
    low, high = mp.mpf(problem.low), mp.mpf(problem.high)
    xs = [(low + high) / 2 - (high - low) / 2 * mp.cos(angle) for angle in angles]
    target, weight = [problem.target(x) for x in xs], [abs(problem.weight(x)) for x in xs]
    coefficients: list[float] = []
    for i in range(problem.terms):
        if i < len(problem.fixed):
            coefficient = problem.fixed[i]
        else:
            best = minimax(_values(target), _values(weight), _values(xs), problem.terms - i)
            coefficient = float(np.float32(best[0]))
        coefficients.insert(0, coefficient)
        # What is left is x times a polynomial of one term less.
        target = [(t - coefficient) / x for t, x in zip(target, xs, strict=True)]
        weight = [w * abs(x) for w, x in zip(weight, xs, strict=True)]
    return coefficients, float(max(abs(t) * w for t, w in zip(target, weight, strict=True)) / _U)


def _values(numbers: list[mp.mpf]) -> Values:
    return np.array(numbers, dtype=np.float64)


def _erfc_root(x: mp.mpf) -> mp.mpf:
    return mp.erfc(x) ** (mp.mpf(1) / _ROOT)


_LN2 = mp.log(2)
_MARGIN = mp.mpf("1.0001")  # the rounding of x / ln 2 may choose the next integer
_ERF_IS_ONE = mp.mpf(4)
_ERF_ROOT_FLOOR = mp.mpf("0.016")  # a smaller erfc**(1/4) is weighed as if it were this, so that erf(4) comes out as 1
POLYNOMIALS = {
    # exp(r) = 1 + r + r**2 * P(r)
    "_EXP": Problem(
        lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -_LN2 / 2 * _MARGIN, _LN2 / 2 * _MARGIN, 5
    ),
    # log(1 + m) = m + m**2 * P(m)
    "_LOG": Problem(
        lambda m: (mp.log1p(m) - m) / m**2,
        lambda m: m**2 / mp.log1p(m),
        -mp.mpf(1) / 3,
        mp.mpf(1) / 3,
        9,
        fixed=(-0.5,),
    ),
    # tanh(z) = z + z**3 * P(s), s = z**2
    "_TANH": Problem(
        lambda s: (mp.tanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s,
        lambda s: s * mp.sqrt(s) / mp.tanh(mp.sqrt(s)),
        mp.mpf("1e-9"),
        (_LN2 / 4 * _MARGIN) ** 2,
        3,
    ),
    # 4 * (1 - erfc(x)**(1/4)) = x + x * P(x); d erf = erfc**(3/4) * (its error)
    "_ERF": Problem(
        lambda x: _ROOT * (1 - _erfc_root(x)) / x - 1,
        lambda x: max(_erfc_root(x), _ERF_ROOT_FLOOR) ** (_ROOT - 1) * x / mp.erf(x),
        mp.mpf("1e-6"),
        _ERF_IS_ONE,
        10,
    ),
}


def scalars() -> dict[str, float]:
    """The constants that are not coefficients."""
    high = mp.nint(_LN2 * 2**16) / 2**16
    overflow = np.float32(float(128 * _LN2))  # the nearest float32 to ln(2**128) is above it,
    subnormal = np.float32(float(-126 * _LN2))  # and the one nearest to ln(2**-126) below
    assert mp.exp(float(overflow)) >= mp.mpf(2) ** 128 and mp.exp(float(subnormal)) < mp.mpf(2) ** -126
    values = {"_LOG2_E": 1 / _LN2, "_LN2": _LN2, "_LN2_HIGH": high, "_LN2_LOW": _LN2 - high}
    rounded = {name: float(np.float32(float(value))) for name, value in values.items()}
    return rounded | {"_EXP_OVERFLOWS": float(overflow), "_EXP_SUBNORMAL": float(subnormal)}


def main() -> int:
    constants: dict[str, float | list[float]] = dict(scalars())
    errors = {}
    for name, problem in POLYNOMIALS.items():
        constants[name], errors[name] = fit(problem)
    for name, value in constants.items():
        text = ", ".join(f"{v:.9g}" for v in value) if isinstance(value, list) else f"{value:.9g}"
        print(f"{name} = {text}" + (f"  # {errors[name]:.3f} u" if name in errors else ""))
    differing = [
        name
        for name, value in constants.items()
        if not np.array_equal(np.asarray(value, np.float32), np.asarray(getattr(floats, name), np.float32))
    ]
    print(f"floats.py differs in {', '.join(differing)}" if differing else "floats.py holds the same values")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
