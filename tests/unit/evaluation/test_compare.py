from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.arrays import Array, Float64
from hfreg.dtypes import DTYPES
from hfreg.evaluation.compare import Comparison, compare
from hfreg.ops.manifest import Accuracy

INF, NAN = np.inf, np.nan
FLOAT32 = DTYPES["float32"]
ULP = 2.0**-23
"""One unit in the last place of float32 in [1, 2)."""


def accuracy(bound: str, **fields: Any) -> Accuracy:
    return Accuracy.model_validate({"bound": bound, **fields})


EXACT = [accuracy(bound) for bound in ("E0", "E1", "E7")]
EXP = accuracy("E2", function="exp")  # 3 ULP in float32
BOUNDED = [EXP, accuracy("E3"), accuracy("E4"), accuracy("E5")]


def check(
    got: Any, want: Any, contract: Accuracy, *, name: str = "float32", scale: Any = None, is_right: bool
) -> Comparison:
    if scale is None and contract.bound in ("E3", "E4", "E5"):
        scale = 0.0
    actual = np.array(got, np.float64).astype(DTYPES[name].numpy)
    found = compare(
        actual,
        np.array(want, np.float64),
        DTYPES[name],
        contract,
        None if scale is None else np.asarray(scale, np.float64),
    )
    assert found.is_right is is_right, found
    assert (found.wrong == 0) is is_right
    assert bool(found.detail) is not is_right
    assert found.elements == actual.size
    return found


# Exact rules


@pytest.mark.parametrize("contract", EXACT, ids=lambda c: c.bound)
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_an_exact_result_is_the_reference_rounded_to_the_type(contract: Accuracy, name: str) -> None:
    want = np.array([1 / 3, -2 / 3, 1e-30, 0.1, 65000.0, 0.0])
    check(want, want, contract, name=name, is_right=True)


@pytest.mark.parametrize("contract", EXACT, ids=lambda c: c.bound)
@pytest.mark.parametrize("direction", [-1, 1])
def test_an_exact_result_is_missed_by_one_unit(contract: Accuracy, direction: int) -> None:
    want = np.array([1 / 3, 2 / 3])
    got = want.astype(np.float32)
    got[1] = np.nextafter(got[1], np.float32(direction * np.inf))
    found = check(got, want, contract, is_right=False)
    assert found.wrong == 1
    assert found.detail == f"at [1]: {float(got[1]):.9g}, expected exactly {float(np.float32(2 / 3)):.9g}"
    assert found.max_ratio == 1.0


SPECIAL = [0.0, 1.0, -1.0, INF, -INF, NAN]


@pytest.mark.parametrize("contract", [*EXACT, *BOUNDED], ids=lambda c: c.bound)
@pytest.mark.parametrize("want", SPECIAL)
@pytest.mark.parametrize("got", SPECIAL)
def test_nan_and_infinity_are_right_where_the_reference_has_them_and_nowhere_else(
    contract: Accuracy, got: float, want: float
) -> None:
    is_same = bool(got == want or (np.isnan(got) and np.isnan(want)))
    found = check([1.0, got], [1.0, want], contract, is_right=is_same)
    assert found.wrong == int(not is_same)


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7FC00001, 0xFFFFFFFF])
def test_any_nan_is_a_nan(bits: int) -> None:
    actual = np.array([bits], np.uint32).view(np.float32)
    for contract in (*EXACT, *BOUNDED):
        assert compare(actual, np.array([NAN]), FLOAT32, contract, np.zeros(1)).is_right


@pytest.mark.parametrize("contract", [*EXACT, *BOUNDED], ids=lambda c: c.bound)
@pytest.mark.parametrize(("got", "want"), [(0.0, -0.0), (-0.0, 0.0), (0.0, 0.0), (-0.0, -0.0)])
def test_the_sign_of_a_zero_counts_where_the_result_is_exact(contract: Accuracy, got: float, want: float) -> None:
    differs = bool(np.signbit(got) != np.signbit(want))
    check(got, want, contract, is_right=not (differs and contract in EXACT))


