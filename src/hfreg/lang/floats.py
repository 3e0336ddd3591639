"""Float32 functions on Halide expressions.

Each function takes and returns float32 expressions, compiles to straight-line vector code (no calls, no tables, no
branches), and is right for NaN, infinities, zeros of both signs, and subnormal inputs and results, where its docstring
does not say otherwise. The largest errors stated were measured on all 2**32 inputs on x86-64, with FMA (AVX2, AVX-512)
and without (AVX), which gives the results of wasm32. `tools/check_floats.py` measures them again, and
`tools/fit_floats.py` derives the coefficients.

Halide compiles with fast-math flags, which let it and LLVM reorder sums and assume that NaN and infinity never occur:

1. A step whose rounding matters is `strict`. This reaches down through a whole expression, and a strict step cannot
   become part of an FMA, so polynomials stay outside. It stops at a call of a `Func`: pass one, not an expression that
   is meant to use FMA itself.
2. An outer sum that is not strict may still take strict terms apart (LLVM cancels `x - k*a - k*b` to `x - k*(a + b)`).
3. A value that is NaN or infinite comes out of a `select`, a strict step or an integer step, so that a later `is_nan`
   or `is_inf` sees it: LLVM takes the result of any other step to be finite.
4. Comparisons are `<`, `>` and `==`: on x86-64, Halide makes `a <= b` into `not (b < a)`, which is true for NaN. None
   is negated with `~`: on RISC-V vectors, Halide makes that a call of an intrinsic that does not exist.
5. Arithmetic on bits is unsigned: a signed sum or shift that overflows is undefined to LLVM, which then takes sign bits
   for granted and drops what depends on them.
"""

from collections.abc import Sequence
from typing import Final

import halide as hl

_FLOAT32: Final = hl.Float(32)
_INT32: Final = hl.Int(32)
_UINT32: Final = hl.UInt(32)
_EXPONENT_SHIFT: Final = 23
_ONE_BITS: Final = 127 << _EXPONENT_SHIFT
_SIGN_BIT: Final = 0x80000000
_SMALLEST_NORMAL: Final = 2.0**-126
_ROUND: Final = 1.5 * 2.0**23  # adding it rounds to an integer, which then sits in the low bits

# From tools/fit_floats.py. Polynomials P are highest power first; `u` is 2**-24.
_LOG2_E: Final = 1.44269502
_LN2: Final = 0.693147182
_LN2_HIGH: Final = 0.693145752  # 16 bits: its product with an exponent is exact
_LN2_LOW: Final = 1.42860677e-06
_EXP: Final = (0.00138214696, 0.00836866256, 0.0416682549, 0.166665211, 0.49999994)  # 0.05 u
_EXP_OVERFLOWS: Final = 88.7228394  # the smallest float32 with exp(x) >= 2**128
_EXP_VANISHES: Final = -104.0  # exp(x) rounds to 0
_LOG: Final = (
    -0.128800422,
    0.139845937,
    -0.121874794,
    0.14005734,
    -0.166801959,
    0.200104266,
    -0.249998063,
    0.333332151,
    -0.5,
)  # 0.08 u
_LOG_SPLIT: Final = 0x3F2AAAAB  # the bits of 2/3: mantissas are taken in [2/3, 4/3)
_TANH: Final = (-0.0527152941, 0.133311421, -0.333333224)  # 0.003 u
_TANH_IS_ONE: Final = 10.0  # tanh(x) rounds to 1
_ERF: Final = (
    -1.0695665e-05,
    0.000140113494,
    -0.000499142974,
    -0.00094384182,
    0.00797174592,
    0.00470387796,
    -0.0744171068,
    -0.0618685633,
    0.477466375,
    0.128379151,
)  # 0.33 u
_ERF_IS_ONE: Final = 4.0  # erf(x) rounds to 1, and the polynomial gives 1 there


def maximum(a: hl.Expr, b: hl.Expr) -> hl.Expr:
    """The larger value; NaN if either is NaN, as `numpy.maximum`. Of two zeros, `a`. Exact.

    One instruction if `b` is a number, else three.
    """
    return or_nan(b, hl.strict_float(hl.select(a < b, b, a)))


def minimum(a: hl.Expr, b: hl.Expr) -> hl.Expr:
    """The smaller value; NaN if either is NaN, as `numpy.minimum`. Of two zeros, `a`. Exact."""
    return or_nan(b, hl.strict_float(hl.select(a > b, b, a)))


def abs(x: hl.Expr) -> hl.Expr:
    """`x` without its sign; NaN stays NaN. Exact."""
    return _from_bits(_bits(x) & hl.u32(_SIGN_BIT - 1))


def sqrt(x: hl.Expr) -> hl.Expr:
    """The square root, correctly rounded; NaN for x < 0, and -0 for -0."""
    return hl.sqrt(x)


def round_half_even(x: hl.Expr) -> hl.Expr:
    """The nearest integer, the even one of two, with the sign of `x`. Exact."""
    return hl.round(x)


