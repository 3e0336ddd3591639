from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.arrays import Float64
from hfreg.dtypes import DTYPES
from hfreg.evaluation.rounding import overflow_threshold, quantum, round_to, to_float64

NARROW = ["float32", "float16", "bfloat16"]
FLOATS = [*NARROW, "float64"]
SIXTEEN = ["float16", "bfloat16"]


def values_of(name: str) -> Float64:
    """Every finite value of a 16-bit type that is not negative, in order: their bits are 0, 1, 2, ..."""
    infinity = {"float16": 0x7C00, "bfloat16": 0x7F80}[name]
    return np.arange(infinity, dtype=np.uint16).view(DTYPES[name].numpy).astype(np.float64)


def cast(values: Float64, name: str) -> Float64:
    """The witness: how NumPy (and ml_dtypes, for bfloat16) convert."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return values.astype(DTYPES[name].numpy).astype(np.float64)


def nearest(value: float, name: str) -> float:
    """The nearest value by exact arithmetic, ties to the even significand: IEEE 754-2019, section 4.3.1."""
    if value == 0 or not math.isfinite(value):
        return value
    dtype = DTYPES[name]
    exact = abs(Fraction(value))
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent += (Fraction(2) ** exponent <= exact) - 1  # 2**exponent <= exact < 2**(exponent + 1)
    unit = Fraction(2) ** (max(exponent, 1 - dtype.max_exponent) - dtype.precision + 1)
    rounded = round(exact / unit) * unit  # Python rounds halves to even
    if rounded > Fraction(2) ** dtype.max_exponent * (2 - Fraction(2) ** (1 - dtype.precision)):
        return math.copysign(math.inf, value)
    return math.copysign(float(rounded), value)


def assert_same(got: Float64, expected: Float64) -> None:
    """The same values, signs of zeros included."""
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


any_float = st.floats(allow_nan=True, allow_infinity=True)


def around(name: str) -> st.SearchStrategy[float]:
    """Floats where the type has values: over its exponents, and at its ends."""
    dtype = DTYPES[name]
    low, high = 2 - dtype.max_exponent - dtype.precision - 3, dtype.max_exponent + 3
    spread = st.builds(
        math.ldexp, st.floats(1, 2), st.integers(max(low, -1080), min(high, 1022))
    ).flatmap(lambda x: st.sampled_from([x, -x]))  # fmt: skip
    return spread | any_float


@pytest.mark.parametrize("name", ["float32", "float16"])
@given(st.data())
def test_rounding_is_numpys(name: str, data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(around(name), max_size=20)), np.float64)
    assert_same(round_to(values, DTYPES[name]), cast(values, name))


@given(st.lists(st.floats(width=32), max_size=20))
def test_rounding_to_bfloat16_is_that_of_ml_dtypes(values: list[float]) -> None:
    # On float32 values: from float64, ml_dtypes may round twice.
    array = np.array(values, np.float64)
    assert_same(round_to(array, DTYPES["bfloat16"]), cast(array, "bfloat16"))


@pytest.mark.parametrize("name", FLOATS)
@given(st.data())
def test_rounding_is_that_of_exact_arithmetic(name: str, data: st.DataObject) -> None:
    value = data.draw(around(name).filter(lambda x: not math.isnan(x)))
    assert_same(round_to(np.array(value), DTYPES[name]), np.array(nearest(value, name)))


@pytest.mark.parametrize("name", SIXTEEN)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_every_halfway_case_goes_to_even_and_its_neighbours_to_their_side(name: str, sign: float) -> None:
    values = values_of(name)
    below, above = values[:-1], values[1:]
    halfway = (below + above) / 2  # exact in float64
    even = np.where(np.arange(len(below)) % 2 == 0, below, above)  # the bits count up, so even bits alternate
    dtype = DTYPES[name]
    assert_same(round_to(sign * halfway, dtype), sign * even)
    assert_same(round_to(sign * np.nextafter(halfway, 0), dtype), sign * below)
    assert_same(round_to(sign * np.nextafter(halfway, np.inf), dtype), sign * above)
    assert_same(round_to(sign * halfway, dtype), cast(sign * halfway, name))


@given(st.lists(st.integers(0, 0x7F7FFFFE), min_size=1, max_size=50))
def test_halfway_cases_of_float32_go_to_even(bits: list[int]) -> None:
    below = np.array(bits, np.uint32)
    low, high = (part.view(np.float32).astype(np.float64) for part in (below, below + np.uint32(1)))
    halfway = (low + high) / 2
    even = np.where(below % 2 == 0, low, high)
    assert_same(round_to(halfway, DTYPES["float32"]), even)
    assert_same(round_to(-halfway, DTYPES["float32"]), -even)
    assert_same(round_to(np.nextafter(halfway, np.inf), DTYPES["float32"]), high)


@pytest.mark.parametrize("name", SIXTEEN)
def test_every_value_of_the_type_stays_what_it_is(name: str) -> None:
    values = values_of(name)
    both = np.concatenate([values, -values, [np.inf, -np.inf, np.nan]])
    assert_same(round_to(both, DTYPES[name]), both)


@given(st.lists(any_float, max_size=20))
def test_rounding_to_float64_changes_nothing(values: list[float]) -> None:
    array = np.array(values, np.float64)
    np.testing.assert_array_equal(round_to(array, DTYPES["float64"]), array)


@pytest.mark.parametrize("name", NARROW)
def test_overflow_begins_half_a_unit_above_the_largest_value(name: str) -> None:
    dtype = DTYPES[name]
    threshold = overflow_threshold(dtype)
    largest = float(ml_dtypes.finfo(dtype.numpy).max)
    just_below = np.nextafter(threshold, 0)
    values = np.array([largest, just_below, threshold, -just_below, -threshold])
    expected = np.array([largest, largest, np.inf, -largest, -np.inf])
    assert_same(round_to(values, dtype), expected)
    assert_same(cast(values[[0, 2, 4]], name), expected[[0, 2, 4]])


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_the_shape_is_kept(shape: tuple[int, ...]) -> None:
    assert round_to(np.full(shape, 0.1), DTYPES["float16"]).shape == shape
    assert quantum(np.full(shape, 0.1), DTYPES["float16"]).shape == shape


def spacing(values: Any) -> Float64:
    """NumPy's own: the distance to the next value away from zero."""
    return np.asarray(np.spacing(values), np.float64)


