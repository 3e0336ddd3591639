"""The semantics language: NumPy-like tensors, lowered to Halide.

    from hfreg.lang import Tensor, exp, max, sum

    def softmax(x: Tensor, *, axis: int) -> Tensor:
        e = exp(x - max(x, axis))
        return e / sum(e, axis)

What it is, what it computes and in which order is here; how it is computed on a target (tiles, vectors, threads) is the
schedule's matter.
"""

from hfreg.lang.contraction import contract
from hfreg.lang.functions import (
    abs,
    erf,
    exp,
    log,
    max,
    maximum,
    mean,
    minimum,
    nanmax,
    round,
    round_saturate,
    round_to,
    sigmoid,
    sqrt,
    sum,
    tanh,
    where,
)
from hfreg.lang.reduction import Monoid, reduce
from hfreg.lang.tensor import Graph, Lowering, Scalar, Tensor, along, elementwise, squeeze, transpose
from hfreg.lang.window import window

__all__ = [
    "Graph",
    "Lowering",
    "Monoid",
    "Scalar",
    "Tensor",
    "abs",
    "along",
    "contract",
    "elementwise",
    "erf",
    "exp",
    "log",
    "max",
    "maximum",
    "mean",
    "minimum",
    "nanmax",
    "reduce",
    "round",
    "round_saturate",
    "round_to",
    "sigmoid",
    "sqrt",
    "squeeze",
    "sum",
    "tanh",
    "transpose",
    "where",
    "window",
]