@pytest.mark.parametrize("bound", ["E0", "E1"])
def test_the_sign_of_a_zero_can_be_left_open(bound: str) -> None:
    contract = accuracy(bound, signed_zero=False)
    check([0.0, -0.0], [-0.0, 0.0], contract, is_right=True)
    check([1.0, -1.0], [-1.0, -1.0], contract, is_right=False)


@pytest.mark.parametrize("contract", EXACT, ids=lambda c: c.bound)
def test_a_reference_that_underflows_keeps_its_sign(contract: Accuracy) -> None:
    check([-0.0, 0.0], [-1e-50, 1e-50], contract, is_right=True)
    check([0.0], [-1e-50], contract, is_right=False)


@pytest.mark.parametrize("contract", EXACT, ids=lambda c: c.bound)
def test_a_reference_that_overflows_is_infinite(contract: Accuracy) -> None:
    largest = float(np.finfo(np.float32).max)
    threshold = 2.0**128 - 2.0**103  # IEEE 754-2019, 4.3.1: half a unit above the largest value
    check([INF, -INF, largest], [threshold, -1e39, np.nextafter(threshold, 0)], contract, is_right=True)
    check([largest], [threshold], contract, is_right=False)
    check([INF], [np.nextafter(threshold, 0)], contract, is_right=False)


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "int64", "uint64", "bool"])
def test_integers_are_compared_exactly(name: str) -> None:
    info = np.iinfo(name) if name != "bool" else None
    values = [True, False, True] if info is None else [info.min, info.max, 1]
    want = np.array(values, name)
    got = want.copy()
    assert compare(got, want, DTYPES[name], accuracy("E7")).is_right
    got[1] ^= True if info is None else np.array(1, name)  # the last bit
    found = compare(got, want, DTYPES[name], accuracy("E7"))
    assert (found.elements, found.wrong) == (3, 1)
    assert found.detail == f"at [1]: {got[1]}, expected exactly {want[1]}"


def test_integers_of_a_wider_reference_do_not_wrap() -> None:
    got = np.array([-1], np.int8)
    assert not compare(got, np.array([255], np.int64), DTYPES["int8"], accuracy("E0")).is_right
    assert compare(got, np.array([-1], np.int64), DTYPES["int8"], accuracy("E0")).is_right


# Bounded rules


