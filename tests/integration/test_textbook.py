"""Semantics mean what they say: a formula out of the textbook is right without care for what a compiler may do.

Log-softmax is one that a compiler takes apart gladly: `(x - max) - log(sum)` regrouped loses every digit where the mean
is large, and a sum that is taken to be finite loses NaN on its way through the logarithm. Leaky ReLU needs a condition;
the L2 norm of a vector leaves no axis.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.surface import hfreg

pytestmark = pytest.mark.build

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("target", ["x86_64-v3", "wasm32-simd"])
@pytest.mark.parametrize(("package", "kernels"), [("log_softmax", 6), ("leaky_relu", 2), ("reduce_l2", 3)])
def test_the_formula_as_it_is_written_passes(package: str, kernels: int, target: str) -> None:
    done = hfreg("test", str(DATA / package), "--target", target, "--json")
    found = done.json()
    assert {kernel["verdict"] for kernel in found} == {"passed"}, done
    assert len(found) == kernels
