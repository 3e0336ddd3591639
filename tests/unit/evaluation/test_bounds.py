"""The bounds of accuracy.md, worked out here with exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.dtypes import DTYPES
from hfreg.evaluation.bounds import FUNCTION_ULP, RULES, allowed_error, rule
from hfreg.ops.manifest import Accuracy, Function

# p and e_max of IEEE 754 binary16 and binary32, and of bfloat16.
FORMATS = {"float32": (24, 127), "float16": (11, 15), "bfloat16": (8, 127)}
U_ACC = Fraction(1, 2**24)  # unit roundoff of a float32 accumulator

# accuracy.md, "Bound": E3 4 u sum|terms|, E4 at most 16, E5 by operator (the constant is in the scale).
CONSTANTS = {"E3": 4, "E4": 16, "E5": 1}


def accuracy(bound: str, **fields: Any) -> Accuracy:
    return Accuracy.model_validate({"bound": bound, **fields})


def rounding_term(value: float, name: str) -> Fraction:
    """u_out * max(|ref|, smallest normal)."""
    precision, max_exponent = FORMATS[name]
    smallest_normal = Fraction(1, 2 ** (max_exponent - 1))
    return max(abs(Fraction(value)), smallest_normal) * Fraction(1, 2**precision)


def test_there_is_a_rule_for_each_class_that_a_manifest_may_name() -> None:
    allowed = Accuracy.model_json_schema()["properties"]["bound"]["enum"]
    assert set(RULES) == set(allowed)
    assert all(rule(accuracy(name)) is RULES[name] for name in allowed)


@pytest.mark.parametrize(
    ("name", "is_exact", "scale"),
    [
        ("E0", True, "none"),
        ("E1", True, "none"),
        ("E2", False, "none"),
        ("E3", False, "reference"),
        ("E4", False, "absolute"),
        ("E5", False, "reference"),
        ("E7", True, "none"),
    ],
)
def test_a_rule_says_what_it_needs(name: str, is_exact: bool, scale: str) -> None:
    assert (RULES[name].is_exact, RULES[name].scale) == (is_exact, scale)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("bound", "constant"), CONSTANTS.items())
@given(
    st.floats(-60000, 60000, allow_subnormal=True),
    st.floats(0, 1e6).filter(lambda x: x == 0 or x > 1e-30),
)
def test_the_bound_is_the_rounding_of_the_output_and_the_scale(
    name: str, bound: str, constant: int, value: float, scale: float
) -> None:
    got = allowed_error(accuracy(bound), np.array([value]), DTYPES[name], np.array([scale]))
    expected = rounding_term(value, name) + constant * U_ACC * Fraction(scale)
    # Worked out in float64: a product, a product and a sum, each right to 2**-53.
    assert abs(Fraction(float(got[0])) - expected) <= expected * Fraction(4, 2**53)


# OpenCL 3.0 specification, table of full-profile errors: exp, log 3; sin, cos 4; tanh 5; erf, pow 16.
OPENCL_ULP = {"exp": 3, "log": 3, "sin": 4, "cos": 4, "tanh": 5, "erf": 16, "pow": 16}


def test_the_functions_have_the_bounds_of_opencl() -> None:
    assert {name: FUNCTION_ULP[name] for name in OPENCL_ULP} == OPENCL_ULP


def test_every_function_that_a_manifest_may_name_has_a_bound() -> None:
    assert set(FUNCTION_ULP) == set(get_args(Function))


IN_UNITS = [
    (function, value)
    for function in sorted(OPENCL_ULP)
    for value in (1.0, -1.5, 1.9999, 2.0, 3e-39, 1e-45, 3e38)
    if function != "log" or abs(value) > np.log(2)  # below, log has an absolute bound
]


@pytest.mark.parametrize(("function", "value"), IN_UNITS)
def test_an_elementary_function_is_bounded_in_units_in_the_last_place(function: str, value: float) -> None:
    got = allowed_error(accuracy("E2", function=function), np.array([value]), DTYPES["float32"], None)
    unit = float(np.spacing(np.float32(abs(value))))
    assert got[0] == OPENCL_ULP[function] * unit


def test_a_logarithm_between_a_half_and_two_is_bounded_absolutely() -> None:
    # accuracy.md: "log 3 (absolute 2**-21 in [0.5, 2])"; `spacing` is that of the result.
    x = np.array([0.5, 0.75, np.nextafter(1, 0), 1.0, 1.25, 2.0, 0.5 - 2.0**-25, 2.0 + 2.0**-22, 1e-45, 3e38])
    got = allowed_error(accuracy("E2", function="log"), np.log(x), DTYPES["float32"], None)
    in_units = 3 * np.spacing(np.abs(np.log(x)).astype(np.float32)).astype(np.float64)
    np.testing.assert_array_equal(got, [*[2.0**-21] * 6, *in_units[6:]])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("function", sorted(OPENCL_ULP))
def test_a_16_bit_function_is_bounded_by_one_unit(name: str, function: str) -> None:
    values = np.array([1.0, 1.5, 2.0, -4.0, 2.0**-14])
    precision, _ = FORMATS[name]
    got = allowed_error(accuracy("E2", function=function), values, DTYPES[name], None)
    np.testing.assert_array_equal(got, 2.0 ** (np.floor(np.log2(np.abs(values))) - precision + 1))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("function", ["sin", "tanh", "erf"])
def test_where_a_function_is_zero_only_subnormal_errors_are_allowed(name: str, function: str) -> None:
    # sin(0) = tanh(0) = erf(0) = 0 exactly: a few units in the last place of zero are a few smallest subnormals.
    got = allowed_error(accuracy("E2", function=function), np.array([0.0]), DTYPES[name], None)
    precision, max_exponent = FORMATS[name]
    smallest_subnormal = 2.0 ** (2 - max_exponent - precision)
    assert got[0] == (OPENCL_ULP[function] if name == "float32" else 1) * smallest_subnormal


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("bound", ["E2", *CONSTANTS])
@pytest.mark.parametrize("value", [0.5, 2.0**-120])
def test_where_subnormals_are_flushed_the_bound_is_wider_by_the_smallest_normal_float32(
    bound: str, name: str, value: float
) -> None:
    # manifest.py, `flushes_subnormals`: "It adds 2**-126 to the bound." Sums of two floats, right to 2**-53 of the sum.
    function = "exp" if bound == "E2" else ""
    scale = None if bound == "E2" else np.array([0.0])
    without, flushed = (
        allowed_error(
            accuracy(bound, function=function, flushes_subnormals=flush), np.array([value]), DTYPES[name], scale
        )
        for flush in (False, True)
    )
    np.testing.assert_allclose(flushed, without + 2.0**-126, rtol=2.0**-52)
    # Beside the bound of a float16, which is at least 2**-25, it cannot be seen.
    assert (flushed[0] > without[0]) == (value < 0.1 and name != "float16")


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("bound", ["E2", *CONSTANTS])
def test_a_reference_that_is_not_finite_has_a_finite_bound(bound: str, value: float) -> None:
    scale = None if bound == "E2" else np.array([1.0])
    contract = accuracy(bound, function="exp" if bound == "E2" else "")
    assert np.isfinite(allowed_error(contract, np.array([value]), DTYPES["float32"], scale)).all()


@pytest.mark.parametrize("scale", [np.inf, np.nan])
def test_a_scale_that_is_not_finite_excuses_nothing(scale: float) -> None:
    got = allowed_error(accuracy("E4"), np.array([1.0]), DTYPES["float32"], np.array([scale]))
    assert got[0] == 2.0**-24


def test_a_scale_is_broadcast_to_the_reference() -> None:
    expected = np.ones((2, 3))
    scale = np.array([[0.0], [2.0]])
    got = allowed_error(accuracy("E5"), expected, DTYPES["float32"], scale)
    np.testing.assert_array_equal(got, 2.0**-24 * np.array([[1.0] * 3, [3.0] * 3]))
