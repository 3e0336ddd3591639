"""The cases of a kernel: which data sets there are, what each is drawn from, and which cases must be among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np

from hfreg.digests import sha256
from hfreg.evaluation.cases import Case
from hfreg.evaluation.datasets import (
    distribution_cases,
    golden_cases,
    shape_cases,
    special_value_cases,
    variant_cases,
    workload_cases,
)
from hfreg.evaluation.datasets.variants import variant_case_name
from hfreg.kernels.artifact import Kernel, type_tuples
from hfreg.ops.package import OpPackage
from hfreg.ops.signature import Signature

DATA_SETS = ("D0", "D1", "D2", "D5")
ANY_CASE = "any"


def make_cases(
    package: OpPackage, kernel: Kernel, signature: Signature, *, seed: str, data_sets: Iterable[str] = DATA_SETS
) -> Iterator[Case]:
    """All cases for one kernel.

    Args:
        package: the op package.
        kernel: the kernel.
        signature: the signature of its attribute class.
        seed: a digest; the same seed gives the same cases.
        data_sets: which sets.
    """
    manifest, types = package.manifest, kernel.key.dtypes
    generators: dict[str, Callable[[np.random.Generator], Iterable[Case]]] = {
        "D0": lambda _: golden_cases(package, signature, types),
        "D1": lambda rng: distribution_cases(manifest, signature, types, rng),
        "D2": lambda rng: special_value_cases(manifest, signature, types, rng),
        "D5": lambda rng: chain(
            shape_cases(manifest, signature, types, rng),
            variant_cases(manifest, signature, kernel.variants, types, rng),
            workload_cases(manifest, signature, types, rng) if kernel.key.types == type_tuples(manifest)[0] else (),
        ),
    }
    for name in data_sets:
        rng = np.random.default_rng(int(sha256(f"{seed}/{name}".encode())[7:39], 16))
        yield from generators[name](rng)


def necessary_cases(data_set: str, kernel: Kernel) -> dict[str, str]:
    """Names of cases that a data set must have for a kernel, and what it means if it has not."""
    match data_set:
        case "D1":
            return {ANY_CASE: "no call was found that fits the signature"}
        case "D5":
            return {ANY_CASE: "no call was found that fits the signature"} | {
                variant_case_name(name): f"no call was found for the variant {name!r}: {condition or 'all others'}"
                for name, condition in kernel.variants.items()
            }
        case _:
            return {}
