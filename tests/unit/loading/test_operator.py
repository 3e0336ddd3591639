"""Which kernel a call asks for, and what it refuses before it asks for any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hfreg.errors import RunError
from hfreg.kernels.host import HostKernel
from hfreg.loading.operator import LoadedOperator
from unit import samples

CAST = (
    samples.UNARY.replace('T = ["float32", "float16"]', 'T = ["float32"]\nU = ["float16", "int32"]').replace(
        '[outputs.y]\ntype = "T"', '[outputs.y]\ntype = "U"'
    )
    + '[attributes.to]\ntype = "int"\ndefault = 0\ntype_of = "U"\n'
)


class AskedError(Exception):
    """Which kernel was asked for."""


def ask(types: tuple[tuple[str, str], ...], attribute_class: str) -> HostKernel:
    raise AskedError(dict(types), attribute_class)


def operator(body: str) -> LoadedOperator:
    return LoadedOperator(samples.manifest(body), "here", ask)


def asked(body: str, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
    with pytest.raises(AskedError) as caught:
        operator(body)(*inputs, **attributes)
    return caught.value.args


X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("body", "inputs", "attributes", "kernel"),
    [
        (samples.UNARY, [X], {}, ({"T": "float32"}, "general")),
        (samples.UNARY, [X.astype(np.float16)], {}, ({"T": "float16"}, "general")),
        (samples.SOFTMAX, [X], {}, ({"T": "float32"}, "last")),
        (samples.SOFTMAX, [X], {"axis": 0}, ({"T": "float32"}, "inner")),
        (samples.BROADCAST, [X, X, None], {}, ({"T": "float32"}, "general")),
        (CAST, [X], {}, ({"T": "float32", "U": "float16"}, "general")),
        (CAST, [X], {"to": 6}, ({"T": "float32", "U": "int32"}, "general")),  # TensorProto.INT32
    ],
)
def test_types_and_attributes_choose_the_kernel(
    body: str, inputs: list[Any], attributes: dict[str, Any], kernel: tuple[Any, ...]
) -> None:
    assert asked(body, *inputs, **attributes) == kernel


@pytest.mark.parametrize(
    ("body", "inputs", "attributes", "message"),
    [
        (samples.UNARY, [], {}, "sample@1.0.0: x: is missing"),
        (samples.UNARY, [X, X], {}, r"takes 1 inputs \(x\), got 2"),
        (samples.UNARY, [X.astype(np.int32)], {}, "is int32, expected float32 or float16"),
        (samples.UNARY, [[1.0]], {}, "is a list, expected a NumPy array"),
        (samples.UNARY, [X.astype(">f4")], {}, "has the element type >f4"),
        (samples.UNARY, [X], {"axis": 1}, "has no attribute 'axis'"),
        (samples.SOFTMAX, [X], {"axis": 2}, "axis is 2, expected -2 to 1"),
        (samples.BROADCAST, [X, X.astype(np.int32)], {}, "is int32, expected float32 as a is"),
        (CAST, [X], {"to": 11}, "sample@1.0.0: to: is float64, expected float16 or int32"),  # TensorProto.DOUBLE
        (CAST, [X], {"to": 99}, "sample@1.0.0: to: is 99, expected float16 or int32"),
        (CAST, [X], {"to": [6]}, "expected one int"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused_by_name(
    body: str, inputs: list[Any], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        operator(body)(*inputs, **attributes)
