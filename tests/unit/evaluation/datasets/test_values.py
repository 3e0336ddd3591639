from __future__ import annotations

import numpy as np
import pytest

from hfreg.arrays import Float64
from hfreg.dtypes import DTYPES
from hfreg.evaluation.datasets.values import DISTRIBUTIONS, fill
from hfreg.ops.manifest import Tensor

FLOATS = ["float32", "float16", "bfloat16"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
ANY = Tensor(type="T", shape="i...")
POSITIVE = Tensor(type="T", shape="i...", values="positive")
SHAPES = [(), (0,), (1,), (5,), (3, 0), (3, 7), (2, 3, 4)]


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_gives_finite_values_of_the_shape_and_type(
    name: str, dtype: str, shape: tuple[int, ...]
) -> None:
    array = fill(ANY, DTYPES[dtype], shape, DISTRIBUTIONS[name], rng())
    assert array.shape == shape
    assert array.dtype == DTYPES[dtype].numpy
    assert np.isfinite(array.astype(np.float64)).all()
    assert array.flags.c_contiguous
    again = fill(ANY, DTYPES[dtype], shape, DISTRIBUTIONS[name], rng())
    assert array.tobytes() == again.tobytes()


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "bool"])
def test_a_scalar_is_an_array_that_can_be_written_to(dtype: str) -> None:
    # Special values are written into these.
    array = fill(ANY, DTYPES[dtype], (), DISTRIBUTIONS["zero-mean"], rng())
    assert isinstance(array, np.ndarray)
    assert array.flags.writeable


def sample(name: str, dtype: str = "float32", shape: tuple[int, ...] = (200, 50)) -> Float64:
    return fill(ANY, DTYPES[dtype], shape, DISTRIBUTIONS[name], rng()).astype(np.float64)


def test_each_distribution_is_what_its_name_says() -> None:
    # 10,000 samples: the mean of a standard normal is within 0.05 = 5 standard errors, and so is its deviation.
    normal = sample("zero-mean")
    assert abs(normal.mean()) < 0.05 and abs(normal.std() - 1) < 0.05
    positive = sample("positive")
    assert positive.min() >= 0.5 and positive.max() <= 1.5
    mixed = np.abs(sample("mixed-magnitudes"))
    assert mixed.min() < 1e-5 and mixed.max() > 500  # 2**-20 to 2**10
    neighbours = sample("near-cancelling").reshape(-1)
    assert (np.sign(neighbours[::2]) == 1).all() and (np.sign(neighbours[1::2]) == -1).all()
    assert np.abs(neighbours[::2] + neighbours[1::2]).max() <= 0.2 * 100 + 1e-3
    large = sample("large-mean")
    assert large.mean() > 1000 * large.std()
    rows = sample("constant-rows")
    assert (rows == rows[:, :1]).all() and len(np.unique(rows[:, 0])) > 100
    hot = sample("one-hot-rows")
    assert ((hot == 10.0).sum(axis=1) == 1).all() and np.abs(hot[hot != 10.0]).max() < 0.1
    sorted_rows = sample("ascending")
    assert (np.diff(sorted_rows, axis=1) >= 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_half_of_the_denormal_heavy_values_are_subnormal(dtype: str) -> None:
    values = sample("denormal-heavy", dtype)
    subnormal = (np.abs(values) < DTYPES[dtype].smallest_normal).mean()
    assert 0.45 < subnormal < 0.55  # 10,000 draws with p = 0.5: ten standard errors
    assert (values != 0).mean() > 0.5


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_drawn_from_their_whole_range(name: str) -> None:
    array = fill(ANY, DTYPES[name], (4000,), DISTRIBUTIONS["zero-mean"], rng())
    info = np.iinfo(name)
    assert array.dtype == np.dtype(name)
    span = int(info.max) - int(info.min)
    # The chance that 4,000 uniform draws leave the last hundredth of the range empty is 0.99**4000 < 1e-17.
    assert int(array.min()) <= int(info.min) + span // 100
    assert int(array.max()) >= int(info.max) - span // 100
    if info.bits == 8:
        assert (int(array.min()), int(array.max())) == (info.min, info.max)


def test_booleans_are_both() -> None:
    array = fill(ANY, DTYPES["bool"], (100,), DISTRIBUTIONS["zero-mean"], rng())
    assert array.dtype == np.bool_ and array.any() and not array.all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_an_input_of_positive_values_gets_those(name: str, dtype: str) -> None:
    array = fill(POSITIVE, DTYPES[dtype], (500,), DISTRIBUTIONS[name], rng()).astype(np.float64)
    assert array.min() >= 2.0**-6 and array.max() <= 4.0
