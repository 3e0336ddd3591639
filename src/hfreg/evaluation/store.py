"""Evaluations that were made before, by action digest. Times are never kept: they are taken anew."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hfreg.digests import json_digest, short, tree_digest
from hfreg.evaluation.evaluate import DATA_SETS, KernelEvaluation, evaluate_kernel
from hfreg.files import write_atomic
from hfreg.kernels.artifact import Kernel
from hfreg.ops.package import OpPackage
from hfreg.ops.reference import Reference
from hfreg.resources import cache_home

_ADAPTER = TypeAdapter(KernelEvaluation)
_SOURCE = Path(__file__).resolve().parents[1]


@cache
def evaluator_digest() -> str:
    """The digest of the code that makes the cases, runs the kernels and judges the results."""
    folders = ("evaluation", "kernels/runner", "ops")
    files = {
        path.relative_to(_SOURCE).as_posix(): path.read_bytes()
        for folder in folders
        for path in sorted((_SOURCE / folder).rglob("*.py"))
    }
    return tree_digest(files)


def evaluate_or_recall(package: OpPackage, kernel: Kernel, reference: Reference, *, nonce: str) -> KernelEvaluation:
    """Evaluate a kernel, or recall what the same evaluation of the same kernel found.

    An evaluation that ended for want of a reference, or of time, may end otherwise when it is made again.
    """
    action = json_digest(
        {
            "step": "evaluate",
            "package": package.digest,
            "kernel": kernel.digest,
            "target": kernel.key.target,
            "evaluator": evaluator_digest(),
            "dataSets": list(DATA_SETS),
        }
    )
    stored = cache_home() / "evaluations" / f"{short(action)}{action[-20:]}.json"
    try:
        return _ADAPTER.validate_json(stored.read_bytes())
    except (OSError, ValidationError):
        pass
    evaluation = evaluate_kernel(package, kernel, reference, nonce=nonce)
    if evaluation.verdict in ("reference_failed", "timed_out"):
        return evaluation
    stored.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(stored, _ADAPTER.dump_json(evaluation))
    return evaluation
