"""Bugs that users of other libraries reported: small inputs, the right answer, and the public source of each.

`tests/data/bug_cases.json` holds them. NaN, infinities and -0 are strings there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfreg import load
from hfreg.dtypes import DTYPES
from hfreg.ops.package import load_package
from integration.surface import PACKAGES

pytestmark = pytest.mark.build

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "bug_cases.json").read_text())


def array(stored: dict[str, Any]) -> np.ndarray[Any, Any]:
    values = np.array(stored["values"]).astype(np.float64)  # NumPy reads "nan", "-inf" and "-0.0"
    return np.asarray(values).astype(DTYPES[stored["type"]].numpy)


def in_every_language() -> Iterator[Any]:
    for case in CASES:
        for language in load_package(PACKAGES / case["operator"]).languages:
            yield pytest.param(case, language, id=f"{case['name']}-{language}")


@pytest.mark.parametrize(("case", "language"), list(in_every_language()))
def test_the_bug_is_not_ours(case: dict[str, Any], language: str, ten: Path) -> None:
    operator = load(case["operator"], registry=ten, language=language)
    inputs = [array(stored) for stored in case["inputs"]]
    expected = array(case["expected"])
    y = operator(*inputs, **case["attributes"])
    assert y.dtype == expected.dtype and y.shape == expected.shape
    np.testing.assert_array_equal(np.isnan(y.astype(np.float64)), np.isnan(expected.astype(np.float64)))
    wide, known = (np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300) for a in (y, expected))
    allowed = case["expected"]["relative"] * np.abs(known) + np.array(case["expected"]["absolute"])
    assert (np.abs(wide - known) <= allowed).all(), f"{y}, expected {expected}; the known fault: {case['fault']}"


def test_every_case_names_its_public_source() -> None:
    assert len(CASES) == 6
    assert all(case["source"].startswith("https://github.com/") for case in CASES)