def round_saturate(x: hl.Expr, offset: hl.Expr) -> hl.Expr:
    """`x` to the nearest integer, the even one of two, plus an 8-bit integer, within the range of its type. Exact.

    NaN becomes 0. Clamping first gives the same result, and keeps the sum with 1.5 * 2**23 exact.
    """
    kind = offset.type()
    low, high = (-128, 127) if kind.is_int() else (0, 255)
    shift = hl.cast(_FLOAT32, offset)
    clamped = hl.clamp(x, hl.f32(float(low)) - shift, hl.f32(float(high)) - shift)
    rounded = _bits(hl.strict_float(clamped + hl.f32(_ROUND))) - hl.u32(0x4B400000)
    value = hl.reinterpret(_INT32, rounded) + hl.cast(_INT32, offset)
    return hl.cast(kind, hl.select(hl.is_nan(x), hl.i32(0), value))


def exp(x: hl.Expr) -> hl.Expr:
    """e**x within 0.90 ULP (1.17 without FMA), subnormal results included. Those are slow on Intel processors."""
    p, k = _exp_parts(_at_least(x, _EXP_VANISHES))
    # p * 2**k, by way of 2**64 where it may be subnormal. The exponent of p < 1 has room for k = 128.
    is_small = hl.strict_float(x < hl.f32(-87.0))
    scaled = _from_bits(_bits(p) + k + hl.select(is_small, hl.u32(64 << _EXPONENT_SHIFT), hl.u32(0)))
    value = hl.select(is_small, scaled * hl.f32(2.0**-64), scaled)
    return hl.select(hl.strict_float(x < hl.f32(_EXP_OVERFLOWS)), value, hl.strict_float(x + hl.f32(float("inf"))))


def exp_of_difference(x: hl.Expr) -> hl.Expr:
    """e**x for a rounded difference x = a - b <= 0 or NaN. Results below 2**-126 are 0.

    The error is at most 0.9 ULP plus |x| * 2**-24 of the result, about as much as the rounding of x has made already:
    that admits a reduction of the argument by one FMA. The low bits of `shifted` are k + 127, and 0 for k = -127, so a
    masked element (-inf) gives exactly 0. Subnormal results would cost nothing but a multiplication that takes 15 times
    as long, on Intel processors, for each masked element.
    """
    x = hl.strict_float(hl.select(hl.f32(-88.0) > x, hl.f32(-88.0), x))  # keeps NaN
    biased = hl.f32(_ROUND + 127)
    shifted = x * hl.f32(_LOG2_E) + biased
    r = x - hl.strict_float(shifted - biased) * hl.f32(_LN2)
    return _polynomial(r, (*_EXP, 1.0, 1.0)) * _from_bits(_bits(shifted) << _EXPONENT_SHIFT)


def log(x: hl.Expr) -> hl.Expr:
    """The natural logarithm within 0.94 ULP (1.07 without FMA). log(0) is -inf; NaN for x < 0.

    x = 2**k * (1 + m), and log(1 + m) = m + m**2 * P(m).
    """
    is_small = hl.strict_float(x < hl.f32(_SMALLEST_NORMAL))
    normal = hl.strict_float(x * hl.f32(2.0**23))
    bits = hl.select(is_small, _bits(normal) - hl.u32(23 << _EXPONENT_SHIFT), _bits(x))
    k = hl.reinterpret(_INT32, bits - hl.u32(_LOG_SPLIT)) >> _EXPONENT_SHIFT
    m = hl.strict_float(_from_bits(bits - (hl.reinterpret(_UINT32, k) << _EXPONENT_SHIFT)) - hl.f32(1.0))
    # The maximum changes nothing, but keeps LLVM from adding k * ln 2 to m first, which would cost half an ULP.
    log_mantissa = hl.max(m * m * _polynomial(m, _LOG) + m, hl.f32(-1.0))
    value = hl.cast(_FLOAT32, k) * hl.f32(_LN2) + log_mantissa
    value = hl.select(hl.strict_float(x < hl.f32(float("inf"))), value, x)
    value = _from_bits(_bits(value) | _mask(hl.strict_float(x < hl.f32(0.0))))
    return hl.select(hl.strict_float(x == hl.f32(0.0)), hl.f32(float("-inf")), value)


def sigmoid(x: hl.Expr) -> hl.Expr:
    """1 / (1 + exp(-x)) within 2.5 ULP, subnormal results included. Those are slow on Intel processors.

    With exp(x) = p * 2**k it is p / (2**-k + p). Both terms carry a factor of 2**-24, which makes 2**-k finite for
    every k that gives a result above 0.
    """
    p, k = _exp_parts(_at_most(_at_least(x, _EXP_VANISHES - 1.0), 71.0), scale=2.0**-24)
    p = _opaque(p)
    return or_nan(x, p / (_from_bits(hl.u32(_ONE_BITS - (24 << _EXPONENT_SHIFT)) - k) + p))


