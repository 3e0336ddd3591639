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


IMAGE = [np.ones((1, 1, 5, 5), np.float32), np.ones((1, 1, 3, 3), np.float32)]
LONG = np.ones(50_000, np.float32)
SCALED = samples.UNARY + '[attributes.scale]\ntype = "float"\ndefault = 1.0\n'


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
        (CAST, [X], {"to": True}, "expected one int, got True"),
        (CAST, [X], {"to": 6.0}, "expected one int, got 6.0"),
        (CAST, [X], {"to": 10**4000}, "sample@1.0.0: attribute to: is beyond the integers of 64 bits"),
        (samples.SOFTMAX, [X], {"axis": -(2**63) - 1}, "attribute axis: is beyond the integers of 64 bits"),
        (samples.UNARY, [np.ma.masked_array(X, X > 0)], {}, "x: is a masked array"),
        (samples.CONV, IMAGE, {"strides": [1, True]}, r"expected 2 integers, got \[1, True\]"),
        (samples.CONV, IMAGE, {"strides": "11"}, "expected 2 integers, got '11'"),
        (samples.CONV, IMAGE, {"strides": ((1, 1), (1, 1))}, "expected 2 integers"),
        (SCALED, [X], {"scale": 10**400}, "attribute scale: is beyond the largest double"),
        (SCALED, [X], {"scale": True}, "expected one float, got True"),
        (SCALED, [X], {"scale": "1"}, "expected one float, got '1'"),
        (
            samples.BROADCAST,
            [LONG[:, None], LONG],
            {},
            r"y: would have the shape \[50000, 50000\], more than 2147483647",
        ),
    ],
)
def test_an_argument_that_does_not_fit_is_refused_by_name(
    body: str, inputs: list[Any], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        operator(body)(*inputs, **attributes)


class Producer:
    """A tensor of another library."""

    def __init__(self, device: Any, capsule: Any) -> None:
        self._device, self._capsule = device, capsule

    def __dlpack_device__(self) -> Any:
        return self._device()

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule()


class HalfProducer:
    """A producer before DLPack's Python specification was complete."""

    def __dlpack__(self) -> Any:
        return X.__dlpack__()


def fail(*_: Any) -> Any:
    raise KeyError("out of order")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (HalfProducer(), "does not give its memory: .*__dlpack_device__"),
        (Producer(fail, X.__dlpack__), "does not give its memory: 'out of order'"),
        (Producer(lambda: (1, 0), fail), "does not give its memory: 'out of order'"),
        (Producer(lambda: (), X.__dlpack__), "does not give its memory"),
        (Producer(lambda: "cpu", X.__dlpack__), "does not give its memory"),
        (Producer(lambda: (1, 0), dict), "gives a DLPack capsule that is used up or of another version"),
        (Producer(lambda: (2, 0), fail), r"is on DLPack device \(2, 0\), expected CPU memory"),  # kDLCUDA
    ],
)
def test_a_producer_that_fails_is_refused_by_name(value: Any, message: str) -> None:
    with pytest.raises(RunError, match=f"sample@1.0.0: x: {message}"):
        operator(samples.UNARY)(value)