@pytest.mark.parametrize(
    ("contract", "scale", "units"),
    [
        # u_out |ref| + B with |ref| = 1, u = ULP / 2, and B = 4, 16, 1 times u times the scale.
        pytest.param(EXP, None, 3, id="E2: 3 ULP"),
        pytest.param(accuracy("E2", function="erf"), None, 16, id="E2: 16 ULP"),
        pytest.param(accuracy("E3"), 1.75, 4, id="E3: (1 + 4 * 1.75) / 2"),
        pytest.param(accuracy("E4"), 0.4375, 4, id="E4: (1 + 16 * 0.4375) / 2"),
        pytest.param(accuracy("E5"), 9.0, 5, id="E5: (1 + 9) / 2"),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("side", [1, -1])
def test_a_bound_is_met_at_its_limit_and_missed_by_one_unit(
    contract: Accuracy, scale: float | None, units: int, sign: int, side: int
) -> None:
    want = sign * 1.0
    step = ULP if side * sign > 0 else ULP / 2  # below 1 the values of float32 are twice as dense
    at_limit = want + side * units * ULP
    beyond = at_limit + side * step
    assert np.float32(at_limit) == at_limit and np.float32(beyond) == beyond
    found = check([want, at_limit], [want, want], contract, scale=scale, is_right=True)
    assert found.max_ratio == 1.0
    assert found.max_ulp == units
    found = check([want, beyond], [want, want], contract, scale=scale, is_right=False)
    assert found.wrong == 1
    assert found.max_ratio == (units * ULP + step) / (units * ULP)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_16_bit_function_may_be_off_by_one_unit(name: str) -> None:
    unit = float(ml_dtypes.finfo(DTYPES[name].numpy).eps)
    check(1.5 + unit, 1.5, EXP, name=name, is_right=True)
    check(1.5 + 2 * unit, 1.5, EXP, name=name, is_right=False)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("contract", BOUNDED, ids=lambda c: c.bound)
@given(st.data())
def test_a_correctly_rounded_result_is_always_right(name: str, contract: Accuracy, data: st.DataObject) -> None:
    # Rounding to nearest errs by at most u |ref|, and by half a smallest subnormal below the normal numbers.
    want = np.array(data.draw(st.lists(st.floats(width=32), max_size=20)), np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        got = want.astype(DTYPES[name].numpy)
    found = compare(got, want, DTYPES[name], contract, None if contract is EXP else np.zeros(len(want)))
    assert found.is_right, found.detail


def test_where_the_reference_is_zero_an_error_of_a_small_normal_number_is_wrong() -> None:
    # sin(0) = tanh(0) = erf(0) = 0. 1e-8 is 2**99 times the smallest normal float32: no bound in ULP admits it.
    for function in ("sin", "tanh", "erf"):
        check([1e-8], [0.0], accuracy("E2", function=function), is_right=False)


def test_an_error_at_a_reference_of_zero_is_measured_in_smallest_subnormals() -> None:
    found = compare(np.array([2.0**-149], np.float32), np.array([0.0]), FLOAT32, EXP)
    assert found.max_ulp == 1.0


@pytest.mark.parametrize("contract", BOUNDED[1:], ids=lambda c: c.bound)
def test_below_the_normal_numbers_half_a_subnormal_is_allowed_without_a_scale(contract: Accuracy) -> None:
    smallest = 2.0**-149
    check([smallest], [smallest / 2], contract, is_right=True)
    check([2 * smallest], [smallest], contract, is_right=False)


LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    ("got", "want", "is_right"),
    [
        (INF, 2.0**128, True),  # rounds to infinity
        (INF, LARGEST, True),  # 3 ULP above it is beyond the largest value
        (INF, LARGEST - 2 * 2.0**104, True),  # 2 + 3 ULP reach 0.5 ULP beyond
        (INF, LARGEST - 3 * 2.0**104, False),  # 3 ULP above it is the largest value, which does not overflow
        (-INF, LARGEST, False),
        (INF, -LARGEST, False),
        (-INF, -LARGEST, True),
        (INF, 1e38, False),
        (LARGEST, LARGEST, True),
        (LARGEST, 2.0**128, True),  # one unit below a reference just beyond the type: within 3 ULP
        (LARGEST, 2.0**130, False),
        (LARGEST, INF, False),
    ],
)
def test_overflow_is_right_where_the_bound_reaches_it(got: float, want: float, is_right: bool) -> None:
    check([1.0, got], [1.0, want], EXP, is_right=is_right)


def test_the_worst_element_is_named_with_its_place_its_error_and_its_bound() -> None:
    want = np.ones((2, 3))
    got = want + np.array([[0, 1, 0], [40, 0, 4]]) * ULP
    found = check(got, want, EXP, is_right=False)
    assert found.wrong == 2
    assert found.detail == (
        f"at [1, 0]: {1 + 40 * ULP:.9g}, expected 1; the error is {40 * ULP:.3g}, 40 ULP, {3 * ULP:.3g} is allowed"
    )
    assert found.max_ulp == 40.0
    assert found.max_ratio == 40 / 3


def test_a_misplaced_nan_is_worse_than_any_error() -> None:
    found = check([[5.0, 1.0], [1.0, NAN]], [[1.0, 1.0], [1.0, 1.0]], EXP, is_right=False)
    assert found.wrong == 2
    assert found.detail.startswith("at [1, 1]: nan, expected 1")
    assert found.max_ratio == INF


def test_errors_are_recorded_where_nothing_is_wrong() -> None:
    units = np.array([0, 1, -2, 1, 3])
    found = check(1.5 + units * ULP, np.full(5, 1.5), EXP, is_right=True)
    assert found.elements == 5
    assert found.max_ulp == 3.0
    assert found.sum_ulp == 3.0  # 0 + 1 - 2 + 1 + 3
    assert found.sum_squares_ulp == 15.0  # 0 + 1 + 4 + 1 + 9
    assert found.max_ratio == 1.0


@pytest.mark.parametrize("contract", [*EXACT, *BOUNDED], ids=lambda c: c.bound)
@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_nothing_is_wrong_of_nothing(contract: Accuracy, shape: tuple[int, ...]) -> None:
    found = check(np.zeros(shape), np.zeros(shape), contract, scale=np.zeros(shape), is_right=True)
    assert (found.elements, found.max_ratio, found.max_ulp) == (0, 0.0, 0.0)


@pytest.mark.parametrize("contract", [*EXACT, *BOUNDED], ids=lambda c: c.bound)
def test_a_scalar_is_one_element_at_no_index(contract: Accuracy) -> None:
    assert check(2.0, 2.0, contract, is_right=True).elements == 1
    assert check(3.0, 2.0, contract, is_right=False).detail.startswith("at []: 3, expected")


def test_a_scale_widens_the_bound_element_by_element() -> None:
    want = np.ones((2, 2))
    got = want + np.array([[8, 8], [1, 8]]) * ULP
    scale = np.array([[16.0], [2.0]])  # (1 + 16) / 2 and (1 + 2) / 2 units
    found = check(got, want, accuracy("E5"), scale=scale, is_right=False)
    assert found.wrong == 1
    assert found.detail.startswith("at [1, 1]")


@pytest.mark.parametrize("contract", BOUNDED[1:], ids=lambda c: c.bound)
def test_equal_float64_results_are_right_with_a_ratio_that_is_a_number(contract: Accuracy) -> None:
    # u * smallest normal is 2**-1075 for float64, which float64 itself cannot hold: the bound must not become 0.
    values = np.array([0.0, 1.0])
    found = compare(values, values, DTYPES["float64"], contract, np.zeros(2))
    assert found.is_right
    assert found.max_ratio == 0.0


@pytest.mark.parametrize("contract", BOUNDED, ids=lambda c: c.bound)
def test_the_ends_of_float64_are_compared_without_a_warning(contract: Accuracy) -> None:
    ends = np.array([np.finfo(np.float64).max, -np.finfo(np.float64).max, 5e-324, 0.0])
    assert compare(ends, ends, DTYPES["float64"], contract, np.zeros(4)).is_right
    assert compare(ends, -ends, DTYPES["float64"], contract, np.zeros(4)).wrong >= 2


floats = st.lists(st.floats(width=32), min_size=1, max_size=8)


@given(floats, floats, st.sampled_from([*EXACT, *BOUNDED]))
def test_what_is_counted_is_what_is_wrong_one_by_one(got: list[float], want: list[float], contract: Accuracy) -> None:
    size = min(len(got), len(want))
    actual: Array = np.array(got[:size], np.float32)
    expected: Float64 = np.array(want[:size], np.float64)
    scale = None if contract is EXP or contract in EXACT else np.zeros(size)
    together = compare(actual, expected, FLOAT32, contract, scale)
    alone = [
        compare(actual[i : i + 1], expected[i : i + 1], FLOAT32, contract, None if scale is None else scale[:1])
        for i in range(size)
    ]
    assert together.wrong == sum(found.wrong for found in alone)
    assert together.max_ratio == max(found.max_ratio for found in alone)
