"""Softmax on x86-64: more lanes, and the output's memory touched early where it does not fit into the cache.

A row is walked three times: the largest value, the exponentials with their sum, the division. 64 lanes hide the latency
of the maximum and the sum on AVX-512; short rows keep 32. The division is the only pass that touches the output. Where
input and output together are larger than the second-level cache (2 MiB, so 2**18 float32 elements each), that pass
would wait for memory; the pass before it reads the lines ahead. 16-bit elements need no such body.
"""

from dataclasses import replace

from hfreg.kernels.schedules import ScheduleTarget, Variant, row_reduction
from hfreg.lang import Graph


def last(graph: Graph, target: ScheduleTarget) -> list[Variant]:
    (general,) = row_reduction.variants(graph, target)
    lanes = 64 if target.vector == 16 else 32
    wide = replace(general, name="wide", condition=f"n >= {lanes}", lowering=target.lowering(lanes=lanes))
    large = replace(
        wide,
        name="large",
        condition=f"n >= {lanes} && outer * n > 262144",
        lowering=target.lowering(lanes=lanes, touched="exp"),
    )
    is_float32 = graph.result.memory.bits() == 32
    return [
        *([large] if is_float32 else []),
        *([wide] if wide.lowering != general.lowering else []),
        general,
    ]
