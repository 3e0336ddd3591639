"""Times: a kernel against a peer, in one process, in turn, on the same data.

Every round times the peer, then the kernel, each after calls that are not timed; the ratio is taken pair by pair, so a
machine that slows down or speeds up changes both. The figures of the roofline model are from the same process:

    I = F / Q                   arithmetic intensity, flop per byte
    U = Q / (T * B_peak)        use of the bandwidth
    P = min(P_peak, I * B_peak) the roofline's bound

B_peak is that of a loop which streams as many bytes as the workload moves (Q), again and again as the measurement does:
data that stays in a cache is held against that cache.
"""

from __future__ import annotations

import ctypes
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from hfreg.errors import RunError
from hfreg.evaluation.datasets.values import fill_inputs
from hfreg.evaluation.datasets.workloads import workload_shapes
from hfreg.evaluation.peers import PeerCall, onnxruntime_call
from hfreg.kernels import abi
from hfreg.kernels.artifact import Kernel
from hfreg.kernels.build import build_peaks, build_runtime
from hfreg.kernels.host import HostKernel, describe, known_dtype
from hfreg.kernels.targets import Target, target
from hfreg.ops.binding import Binding, bind
from hfreg.ops.manifest import Workload
from hfreg.ops.package import OpPackage
from hfreg.ops.signature import complete_attributes

WARM_S = 0.001
PAUSE_S = 0.002
"""After the peer: its threads spin for a while, and would take a core from the kernel. As often as they need it."""
PAUSES = 10
MIN_TIMED_S = 100e-6
"""A shorter call is repeated within one measurement."""
PEAK_REPEATS = (5, 15)
"""How often a peak is measured, at least and at most."""
PEAK_S = 0.1
"""Seconds after which a peak has been measured often enough."""
STREAMED_BYTES = 64e6
"""Bytes that one measurement of a bandwidth moves, at least."""
MIN_PARALLEL_BYTES = 256 << 10
"""Less is not divided among threads."""
MEMORY_BYTES = 192 << 20
"""What is streamed to measure the bandwidth of memory: more than the caches of most machines."""


@dataclass(frozen=True)
class Subject:
    """A workload that is ready to be timed."""

    workload: Workload
    threads: int
    run: Callable[[], None]
    output: np.ndarray[Any, np.dtype[Any]]
    peer: PeerCall | None
    flop: float | None
    bytes: float
    attributes: dict[str, Any]


@dataclass
class Samples:
    """What the rounds of a measurement gave."""

    calls: int
    """Calls in one measurement."""
    own_ns: list[float] = field(default_factory=list)
    peer_ns: list[float] = field(default_factory=list)


