"""Semantics mean what they say: a formula out of the textbook is right without care for what a compiler may do.

Log-softmax is one that a compiler takes apart gladly: `(x - max) - log(sum)` regrouped loses every digit where the mean
is large, and a sum that is taken to be finite loses NaN on its way through the logarithm.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.surface import hfreg

pytestmark = pytest.mark.build

LOG_SOFTMAX = Path(__file__).parents[1] / "data" / "log_softmax"


@pytest.mark.parametrize("target", ["x86_64-v3", "wasm32-simd"])
def test_log_softmax_as_it_is_written_passes(target: str) -> None:
    done = hfreg("test", str(LOG_SOFTMAX), "--target", target, "--json")
    kernels = done.json()
    assert {kernel["verdict"] for kernel in kernels} == {"passed"}, done
    assert len(kernels) == 6
