"""D5 too: the shapes that the package is made for, on positive values: their sums are long, and only grow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hfreg.evaluation.cases import Case
from hfreg.evaluation.datasets.values import fill_inputs, positive
from hfreg.ops.binding import select
from hfreg.ops.manifest import Manifest, Workload
from hfreg.ops.signature import Shape, Signature, Types, complete_attributes, signatures


def workload_cases(manifest: Manifest, signature: Signature, types: Types, rng: np.random.Generator) -> Iterator[Case]:
    """A case for each workload whose calls this attribute class serves."""
    for workload in manifest.workloads:
        if serving_class(manifest, workload) != signature.class_name:
            continue
        shapes, attributes = workload_shapes(signature, workload), complete_attributes(manifest, workload.attributes)
        inputs = fill_inputs(manifest, signature, types, shapes, rng, distribution=positive)
        yield Case("D5", f"workload-{workload.name}", tuple(inputs), attributes)


def serving_class(manifest: Manifest, workload: Workload) -> str:
    """The attribute class whose kernels a workload gets."""
    candidates = signatures(manifest)
    attributes = complete_attributes(manifest, workload.attributes)
    chosen, _ = select(candidates, workload_shapes(candidates[0], workload), attributes)
    return chosen.class_name


def workload_shapes(signature: Signature, workload: Workload) -> list[Shape | None]:
    """The shape of each input, None for an absent one."""
    return [tuple(workload.shapes[t.name]) if t.name in workload.shapes else None for t in signature.inputs]
