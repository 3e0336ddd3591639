"""D2: zeros, subnormals, the largest values, infinities and NaN, in every operand, alone and among ordinary data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hfreg.arrays import Array
from hfreg.dtypes import DType
from hfreg.evaluation.cases import Case
from hfreg.evaluation.datasets.values import fill_inputs
from hfreg.evaluation.sampling import sample_call
from hfreg.ops.manifest import Manifest
from hfreg.ops.signature import Signature, Types


def special_values(dtype: DType, limit: float | None = None) -> dict[str, float]:
    """The special values of a floating-point type, by name; the largest ones within a limit, if there is one."""
    largest = min(dtype.largest, limit) if limit else dtype.largest
    return {
        "zero": 0.0,
        "minus-zero": -0.0,
        "smallest-subnormal": dtype.smallest_subnormal,
        "smallest-normal": dtype.smallest_normal,
        "minus-smallest-normal": -dtype.smallest_normal,
        "one": 1.0,
        "minus-one": -1.0,
        "largest": largest,
        "minus-largest": -largest,
        "inf": np.inf,
        "minus-inf": -np.inf,
        "nan": np.nan,
    }


def special_value_cases(
    manifest: Manifest, signature: Signature, types: Types, rng: np.random.Generator
) -> Iterator[Case]:
    """For each floating-point operand and each special value: alone, and at one place of every row."""
    for position, tensor in enumerate(signature.inputs):
        dtype = tensor.dtype(types)
        if not dtype.is_float or manifest.inputs[tensor.name].values == "positive":
            continue
        for name, value in special_values(dtype, manifest.inputs[tensor.name].limit).items():
            for alone in (True, False):
                call = sample_call(signature, rng)
                if call is None or call.shapes[position] is None:
                    continue
                inputs = fill_inputs(manifest, signature, types, call.shapes, rng)
                target = inputs[position]
                assert target is not None
                _insert(target, value, alone=alone)
                how = "alone" if alone else "mixed"
                yield Case("D2", f"{tensor.name}-{name}-{how}", tuple(inputs), call.attributes)


def _insert(array: Array, value: float, *, alone: bool) -> None:
    """Put a value everywhere, or once in every row: over the rows, it visits every place of the last axis."""
    if alone or not array.shape or not array.size:
        array[...] = value
        return
    rows = array.reshape(-1, array.shape[-1])
    number = np.arange(len(rows))
    rows[number, number % array.shape[-1]] = value