class Session:
    """What all measurements of this process on one target and number of threads share."""

    def __init__(self, goal: Target, threads: int) -> None:
        self.threads = threads
        self.runtime = abi.Runtime(abi.load_library(build_runtime(goal), "runtime"), threads)
        self._loops = abi.load_library(build_peaks(goal), "peaks")
        for name in ("hfreg_peak_fma", "hfreg_peak_stream"):
            getattr(self._loops, name).restype = ctypes.c_double
        self._context = self.runtime.context()
        self._bandwidths: dict[int, float] = {}

    @cached_property
    def gflop_s(self) -> float:
        """P_peak: fused multiply-adds on independent registers."""
        threads, rounds = ctypes.c_int32(self.threads), ctypes.c_int64(200_000)
        return _best_rate(lambda: float(self._loops.hfreg_peak_fma(self._context, threads, rounds))) / 1e9

    def bandwidth_gb_s(self, total: float) -> float:
        """B_peak of a loop of two loads and a store, over `total` bytes in all."""
        elements = max(256, int(total) // 12)
        if elements not in self._bandwidths:
            arrays = [np.ones(elements, np.float32) for _ in range(3)]
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
            # one thread works on what fits between two wake-ups of another
            tasks = ctypes.c_int32(self.threads if total > MIN_PARALLEL_BYTES else 1)
            count, repeats = ctypes.c_int64(elements), ctypes.c_int64(max(1, int(STREAMED_BYTES // total)))

            def work() -> float:
                return float(self._loops.hfreg_peak_stream(self._context, tasks, *pointers, count, repeats))

            self._bandwidths[elements] = _best_rate(work) / 1e9
        return self._bandwidths[elements]


@cache
def session(target_name: str, threads: int) -> Session:
    """The session for a target and a number of threads."""
    return Session(target(target_name), threads)


def prepare(package: OpPackage, kernel: Kernel, workload: Workload, runtime: abi.Runtime) -> Subject:
    """Load a kernel into this process and bind it to data of a workload.

    Raises:
        RunError: the kernel does not serve the workload, or reports an error.
    """
    manifest, types = package.manifest, kernel.key.dtypes
    signature = package.signature(kernel.key.attribute_class)
    attributes = complete_attributes(manifest, workload.attributes)
    shapes = workload_shapes(signature, workload)
    binding = bind(signature, shapes, attributes)
    rng = np.random.default_rng(1)
    inputs = fill_inputs(manifest, signature, types, shapes, rng)
    outputs = [np.empty(binding.shape(t.pattern), t.dtype(types).numpy) for t in signature.outputs]
    numbers = [number.of(binding.attributes) for number in signature.runtime_attributes]
    tensors = [None if a is None else describe(a, known_dtype(a)) for a in (*inputs, *outputs)]
    bound = HostKernel(kernel.content, kernel.key.slug, runtime).bind(tensors, numbers)
    wanted = [(output.dtype, output.shape) for output in outputs]
    peer = onnxruntime_call(manifest, inputs, workload.attributes, wanted, threads=runtime.threads)
    moved = sum(a.nbytes for a in (*inputs, *outputs) if a is not None)
    kept_alive = (inputs, outputs, bound)

    def run() -> None:
        kept_alive[2]()

    flop = _flop(workload, binding)
    return Subject(workload, runtime.threads, run, outputs[0], peer, flop, float(moved), dict(workload.attributes))


def _flop(workload: Workload, binding: Binding) -> float | None:
    """The value of the workload's formula: a product of numbers and extents."""
    if not workload.flops:
        return None
    factors = [text.strip() for text in workload.flops.split("*")]
    return float(
        math.prod(int(f) if re.fullmatch(r"\d+", f) else math.prod(binding.extents.get(f, (1,))) for f in factors)
    )


class Paired:
    """One measurement in rounds, in the form that pytest-benchmark's pedantic mode takes: a set-up and a target."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        own, peer = _once(subject.run), _once(subject.peer.run) if subject.peer else 0.0
        self.samples = Samples(max(1, math.ceil(MIN_TIMED_S / max(own, 1e-7))))
        self._peer_calls = max(1, math.ceil(MIN_TIMED_S / max(peer, 1e-7)))
        self.round_s = own * self.samples.calls + peer * self._peer_calls + 2 * WARM_S + PAUSE_S
        self.first = subject.output.copy()

    def set_up(self) -> None:
        """Time the peer, let its threads come to rest, and warm the kernel up."""
        if self.subject.peer:
            _warm(self.subject.peer.run)
            started = time.perf_counter_ns()
            for _ in range(self._peer_calls):
                self.subject.peer.run()
            self.samples.peer_ns.append((time.perf_counter_ns() - started) / self._peer_calls)
            _rest()
        self.subject.output.view(np.uint8)[...] = 0xA5
        _warm(self.subject.run)

    def target(self) -> None:
        """What is timed."""
        run = self.subject.run
        for _ in range(self.samples.calls):
            run()

    def rounds(self, budget_s: float) -> int:
        """How many rounds fit into a budget: an odd number from 7 to 61."""
        return min(61, max(7, int(budget_s / self.round_s))) | 1

    def check(self) -> None:
        """Check that the timed calls did the work.

        Raises:
            RunError: the output is not what it was before the measurement.
        """
        if self.subject.output.tobytes() != self.first.tobytes():
            raise RunError("the timed calls gave another result than the first one", where=self.subject.workload.name)


def _once(run: Callable[[], None]) -> float:
    """Seconds of one call, the best of a few."""
    best = math.inf
    for _ in range(3):
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return best


def _rest() -> None:
    """Wait until no thread of this process computes."""
    for _ in range(PAUSES):
        before = time.process_time()
        time.sleep(PAUSE_S)
        if time.process_time() - before < PAUSE_S / 10:
            return


def _warm(run: Callable[[], None]) -> None:
    started = time.perf_counter()
    run()
    while time.perf_counter() - started < WARM_S:
        run()


def _best_rate(work: Callable[[], float]) -> float:
    """What is done in a second, the best of several times."""
    best, began = 0.0, time.perf_counter()
    for number in range(PEAK_REPEATS[1]):
        started = time.perf_counter()
        if number >= PEAK_REPEATS[0] and started - began > PEAK_S:
            break
        done = work()
        best = max(best, done / (time.perf_counter() - started))
    return best


def against_class_schedule(hand: Subject, by_class: Subject, *, budget_s: float) -> dict[str, float]:
    """What a hand schedule gains: the class schedule's time, and hand time / class time, pair by pair.

    Args:
        hand: the kernel with the hand schedule.
        by_class: the same kernel with the class schedule, on the same workload.
        budget_s: seconds for it all.
    """
    pair = Paired(replace(by_class, peer=PeerCall("hand", hand.run, hand.output.copy)))
    for _ in range(pair.rounds(budget_s)):
        pair.set_up()
        started = time.perf_counter_ns()
        pair.target()
        pair.samples.own_ns.append((time.perf_counter_ns() - started) / pair.samples.calls)
    own, peer = np.array(pair.samples.own_ns), np.array(pair.samples.peer_ns)
    return {
        "class_schedule_median_ns": float(np.median(own)),
        "toolchain_efficiency": float(np.median(peer / own)),
    }


def statistics(subject: Subject, own_ns: list[float], peer_ns: list[float], here: Session) -> dict[str, float | None]:
    """The figures of a measurement; all times are of one call, in nanoseconds.

    Args:
        subject: what was measured.
        own_ns: the kernel's times, one a round.
        peer_ns: the peer's times of the same rounds; empty where there is no peer.
        here: the machine's peaks on the same threads.
    """
    own, peer = np.array(own_ns), np.array(peer_ns)
    median = float(np.median(own))
    seconds = median / 1e9
    bandwidth, peak = subject.bytes / seconds / 1e9, here.bandwidth_gb_s(subject.bytes)
    figures: dict[str, float | None] = {
        "median_ns": median,
        "p10_ns": float(np.percentile(own, 10)),
        "p90_ns": float(np.percentile(own, 90)),
        "mad_ns": float(np.median(np.abs(own - median))),
        "peer_median_ns": float(np.median(peer)) if peer.size else None,
        "speedup": float(np.median(peer / own)) if peer.size else None,
        "bytes": subject.bytes,
        "bandwidth_gb_s": bandwidth,
        "peak_bandwidth_gb_s": peak,
        "bandwidth_use": bandwidth / peak,
        "flop": subject.flop,
        "arithmetic_intensity_flop_per_byte": None,
        "roofline_fraction": None,
    }
    if subject.flop:
        intensity = subject.flop / subject.bytes
        bound = min(here.gflop_s, intensity * peak) * 1e9
        figures["arithmetic_intensity_flop_per_byte"] = intensity
        figures["roofline_fraction"] = subject.flop / seconds / bound
    return figures
