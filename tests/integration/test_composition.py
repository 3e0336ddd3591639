"""Semantics compose: three packages' functions become one kernel without new code."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from hfreg import load
from integration.packages import changelog, golden, write
from integration.surface import PACKAGES, UNMEASURED, hfreg, host

pytestmark = pytest.mark.build

PARTS = ("mat_mul", "add", "gelu")

SEMANTICS = """\
from pathlib import Path

from hfreg.lang import Tensor
from hfreg.ops.loading import load_module

PARTS = Path(__file__).parent / "parts"
mat_mul, add, gelu = (getattr(load_module(PARTS / f"{name}.py", name), name) for name in ("mat_mul", "add", "gelu"))


def dense_gelu(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    return gelu(add(mat_mul(a, b), bias))
"""

REFERENCE = """\
import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


def dense_gelu(a, b, bias):
    x = a @ b + bias
    with np.errstate(invalid="ignore"):
        return np.where(x == -np.inf, 0.0, 0.5 * x * (1.0 + erf(x / math.sqrt(2))))


def error_scale(a, b, bias, *, expected):
    return 4.0 * (np.abs(a) @ np.abs(b) + np.abs(bias))
"""

MANIFEST = """\
schema = 1
name = "dense_gelu"
version = "1.0.0"
summary = "gelu(a @ b + bias), a layer of a transformer in one kernel"
license = "Apache-2.0"
maintainers = ["Nobody"]

[operator]
domain = "test"
name = "DenseGelu"
since_versions = [1]

[types]
T = ["float32"]

[inputs.a]
type = "T"
shape = "m k"
limit = 1e15

[inputs.b]
type = "T"
shape = "k n"
limit = 1e15

[inputs.bias]
type = "T"
shape = "n"
limit = 1e30

[outputs.y]
type = "T"
shape = "m n"

[axes.k]
minimum = 1

[accuracy]
bound = "E3"
flushes_subnormals = true
"""


def gelu(x: np.ndarray) -> np.ndarray:
    """By the error function of the C library, in float64."""
    y: np.ndarray = 0.5 * x * (1.0 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))
    return y


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ops") / "dense_gelu"
    a, b, bias = np.array([[1.0, 2.0]], np.float32), np.array([[0.5], [-1.0]], np.float32), np.array([2.5], np.float32)
    y = np.array([[0.841344746]], np.float32)  # x = 1: the normal distribution up to one standard deviation
    write(
        folder,
        {
            "op.toml": MANIFEST,
            "semantics.py": SEMANTICS,
            "reference.py": REFERENCE,
            "CHANGELOG.md": changelog(),
            **golden("DenseGelu", {"a": a, "b": b, "bias": bias}, y),
        },
    )
    (folder / "parts").mkdir()
    for name in PARTS:
        shutil.copy(PACKAGES / name / "semantics.py", folder / "parts" / f"{name}.py")
    return folder


def test_the_composition_is_one_kernel_that_is_right(package: Path, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    targets = ("--target", host(), "--target", "wasm32-simd")
    result = hfreg("publish", package, *targets, "--registry", registry, *UNMEASURED)
    assert result.status == 0, str(result)
    assert "dense_gelu@1.0.0 published: 2 of 2 kernels passed" in result.out
    operator = load("dense_gelu", registry=registry)
    rng = np.random.default_rng(1)
    for m, k, n in [(1, 1, 1), (7, 33, 65), (64, 256, 96), (129, 70, 31)]:
        a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32) / np.float32(k**0.5)
        bias = rng.standard_normal(n, np.float32)
        wide = [array.astype(np.float64) for array in (a, b, bias)]
        expected = gelu(wide[0] @ wide[1] + wide[2])
        # A sum of k + 1 terms, rounded at each step, and gelu, whose slope is below 1.13 and which is rounded five
        # times: Higham, Accuracy and Stability of Numerical Algorithms, chapter 3.
        bound = 2.0**-24 * (1.13 * (k + 1) + 8) * (np.abs(wide[0]) @ np.abs(wide[1]) + np.abs(wide[2]))
        assert (np.abs(operator(a, b, bias) - expected) <= bound + 2.0**-126).all()
