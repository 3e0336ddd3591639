"""D5 too: a kernel may hold several bodies, and each gets a call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hfreg.evaluation.cases import Case
from hfreg.evaluation.datasets.values import fill_inputs
from hfreg.evaluation.sampling import SampledCall, try_call
from hfreg.kernels.conditions import holds
from hfreg.ops.manifest import Manifest
from hfreg.ops.signature import Signature, Types

TRIES = 4000
ENOUGH = 20
"""Calls that are found; the one with the least work is taken."""
WORK_LIMIT = 1 << 21
"""The largest product of all extents."""


def variant_cases(
    manifest: Manifest, signature: Signature, variants: Mapping[str, str], types: Types, rng: np.random.Generator
) -> Iterator[Case]:
    """A case for each variant of a kernel that a call was found for.

    Args:
        manifest: the package's manifest.
        signature: the signature of the kernel's attribute class.
        variants: names and conditions, in the order in which they are tried.
        types: the kernel's element types.
        rng: the source of the values; the shapes are the same every time.
    """
    names, conditions = list(variants), list(variants.values())
    for place, name in enumerate(names):
        call = _smallest_call(signature, conditions[: place + 1])
        if call is None:
            continue
        inputs = fill_inputs(manifest, signature, types, call.shapes, rng)
        yield Case("D5", variant_case_name(name), tuple(inputs), call.attributes)


def variant_case_name(variant: str) -> str:
    """The name of the case for a variant."""
    return f"variant-{variant.replace(' ', '-')}"


def _smallest_call(signature: Signature, conditions: Sequence[str]) -> SampledCall | None:
    """A call for which the last condition holds, and none before it; None where none was found."""
    *before, own = conditions
    rng = np.random.default_rng(0)
    found: list[SampledCall] = []
    for _ in range(TRIES):
        call = try_call(signature, rng, _extents(signature, rng))
        if call is None or call.work > WORK_LIMIT:
            continue
        extents = signature.view_extents(call.binding.extents)
        if holds(own, extents) and not any(holds(condition, extents) for condition in before):
            found.append(call)
        if len(found) == ENOUGH:
            break
    return min(found, key=lambda call: call.work, default=None)


def _extents(signature: Signature, rng: np.random.Generator) -> dict[str, int]:
    """Extents of every size: the exponent of their product is uniform, and divided at random among the axes."""
    free = [name for name, axis in signature.axes.items() if not axis.window and "[" not in axis.attribute]
    shares = rng.dirichlet(np.full(len(free), 0.5)) * rng.uniform(0, math.log2(WORK_LIMIT))
    return {name: max(1, round(2**share)) for name, share in zip(free, shares, strict=True)}
