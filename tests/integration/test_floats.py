"""The float functions of the semantics language, built into kernels: their largest errors, and NaN, infinity and zero.

The limits are what the language promises; `tools/check_floats.py` measures all 2**32 inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hfreg.arrays import Array, Float64
from hfreg.dtypes import DTYPES
from hfreg.kernels import targets
from hfreg.kernels.artifact import KernelKey
from hfreg.kernels.build import build_kernel
from hfreg.kernels.runner.client import Call, KernelRunner, Ran
from hfreg.ops.package import OpPackage, load_package
from integration import packages

pytestmark = pytest.mark.build

TARGETS = ("x86_64-v3", "x86_64-v4", "wasm32-simd")
INF, NAN = math.inf, math.nan
TINY = 2.0**-149  # the smallest subnormal float32
LARGEST = float(np.finfo(np.float32).max)

MANIFEST = """\
schema = 1
name = "floats"
version = "1.0.0"
summary = "One float function"
license = "Apache-2.0"
maintainers = ["Nobody"]

[operator]
domain = "test"
name = "Floats"
since_versions = [1]

[types]
T = ["float32"]

[inputs.x]
type = "T"
shape = "i..."

[outputs.y]
type = "T"
shape = "i..."

[attributes.function]
type = "string"
default = "exp"

[accuracy]
bound = "E3"
"""

SEMANTICS = """\
from hfreg import lang

def floats(x, *, function):
    return getattr(lang, function)(x)
"""

REFERENCE = """\
def floats(x):
    return x

def error_scale(x, *, expected):
    return x
"""

# The C library's functions, and NumPy's, err by about a unit in the last place of float64: 2**-29 of one of float32.
REFERENCES: dict[str, Callable[[Float64], Float64]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
}
LIMITS = {"exp": 1.5, "log": 1.5, "tanh": 3.0, "sigmoid": 3.0, "erf": 5.0}
"""In ULP."""
EDGES = {
    "exp": [(NAN, NAN), (INF, INF), (-INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (TINY, 1.0), (-TINY, 1.0), (89.0, INF),
            (LARGEST, INF), (-104.0, 0.0), (-LARGEST, 0.0)],
    "log": [(NAN, NAN), (INF, INF), (-INF, NAN), (0.0, -INF), (-0.0, -INF), (-TINY, NAN), (-1.0, NAN), (1.0, 0.0),
            (-LARGEST, NAN)],
    "tanh": [(NAN, NAN), (INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (TINY, TINY), (-TINY, -TINY),
             (LARGEST, 1.0), (-LARGEST, -1.0)],
    "sigmoid": [(NAN, NAN), (INF, 1.0), (-INF, 0.0), (0.0, 0.5), (-0.0, 0.5), (TINY, 0.5), (-TINY, 0.5),
                (LARGEST, 1.0), (-LARGEST, 0.0), (-105.0, 0.0)],
    "erf": [(NAN, NAN), (INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (TINY, TINY), (-TINY, -TINY),
            (LARGEST, 1.0), (-LARGEST, -1.0), (4.0, 1.0), (-4.0, -1.0)],
}  # fmt: skip


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> OpPackage:
    """An operator with one attribute class for each function."""
    classes = "".join(f'[[classes]]\nname = "{name}"\nattributes = {{ function = "{name}" }}\n' for name in LIMITS)
    x = np.zeros(1, np.float32)
    files: dict[str, str | bytes] = {
        "op.toml": MANIFEST + classes,
        "semantics.py": SEMANTICS,
        "reference.py": REFERENCE,
        "CHANGELOG.md": packages.changelog(),
        **packages.golden("Floats", {"x": x}, x),
    }
    folder: Path = tmp_path_factory.mktemp("floats") / "floats"
    return load_package(packages.write(folder, files))


@pytest.fixture(params=TARGETS, scope="module")
def target(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if reason := targets.target(name).why_not_here():
        pytest.skip(reason)
    return name


Function = Callable[[Array], Array]


@pytest.fixture(params=LIMITS, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def function(package: OpPackage, target: str, name: str) -> Iterator[Function]:
    """The function, computed by a kernel."""
    kernel = build_kernel(package, KernelKey("floats", (("T", "float32"),), name, target, "halide"))
    with KernelRunner(kernel) as runner:

        def call(x: Array) -> Array:
            outcome = runner.call(Call((x,), ((DTYPES["float32"], x.shape),)))
            assert isinstance(outcome, Ran), outcome
            assert not outcome.faults
            return outcome.outputs[0]

        yield call


def sample() -> Array:
    """1,000 numbers of each binade and sign, subnormals included, and more where the functions bend."""
    rng = np.random.default_rng(20261130)
    fields = np.arange(255, dtype=np.uint32)[:, None] << np.uint32(23)
    positive = (fields | rng.integers(0, 1 << 23, (255, 1000), np.uint32)).ravel()
    spread = np.concatenate([positive, positive | np.uint32(1 << 31)]).view(np.float32)
    near = [rng.uniform(-reach, reach, 100_000) for reach in (2.0, 10.0, 104.0)]
    return np.concatenate([spread, *(values.astype(np.float32) for values in near)])


def test_the_error_is_within_the_promised_limit(name: str, function: Function) -> None:
    x = sample()
    with np.errstate(all="ignore"):
        expected = REFERENCES[name](x.astype(np.float64))
        rounded = expected.astype(np.float32)
    y = function(x)
    # Infinity where a finite result is right counts as 2**128, and the other way round: a rounding like any other.
    is_close = np.abs(expected) < 2.0**128
    np.testing.assert_array_equal(y[~is_close], rounded[~is_close])
    got = np.clip(y[is_close].astype(np.float64), -(2.0**128), 2.0**128)
    unit = np.spacing(np.minimum(np.abs(rounded[is_close]), np.float32(LARGEST))).astype(np.float64)
    error = np.abs(got - expected[is_close]) / unit
    worst = int(np.argmax(np.nan_to_num(error, nan=np.inf)))
    assert error[worst] <= LIMITS[name], f"{error[worst]:.2f} ULP at {x[is_close][worst]:.9g}"


def test_nan_infinity_zero_and_subnormals(name: str, function: Function) -> None:
    x, expected = (np.array(column, np.float32) for column in zip(*EDGES[name], strict=True))
    y = function(x)
    np.testing.assert_array_equal(y, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y[numbers]), np.signbit(expected[numbers]))


def test_every_place_of_a_vector_treats_special_values_alike(name: str, function: Function) -> None:
    # Vectors have up to 16 lanes, and 37 elements leave a tail.
    for value, expected in EDGES[name]:
        x = np.ones(37, np.float32)
        ordinary = function(x)
        for place in (0, 1, 15, 16, 31, 36):
            x[:] = 1.0
            x[place] = value
            wanted = ordinary.copy()
            wanted[place] = expected
            np.testing.assert_array_equal(function(x), wanted)
