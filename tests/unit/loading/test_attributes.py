from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hfreg.errors import RunError
from hfreg.loading.attributes import plain


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("ints", (1, 2), [1, 2]),
        ("ints", range(1, 3), [1, 2]),
        ("ints", np.array([1, 2]), [1, 2]),
        ("ints", [np.int8(1), np.uint64(2)], [1, 2]),
        ("ints", [2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
        ("ints", (), []),
        ("int", np.int16(-1), -1),
        ("int", np.array(3), 3),
        ("float", 1, 1.0),
        ("float", np.float32(0.5), 0.5),
        ("float", np.float64(0.5), 0.5),
        ("float", np.int32(2), 2.0),
        ("float", np.array(0.5, np.float16), 0.5),
        ("float", Fraction(1, 4), 0.25),
        ("float", float("inf"), float("inf")),
        ("string", np.str_("SAME_UPPER"), "SAME_UPPER"),
    ],
)
def test_what_says_the_same_is_the_same(kind: str, value: Any, expected: Any) -> None:
    found = plain(kind, value, where="x")
    assert repr(found) == repr(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int", 1.0), ("int", True), ("ints", "12"), ("ints", 3), ("float", True), ("float", "1"), ("string", 1)],
)
def test_what_has_no_such_form_is_left_alone(kind: str, value: Any) -> None:
    assert repr(plain(kind, value, where="x")) == repr(value)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("int", 2**63, "x: is beyond the integers of 64 bits"),
        ("ints", [0, -(2**63) - 1], "x: is beyond the integers of 64 bits"),
        ("float", 10**400, "x: is beyond the largest double"),
        ("float", -(10**4000), "x: is beyond the largest double"),
        ("float", Fraction(10**400), "x: is beyond the largest double"),
    ],
)
def test_a_number_beyond_those_of_onnx_is_refused(kind: str, value: Any, message: str) -> None:
    with pytest.raises(RunError, match=message):
        plain(kind, value, where="x")
