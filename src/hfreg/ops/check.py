"""Checks of an op package that read its golden tests and workloads."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hfreg.errors import HfregError, ManifestError, Problem
from hfreg.ops.binding import select
from hfreg.ops.golden import GoldenCase, golden_folders, read_folder
from hfreg.ops.manifest_checks import ELEMENT_LIMIT
from hfreg.ops.package import OpPackage, check_files, manifest_line
from hfreg.ops.signature import Signature, complete_attributes


def check_package(package: OpPackage) -> int:
    """Check a package whole: its files, and that golden cases and workloads are calls of the operator.

    Returns:
        The number of golden cases.

    Raises:
        ManifestError: with every problem that was found.
    """
    problems, cases = list(check_files(package)), list[GoldenCase]()
    for folder in golden_folders(package.files):
        try:
            cases += read_folder(package.files, package.manifest, folder)
        except ManifestError as error:
            problems += error.problems
    problems += [*_golden_problems(package, cases), *_workload_problems(package)]
    if problems:
        raise ManifestError(problems)
    return len(cases)


def _golden_problems(package: OpPackage, cases: list[GoldenCase]) -> Iterator[Problem]:
    for case in cases:
        where = f"{package.name}/golden/{case.name}"
        if not case.source:
            yield Problem(where, "says not where it comes from (the model's doc string)")
        try:
            shapes = [None if array is None else array.shape for array in case.inputs]
            signature, binding = select(package.signatures, shapes, case.attributes)
        except HfregError as error:
            yield Problem(where, str(error))
            continue
        if problem := _type_problem(package, signature, case):
            yield Problem(where, problem)
        for tensor, array in zip(signature.outputs, case.outputs, strict=True):
            if array.shape != binding.shape(tensor.pattern):
                expected = list(binding.shape(tensor.pattern))
                yield Problem(where, f"{tensor.name} has shape {list(array.shape)}, the signature gives {expected}")


def _type_problem(package: OpPackage, signature: Signature, case: GoldenCase) -> str:
    """Why no kernel has the types of a case."""
    given: dict[str, str] = {}
    for tensor, array in zip(signature.tensors, (*case.inputs, *case.outputs), strict=True):
        if array is None:
            continue
        kind = array.dtype.name
        served = package.manifest.types.get(tensor.type, [tensor.type])
        if kind not in served:
            return f"{tensor.name} is {kind}, expected {' or '.join(served)}"
        if given.setdefault(tensor.type, kind) != kind:
            return f"{tensor.name} is {kind}, but {tensor.type} is {given[tensor.type]} elsewhere"
    return ""


def _workload_problems(package: OpPackage) -> Iterator[Problem]:
    for place, workload in enumerate(package.manifest.workloads):
        shapes = [tuple(workload.shapes[name]) if name in workload.shapes else None for name in package.manifest.inputs]
        try:
            attributes = complete_attributes(package.manifest, workload.attributes)
            signature, binding = select(package.signatures, shapes, attributes)
        except HfregError as error:
            yield Problem(manifest_line(package, "workloads", place), f"workload {workload.name}: {error}")
            continue
        for tensor in signature.outputs:
            if math.prod(shape := binding.shape(tensor.pattern)) >= ELEMENT_LIMIT:
                message = f"{tensor.name} has the shape {list(shape)}: more elements than kernels can index"
                yield Problem(manifest_line(package, "workloads", place), f"workload {workload.name}: {message}")
