"""Judge one call: what the reference expects of it, and whether what the kernel did is that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import numpy as np

from hfreg.arrays import Array
from hfreg.errors import RunError
from hfreg.evaluation.bounds import rule
from hfreg.evaluation.cases import Case
from hfreg.evaluation.compare import Comparison, compare
from hfreg.evaluation.results import CaseResult
from hfreg.kernels.runner.client import Ran, Reported, RunOutcome, Stopped
from hfreg.ops.binding import Binding
from hfreg.ops.package import OpPackage
from hfreg.ops.reference import Expected, Reference
from hfreg.ops.signature import Signature, Types
from hfreg.processes import TimedOut


def expect(
    package: OpPackage, signature: Signature, case: Case, binding: Binding, types: Types, reference: Reference
) -> Expected:
    """What the reference, or a golden case, says of a call.

    Raises:
        RunError: the reference raised, gave another shape than the signature, or contradicts the golden case.
    """
    expected = _ask(package, case, binding, types, reference)
    _check_shapes(signature, binding, expected)
    if case.expected is not None:
        expected = _golden(package, signature, case.expected, types, expected)
    return expected


def _ask(package: OpPackage, case: Case, binding: Binding, types: Types, reference: Reference) -> Expected:
    """The reference's outputs, and the error scale."""
    source = rule(package.manifest.accuracy).scale
    expected = reference(case.inputs, binding.attributes, types=types, scale=source == "reference")
    if source == "absolute":
        absolute = [None if array is None else np.abs(array) for array in case.inputs]
        magnitude = reference(absolute, binding.attributes, types=types, scale=False).outputs[0]
        expected = Expected(expected.outputs, np.abs(magnitude).astype(np.float64))
    return expected


def _check_shapes(signature: Signature, binding: Binding, expected: Expected) -> None:
    for tensor, value in zip(signature.outputs, expected.outputs, strict=True):
        shape = binding.shape(tensor.pattern)
        if shape != value.shape:
            raise RunError(f"its result has shape {list(value.shape)}, the signature says {list(shape)}")


def _golden(
    package: OpPackage, signature: Signature, stored: Sequence[Array], types: Types, expected: Expected
) -> Expected:
    """The golden result in the place of the reference's; the two must agree within the bound."""
    for name, found in compare_outputs(package, signature, types, stored, expected):
        if not found.is_right:
            raise RunError(f"the golden result contradicts reference.py: {name} {found.detail}")
    exact = (array if array.dtype.kind in "iub" else array.astype(np.float64) for array in stored)
    return Expected(tuple(exact), expected.scale)


def judge(
    package: OpPackage, signature: Signature, types: Types, case: Case, outcome: RunOutcome, expected: Expected
) -> CaseResult:
    """The verdict on a call."""
    match outcome:
        case Stopped(TimedOut()):
            return CaseResult(case, "timed_out", str(outcome))
        case Stopped():
            return CaseResult(case, "crashed", str(outcome))
        case Reported(message):
            return CaseResult(case, "reported_error", message)
        case Ran(_, faults, _) if faults:
            return CaseResult(case, faults[0].kind, str(faults[0]))
        case Ran(outputs, _, repeats):
            comparison: Comparison | None = None
            for name, found in compare_outputs(package, signature, types, outputs, expected):
                if not found.is_right:
                    return CaseResult(case, "wrong_result", f"{name} {found.detail}", found, outputs, expected)
                comparison = comparison or found
            if not repeats and package.manifest.determinism.grade != "R2":
                return CaseResult(
                    case,
                    "not_repeatable",
                    "two runs of the same call gave different bits",
                    comparison,
                    outputs,
                    expected,
                )
            return CaseResult(case, "passed", "", comparison, outputs, expected)
        case _:
            assert_never(outcome)


def compare_outputs(
    package: OpPackage, signature: Signature, types: Types, actual: Sequence[Array], expected: Expected
) -> Iterator[tuple[str, Comparison]]:
    """Each output's name and how it compares; the error scale is that of the first."""
    scales = (expected.scale, *[None] * (len(actual) - 1))
    for tensor, got, want, scale in zip(signature.outputs, actual, expected.outputs, scales, strict=True):
        yield tensor.name, compare(got, want, tensor.dtype(types), package.manifest.accuracy, scale)
