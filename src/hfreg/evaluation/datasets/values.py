"""Values: arrays of an element type, drawn from named distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hfreg.arrays import Array, Float64
from hfreg.dtypes import DType
from hfreg.ops.manifest import Manifest, Tensor
from hfreg.ops.signature import Shape, Signature, Types

Generator = np.random.Generator
Distribution = Callable[[Generator, Shape, DType], Float64]


def zero_mean(rng: Generator, shape: Shape, dtype: DType) -> Float64:
    """Normal, mean 0, standard deviation 1."""
    return rng.standard_normal(shape)


def positive(rng: Generator, shape: Shape, dtype: DType) -> Float64:
    """Uniform in [0.5, 1.5): sums only grow, so a truncating accumulator drifts."""
    return rng.uniform(0.5, 1.5, shape)


def mixed_magnitudes(rng: Generator, shape: Shape, dtype: DType) -> Float64:
    """Signs at random, magnitudes spread over many binades: small terms must survive beside large ones."""
    reach = min(20, dtype.max_exponent // 2 - 1)
    return rng.choice([-1.0, 1.0], shape) * 2.0 ** rng.uniform(-reach, reach / 2, shape)


def near_cancelling(rng: Generator, shape: Shape, dtype: DType) -> Float64:
    """Neighbours of almost the same magnitude and opposite sign."""
    magnitudes = rng.uniform(0.9, 1.1, shape)
    signs = np.where(np.arange(int(np.prod(shape))) % 2 == 0, 1.0, -1.0).reshape(shape)
    return 100.0 * signs * magnitudes


def large_mean(rng: Generator, shape: Shape, dtype: DType) -> Float64:
    """A small spread around a large mean: a one-pass variance loses it all."""
    mean = 2.0 ** min(15, dtype.precision - 2)
    return mean + 2.0 * rng.standard_normal(shape)


def constant_rows(rng: Generator, shape: Shape, dtype: DType) -> Float64:
    """The same value along the last axis."""
    if not shape:
        return rng.standard_normal(shape)
    return np.broadcast_to(rng.standard_normal((*shape[:-1], 1)), shape).copy()


def one_hot_rows(rng: Generator, shape: Shape, dtype: DType) -> Float64:
    """One element of each row stands far out."""
    values = rng.standard_normal(shape) * 0.01
    if shape and shape[-1]:
        rows = values.reshape(-1, shape[-1])
        rows[np.arange(len(rows)), rng.integers(0, shape[-1], len(rows))] = 10.0
    return values


def ascending(rng: Generator, shape: Shape, dtype: DType) -> Float64:
    """Sorted along the last axis."""
    return np.sort(rng.standard_normal(shape) * 3.0, axis=-1) if shape else rng.standard_normal(shape)


def denormal_heavy(rng: Generator, shape: Shape, dtype: DType) -> Float64:
    """Half of the values subnormal."""
    tiny = rng.uniform(-1.0, 1.0, shape) * dtype.smallest_normal
    return np.where(rng.random(shape) < 0.5, tiny, rng.standard_normal(shape))


DISTRIBUTIONS: dict[str, Distribution] = {
    "zero-mean": zero_mean,
    "positive": positive,
    "mixed-magnitudes": mixed_magnitudes,
    "near-cancelling": near_cancelling,
    "large-mean": large_mean,
    "constant-rows": constant_rows,
    "one-hot-rows": one_hot_rows,
    "ascending": ascending,
    "denormal-heavy": denormal_heavy,
}


def fill(tensor: Tensor, dtype: DType, shape: Shape, distribution: Distribution, rng: Generator) -> Array:
    """An array for one input. Integers are uniform over their range; an input of positive values gets those."""
    if dtype.kind == "bool":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if not dtype.is_float:
        return rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype.numpy).reshape(shape)
    values = 2.0 ** rng.uniform(-6, 2, shape) if tensor.values == "positive" else distribution(rng, shape, dtype)
    return np.asarray(values).astype(dtype.numpy, copy=False)


def fill_inputs(
    manifest: Manifest,
    signature: Signature,
    types: Types,
    shapes: Sequence[Shape | None],
    rng: Generator,
    *,
    distribution: Distribution = zero_mean,
) -> list[Array | None]:
    """An array for each input, None for an absent one.

    Args:
        manifest: the package's manifest.
        signature: the signature of the attribute class.
        types: what the type variables stand for.
        shapes: the shape of each input, None for an absent one.
        rng: the source of the values.
        distribution: how floating-point values are distributed.
    """
    return [
        None if shape is None else fill(manifest.inputs[tensor.name], tensor.dtype(types), shape, distribution, rng)
        for tensor, shape in zip(signature.inputs, shapes, strict=True)
    ]
