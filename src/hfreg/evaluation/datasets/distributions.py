"""D1: ordinary data of several distributions, since each hides faults that another one shows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hfreg.evaluation.cases import Case
from hfreg.evaluation.datasets.values import DISTRIBUTIONS, fill
from hfreg.evaluation.sampling import sample_call
from hfreg.ops.manifest import Manifest
from hfreg.ops.signature import Signature, Types


def distribution_cases(
    manifest: Manifest, signature: Signature, types: Types, rng: np.random.Generator
) -> Iterator[Case]:
    """Two shapes for each distribution; the second input keeps ordinary data in one of them."""
    for name, distribution in DISTRIBUTIONS.items():
        for variant in range(2):
            call = sample_call(signature, rng)
            if call is None:
                continue
            inputs = [
                None
                if shape is None
                else fill(
                    manifest.inputs[tensor.name],
                    tensor.dtype(types),
                    shape,
                    distribution if position == 0 or variant == 0 else DISTRIBUTIONS["zero-mean"],
                    rng,
                )
                for position, (tensor, shape) in enumerate(zip(signature.inputs, call.shapes, strict=True))
            ]
            yield Case("D1", f"{name}-{variant}", tuple(inputs), call.attributes)