@pytest.mark.parametrize(("name", "numpy_type"), [("float16", np.float16), ("float32", np.float32)])
def test_the_quantum_of_a_value_is_numpys_spacing(name: str, numpy_type: type[np.float16 | np.float32]) -> None:
    if name == "float16":
        values = values_of(name)[1:-1].astype(numpy_type)
    else:
        exponents = np.arange(-149, 127)
        values = np.concatenate([np.ldexp(1.0, exponents), np.ldexp(1.999, exponents)]).astype(numpy_type)
    np.testing.assert_array_equal(quantum(values.astype(np.float64), DTYPES[name]), spacing(values))
    np.testing.assert_array_equal(quantum(-values.astype(np.float64), DTYPES[name]), spacing(values))


def test_the_quantum_of_a_bfloat16_is_the_distance_to_the_next_one() -> None:
    values = values_of("bfloat16")
    np.testing.assert_array_equal(quantum(values[1:-1], DTYPES["bfloat16"]), np.diff(values)[1:])


@pytest.mark.parametrize("name", FLOATS)
def test_the_quantum_of_zero_is_the_smallest_subnormal(name: str) -> None:
    # "... and that of the subnormals below them": zero and all subnormals are one smallest subnormal apart, as
    # np.spacing(np.float32(0)) == 1.4e-45 says. An error at a reference of zero is measured in these units.
    smallest = float(ml_dtypes.finfo(DTYPES[name].numpy).smallest_subnormal)
    np.testing.assert_array_equal(quantum(np.array([0.0, -0.0]), DTYPES[name]), [smallest, smallest])


@pytest.mark.parametrize("name", NARROW)
@given(st.data())
def test_the_quantum_of_a_value_between_two_values_is_that_of_its_binade(name: str, data: st.DataObject) -> None:
    dtype = DTYPES[name]
    value = data.draw(around(name).filter(lambda x: math.isfinite(x) and dtype.smallest_subnormal <= abs(x)))
    exponent = math.frexp(value)[1] - 1
    assert quantum(np.array(value), dtype) == 2.0 ** (max(exponent, 1 - dtype.max_exponent) - dtype.precision + 1)


@pytest.mark.parametrize("name", [*FLOATS, "int8", "uint16", "int32", "bool"])
def test_arrays_of_every_type_become_float64_exactly(name: str) -> None:
    raw = np.arange(64, dtype=np.uint8) % (2 if name == "bool" else 251)
    array = raw.view(DTYPES[name].numpy)
    wide = to_float64(array)
    assert wide.dtype == np.float64
    for got, value in zip(wide.tolist(), array.tolist(), strict=True):
        assert got == float(value) or math.isnan(got)


@pytest.mark.parametrize(("name", "bits"), [("float16", 0x7D01), ("bfloat16", 0x7FA1), ("float32", 0x7FA00001)])
def test_a_signalling_nan_is_a_nan_like_any_other(name: str, bits: int) -> None:
    # A kernel can write any bits; converting them must not warn (warnings are errors in a user's suite).
    array = np.array([bits], np.uint32 if name == "float32" else np.uint16).view(DTYPES[name].numpy)
    assert np.isnan(to_float64(array)).all()