def tanh(x: hl.Expr) -> hl.Expr:
    """The hyperbolic tangent within 2.5 ULP; odd.

    |x| = z + k * ln 2 / 2 with |z| <= ln 2 / 4. With w = 2**-k, the tangent of the second term is (1 - w) / (1 + w),
    and the addition theorem joins it with t = tanh(z) = z + z**3 * P(z**2). Here k <= 29, and an error of z weighs
    only w in the result, so one constant for ln 2 / 2 is enough.
    """
    y = _at_most(abs(x), _TANH_IS_ONE)
    rounded = hl.strict_float(y * hl.f32(2.0 * _LOG2_E) + hl.f32(_ROUND))
    z = y - hl.strict_float(rounded - hl.f32(_ROUND)) * hl.f32(0.5 * _LN2)
    s = z * z
    t = z + z * s * _polynomial(s, _TANH)
    w = _from_bits(hl.u32(_ONE_BITS) - (_bits(rounded) << _EXPONENT_SHIFT))
    above, below = hl.strict_float(hl.f32(1.0) + w), hl.strict_float(hl.f32(1.0) - w)
    return or_nan(x, _with_sign_of(x, (below + t * above) / (above + t * below)))


def erf(x: hl.Expr) -> hl.Expr:
    """The error function within 2.8 ULP (3.7 without FMA); odd, and exactly 1 from 4 on.

    With h = (1 - erf|x|)**(1/4), a = 4 * (1 - h) is |x| + |x| * P(|x|): h is smooth enough for one polynomial over
    the whole range, and 1 - h**4 damps its error where erf is near 1. Then 1 - h**4 = b * (1 - b / 4), where
    b = 2 * (1 - h**2) = a * (1 - a / 8); both keep the relative accuracy of a near 0.
    """
    y = _at_most(abs(x), _ERF_IS_ONE)
    a = y * _polynomial(y, _ERF) + _opaque(y)
    b = a * (hl.f32(1.0) - a * hl.f32(1 / 8))
    return or_nan(x, _with_sign_of(x, b * (hl.f32(1.0) - b * hl.f32(1 / 4))))


def _exp_parts(x: hl.Expr, scale: float = 1.0) -> tuple[hl.Expr, hl.Expr]:
    """exp(x) as p * 2**k: `scale` * p with p in [0.7, 1.42), and k in the exponent bits of a uint32.

    p = exp(r) = 1 + r + r**2 * P(r), where x = r + k * ln 2.
    """
    rounded = hl.strict_float(x * hl.f32(_LOG2_E) + hl.f32(_ROUND))
    k = hl.strict_float(rounded - hl.f32(_ROUND))
    r = hl.strict_float(x - k * hl.f32(_LN2_HIGH) - k * hl.f32(_LN2_LOW))
    return _polynomial(r, [c * scale for c in (*_EXP, 1.0, 1.0)]), _bits(rounded) << _EXPONENT_SHIFT


def _polynomial(x: hl.Expr, coefficients: Sequence[float]) -> hl.Expr:
    """Horner's rule, highest power first."""
    value = hl.f32(coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + hl.f32(coefficient)
    return value


def _at_least(x: hl.Expr, low: float) -> hl.Expr:
    """The larger value; `low` if `x` is NaN. One instruction."""
    return hl.strict_float(hl.select(x > hl.f32(low), x, hl.f32(low)))


def _at_most(x: hl.Expr, high: float) -> hl.Expr:
    """The smaller value; `high` if `x` is NaN. One instruction."""
    return hl.strict_float(hl.select(x < hl.f32(high), x, hl.f32(high)))


def or_nan(x: hl.Expr, value: hl.Expr) -> hl.Expr:
    """`value`, but NaN where `x` is NaN. (An `or` costs less than a choice of two values where masks are vectors.)"""
    return _from_bits(_bits(value) | _mask(hl.is_nan(x)))


def _mask(condition: hl.Expr) -> hl.Expr:
    """All ones where the condition holds, which is a NaN, else zeros."""
    return hl.select(condition, hl.u32(0xFFFFFFFF), hl.u32(0))


def _with_sign_of(x: hl.Expr, value: hl.Expr) -> hl.Expr:
    """A value >= 0 with the sign of `x`."""
    return _from_bits(_bits(value) | (_bits(x) & hl.u32(_SIGN_BIT)))


def _opaque(x: hl.Expr) -> hl.Expr:
    """`x`. Halide's simplifier cannot merge it with what is around it; LLVM removes the extra steps."""
    bits = _bits(x)
    return _from_bits(bits | (bits & hl.u32(1)))


def _bits(x: hl.Expr) -> hl.Expr:
    return hl.reinterpret(_UINT32, x)


def _from_bits(bits: hl.Expr) -> hl.Expr:
    return hl.reinterpret(_FLOAT32, bits)
