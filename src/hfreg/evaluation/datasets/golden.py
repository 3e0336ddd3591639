"""D0: the golden cases of the package that one kernel serves."""

from __future__ import annotations

from collections.abc import Iterator

from hfreg.dtypes import from_numpy
from hfreg.errors import RunError
from hfreg.evaluation.cases import Case
from hfreg.ops.binding import select
from hfreg.ops.golden import GoldenCase, read_golden
from hfreg.ops.package import OpPackage
from hfreg.ops.signature import Signature, Types


def golden_cases(package: OpPackage, signature: Signature, types: Types) -> Iterator[Case]:
    """The golden cases whose types and attribute class are the kernel's."""
    for case in read_golden(package.files, package.manifest):
        if _has_types(case, signature, types) and _is_served(package, case, signature):
            yield Case("D0", case.name, case.inputs, case.attributes, case.outputs, case.source)


def _has_types(case: GoldenCase, signature: Signature, types: Types) -> bool:
    arrays = (*case.inputs, *case.outputs)
    return all(
        array is None or from_numpy(array.dtype) == tensor.dtype(types)
        for tensor, array in zip(signature.tensors, arrays, strict=True)
    )


def _is_served(package: OpPackage, case: GoldenCase, signature: Signature) -> bool:
    shapes = [None if array is None else array.shape for array in case.inputs]
    try:
        chosen, _ = select(package.signatures, shapes, case.attributes)
    except RunError:
        return False
    return chosen.class_name == signature.class_name
