"""Evaluations that were made before, by action digest. Times are never kept: they are taken anew."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from pydantic import TypeAdapter, ValidationError

from hfreg.digests import json_digest, short, tree_digest
from hfreg.evaluation.evaluate import evaluate_kernel
from hfreg.evaluation.results import KernelEvaluation
from hfreg.evaluation.suite import DATA_SETS
from hfreg.files import write_atomic
from hfreg.kernels.artifact import Kernel
from hfreg.kernels.build import source_files
from hfreg.kernels.targets import target
from hfreg.ops.package import OpPackage
from hfreg.ops.reference import Reference
from hfreg.resources import cache_home

_ADAPTER = TypeAdapter(KernelEvaluation)


@cache
def evaluator_digest() -> str:
    """The digest of the code that makes the cases, runs the kernels and judges the results."""
    modules = ("dtypes.py", "arrays.py", "wire.py", "workers.py", "processes.py")
    return tree_digest(source_files("evaluation", "kernels", "ops", *modules))


def _runner_version(name: str) -> str:
    """The version of what runs kernels of a target, where hfreg does not bring it."""
    run = target(name).run
    return f"wasmtime {version('wasmtime')}" if run and run.how == "wasmtime" else ""


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
            "runner": _runner_version(kernel.key.target),
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
