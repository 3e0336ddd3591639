"""The predicate `operator-verification/v1`: what was checked of the kernels of one op version on one target.

This model is the JSON Schema in `passports/operator-verification/`; `v1.md` there says what each field means to a
verifier. Numbers are as measured, with units in the names of their fields.
"""

from __future__ import annotations

from typing import Any, Literal

from hfreg.evaluation.verdicts import Verdict
from hfreg.passports.predicates.base import Digest, PredicateModel, Timestamp

VERIFICATION_TYPE = "https://hfreg.dev/operator-verification/v1"

KernelVerdict = Literal[Verdict, "not_built", "not_run"]
"""How a kernel ended. Only `passed` is good; `not_run` says that this machine cannot run the target."""


class OperatorIdentity(PredicateModel):
    """Which operator."""

    name: str
    version: str
    """The op package's version."""
    domain: str
    operator: str
    """The ONNX operator type, or its like in another domain."""
    since_versions: list[int]


class TargetIdentity(PredicateModel):
    """Which hardware."""

    name: str
    is_emulated: bool
    """Whether kernels ran under an emulator: accuracy and safety count, times were not taken."""


class FailureRecord(PredicateModel):
    """A case that failed."""

    case: str
    """Data set and case."""
    verdict: KernelVerdict
    detail: str


class DataSetRecord(PredicateModel):
    """The cases of one data set."""

    data_set: str
    """D0 golden, D1 distributions, D2 special values, D5 shapes."""
    cases: int
    failed: int
    elements: int
    """Output elements that were compared."""
    max_error_ratio: float | None
    """The largest error divided by its bound; the headroom is 1 minus this. None where a value was NaN or infinite
    and should not have been, or the other way round."""
    max_ulp: float
    """The largest error in units in the last place of the output type."""
    rms_ulp: float
    bias_ulp: float
    """Mean signed error."""
    failures: list[FailureRecord] = []


class PerformanceRecord(PredicateModel):
    """One workload on one number of threads."""

    workload: str
    shapes: dict[str, list[int]]
    """Extents of each input."""
    attributes: dict[str, Any] = {}
    threads: int
    rounds: int
    """Pairs of measurements: this kernel and the peer in turn, in one process."""
    median_ns: float
    p10_ns: float
    p90_ns: float
    mad_ns: float
    """Median absolute deviation."""
    peer: str = ""
    """What it was compared with, and its version; empty where nothing has the operator."""
    peer_median_ns: float | None = None
    speedup: float | None = None
    """Median over the pairs of the peer's time divided by this kernel's."""
    class_schedule_median_ns: float | None = None
    """The same with the class schedule, where the kernel has a hand schedule."""
    toolchain_efficiency: float | None = None
    """Hand time divided by class time: what is left to gain for the class schedule is 1 minus this."""
    flop: float | None = None
    """Floating-point operations of one call, F."""
    bytes: float
    """Bytes that one call must move at least, Q: every input read once, every output written once."""
    arithmetic_intensity_flop_per_byte: float | None = None
    """I = F / Q."""
    bandwidth_gb_s: float
    """Q / T."""
    peak_bandwidth_gb_s: float
    """B_peak of a loop that streams Q bytes again and again: the bandwidth of the cache or memory that they stay in."""
    bandwidth_use: float
    """U = Q / (T * B_peak)."""
    roofline_fraction: float | None = None
    """F / T divided by P = min(P_peak, I * B_peak)."""


class Peaks(PredicateModel):
    """What this machine reached in the same run."""

    threads: int
    gflop_s: float
    """P_peak: fused multiply-adds on independent registers, 2 flop each."""
    bandwidth_gb_s: float
    """The bandwidth of memory: a loop of two loads and a plain store over 192 MiB."""


class KernelRecord(PredicateModel):
    """What was found out about one kernel."""

    name: str
    """The subject's name."""
    digest: Digest | None
    """None where it could not be built."""
    types: dict[str, str]
    """What each type variable stands for."""
    attribute_class: str
    language: str
    verdict: KernelVerdict
    detail: str = ""
    """Why it could not be built or run."""
    nonce: str = ""
    """Revealed with the result: the cases could not be known when the kernel was built."""
    seed: str = ""
    """SHA-256 of `<kernel digest>/<nonce>`: what the random cases were drawn from."""
    threads: int | None = None
    """Threads that the calls of the data sets ran on."""
    evaluated_on: Timestamp | None = None
    """When; before the rest where the evaluation of the same kernel by the same evaluator was recalled."""
    data_sets: list[DataSetRecord] = []
    performance: list[PerformanceRecord] = []
    notes: dict[str, Any] = {}
    """What the kernel language says: which schedule, and what a hand schedule gains over the class schedule."""


class Environment(PredicateModel):
    """Where it was measured."""

    cpu_model: str
    architecture: str
    logical_cpus: int
    memory_gb: float
    operating_system: str
    governor: str
    """The CPU frequency governor, or `unknown`."""
    load_average: float
    """Of the last minute, when the run began."""
    tools: dict[str, str]
    """Versions of what takes part: hfreg, Python, NumPy, Halide, zig, onnxruntime, wasmtime."""


class Verification(PredicateModel):
    """The predicate."""

    operator: OperatorIdentity
    target: TargetIdentity
    package: Digest
    """The digest of the op package's files."""
    evaluator: Digest
    """The digest of the code that made the cases and judged the results."""
    verdict: Literal["passed", "failed", "not_run"]
    """`passed`: every kernel passed. `failed`: at least one did not. `not_run`: this machine cannot run the target."""
    reason: str = ""
    kernels: list[KernelRecord]
    peaks: list[Peaks] = []
    environment: Environment
    started_on: Timestamp
    finished_on: Timestamp


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the predicate."""
    schema = Verification.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://hfreg.dev/operator-verification/v1/schema.json",
        **schema,
        "title": "operator-verification/v1",
    }
