"""Every body of a kernel gets a call."""

import numpy as np
import pytest

from hfreg.dtypes import DTYPES
from hfreg.evaluation.datasets import variant_cases
from hfreg.ops.package import load_package
from hfreg.resources import root_folder

CONDITIONS = {
    "mat_mul": {"one row": "m == 1 && n >= 64 && k >= 64", "few rows": "m <= 32 && k * n >= 65536", "general": ""},
    "softmax": {"large": "n >= 64 && outer * n > 262144", "general": ""},
}


@pytest.mark.parametrize("operator", CONDITIONS)
def test_each_variant_gets_a_call_that_it_serves_and_none_before_it(operator: str) -> None:
    package = load_package(root_folder("ops") / operator)
    signature = package.signatures[0]
    types = {"T": DTYPES["float32"]}
    cases = list(variant_cases(package.manifest, signature, CONDITIONS[operator], types, np.random.default_rng(1)))
    assert [case.name for case in cases] == [f"variant-{name.replace(' ', '-')}" for name in CONDITIONS[operator]]
    shapes = {case.name: [array.shape for array in case.inputs if array is not None] for case in cases}
    if operator == "softmax":
        (large,), (general,) = shapes["variant-large"], shapes["variant-general"]
        assert large[-1] >= 64
        assert np.prod(large) > 262144
        assert general[-1] < 64 or np.prod(general) <= 262144
    else:
        left, right = shapes["variant-one-row"]
        assert left[-2:] == (1, right[-2])
        assert min(right[-2:]) >= 64
        left, right = shapes["variant-few-rows"]
        assert (left[-2] if len(left) > 1 else 1) <= 32
        assert np.prod(right[-2:]) >= 65536


def test_a_variant_that_no_call_gets_has_no_case() -> None:
    package = load_package(root_folder("ops") / "softmax")
    conditions = {"never": "n > 8 && n < 8", "general": ""}
    cases = variant_cases(
        package.manifest, package.signatures[0], conditions, {"T": DTYPES["float32"]}, np.random.default_rng(1)
    )
    assert [case.name for case in cases] == ["variant-general"]
