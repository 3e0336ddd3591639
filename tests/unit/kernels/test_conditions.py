"""Conditions that choose among variants."""

import pytest

from hfreg.errors import BuildError
from hfreg.kernels.conditions import check_condition, holds


@pytest.mark.parametrize(
    ("condition", "extents", "expected"),
    [
        ("", {}, True),
        ("m <= 32 && n >= 64", {"m": 32, "n": 64}, True),
        ("m <= 32 && n >= 64", {"m": 33, "n": 64}, False),
        ("m == 1 || n != 3", {"m": 2, "n": 3}, False),
        ("m == 1 || m == 2 && n == 9", {"m": 1, "n": 0}, True),  # && binds more closely, as in C
        ("(n + 63) / 64 * 64 <= (n + 31) / 32 * 32", {"n": 64}, True),
        ("(n + 63) / 64 * 64 <= (n + 31) / 32 * 32", {"n": 65}, False),
        ("k % 16 == 0", {"k": 48}, True),
    ],
)
def test_a_condition_means_what_it_means_in_c(condition: str, extents: dict[str, int], expected: bool) -> None:
    check_condition(condition, extents)
    assert holds(condition, extents) is expected


@pytest.mark.parametrize("condition", ["n >= 64; exit", "n.real > 1", "__import__ > 1", "n >= 1.5", "n > 'a'", "n & 1"])
def test_what_is_no_condition_is_refused(condition: str) -> None:
    with pytest.raises(BuildError, match=r"cannot read the condition|names"):
        check_condition(condition, ["n"])


def test_a_condition_over_an_unknown_axis_is_refused() -> None:
    with pytest.raises(BuildError, match=r"names 'k'; axes: \['m', 'n'\]"):
        check_condition("k > 1", ["n", "m"])
