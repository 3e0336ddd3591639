"""Strides, dilations and pads of any size: a kernel gives the right result, or says what is too large."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from hfreg.arrays import Array
from hfreg.dtypes import DTYPES
from hfreg.errors import RunError
from hfreg.kernels.artifact import KernelKey
from hfreg.kernels.build import build_kernel
from hfreg.kernels.runner.client import Call, KernelRunner, Ran, Reported, RunOutcome
from hfreg.ops.binding import Binding, bind
from hfreg.ops.package import load_package
from hfreg.ops.signature import complete_attributes
from integration.surface import PACKAGES, host

pytestmark = pytest.mark.build

ONNX_DEFAULTS = {"strides": [1, 1], "dilations": [1, 1], "pads": [0, 0, 0, 0]}
INT32_MAX = 2**31 - 1
Shape = tuple[int, ...]
Window = Mapping[str, Any]

RIGHT: list[tuple[str, list[Shape], Window]] = [
    ("conv", [(1, 1, 4, 4), (1, 1, 2, 2)], {"strides": [1, 65535]}),
    ("conv", [(1, 2, 4, 4), (3, 2, 2, 2)], {"strides": [3000, 3000]}),
    ("conv", [(1, 2, 40, 40), (3, 2, 2, 2)], {"strides": [16, 31]}),
    ("conv", [(1, 1, 4, 4), (1, 1, 2, 2)], {"strides": [16, 16], "pads": [4096] * 4}),
    ("conv", [(1, 1, 3, 3), (2, 1, 1, 2)], {"dilations": [1, 65535], "pads": [0, 65534, 0, 7]}),
    ("max_pool", [(1, 1, 3, 3)], {"kernel_shape": [1, 1], "pads": [0, 2**20, 0, 2**20], "strides": [1, 65535]}),
    ("max_pool", [(1, 1, 3, 3)], {"kernel_shape": [2, 2], "pads": [2**20, 0, 0, 0], "strides": [65535, 1]}),
    (
        "max_pool",
        [(1, 2, 3, 5)],
        {"kernel_shape": [2, 3], "dilations": [65535, 7], "pads": [65535, 8, 65533, 9], "strides": [65535, 65535]},
    ),
]
PLANE = "x padded to whole strides has 2^29 elements or more along c, h, w, which this kernel does not support"
REFUSED: list[tuple[str, list[Shape], Window, str]] = [
    ("conv", [(1, 1, 4, 4), (1, 1, 2, 2)], {"strides": [46341, 46341]}, PLANE),
    ("conv", [(1, 64, 4, 4), (1, 64, 2, 2)], {"pads": [4096] * 4}, PLANE),
    ("conv", [(1, 512, 4, 4), (1, 512, 2, 2)], {"pads": [1030] * 4, "strides": [2, 2]}, PLANE),
    ("conv", [(1, 1024, 3, 3), (1, 1024, 2, 2)], {"strides": [2048, 2048]}, PLANE),
    (
        "conv",
        [(1, 1, 4, 4), (1, 1, 2, 2)],
        {"strides": [65536, 1]},
        "strides[0] is 65536, expected at most 65535",
    ),
    (
        "max_pool",
        [(1, 1, 3, 3)],
        {"kernel_shape": [1, 1], "pads": [0, INT32_MAX, 0, INT32_MAX]},
        f"pads[1] is {INT32_MAX}, expected at most {2**29}",
    ),
    (
        "max_pool",
        [(1, 1, 3, 3)],
        {"kernel_shape": [1, 1], "pads": [0, INT32_MAX, 0, INT32_MAX], "strides": [1, 2**30]},
        f"strides[1] is {2**30}, expected at most 65535",
    ),
    (
        "max_pool",
        [(1, 1, 3, 3)],
        {"kernel_shape": [1, 2], "pads": [0, 0, 0, INT32_MAX - 1], "dilations": [1, INT32_MAX]},
        f"dilations[1] is {INT32_MAX}, expected at most 65535",
    ),
    (
        "max_pool",
        [(1, 1, 3, 3)],
        {"kernel_shape": [1, 1], "pads": [2**28, 0, 2**28, 0], "strides": [65535, 1]},
        f"h with its padding is {2**29 + 3}, expected at most {2**29}",
    ),
]


class Operator:
    """The kernel for any window and float32."""

    def __init__(self, name: str, stack: ExitStack) -> None:
        self.package = load_package(PACKAGES / name)
        self.signature = self.package.signatures[-1]
        key = KernelKey(name, (("T", "float32"),), self.signature.class_name, host(), "halide")
        self.runner = stack.enter_context(KernelRunner(build_kernel(self.package, key)))

    def attributes(self, shapes: list[Shape], given: Window) -> dict[str, Any]:
        values = {"kernel_shape": list(shapes[1][2:])} if len(shapes) > 1 else {}
        return complete_attributes(self.package.manifest, values | dict(given))

    def bind(self, shapes: list[Shape], attributes: dict[str, Any]) -> Binding:
        return bind(self.signature, [*shapes, *[None] * (len(self.signature.inputs) - len(shapes))], attributes)

    def call(self, inputs: list[Array], attributes: dict[str, Any], output: Shape) -> RunOutcome:
        absent = [None] * (len(self.signature.inputs) - len(inputs))
        numbers = tuple(number.of(attributes) for number in self.signature.runtime_attributes)
        return self.runner.call(Call((*inputs, *absent), ((DTYPES["float32"], output),), numbers))


@pytest.fixture(scope="module")
def operators() -> Iterator[Any]:
    with ExitStack() as stack:
        yield functools.cache(lambda name: Operator(name, stack))


def windows(x: Array, sizes: list[int], given: Window, fill: float) -> Array:
    """[n, c, p, q, kh, kw] float64: element by element, without a padded copy."""
    window = ONNX_DEFAULTS | dict(given)
    places, inside = [], []
    for axis in (0, 1):
        before, after = window["pads"][axis], window["pads"][axis + 2]
        reach = (sizes[axis] - 1) * window["dilations"][axis] + 1
        count = (x.shape[2 + axis] + before + after - reach) // window["strides"][axis] + 1
        place = np.arange(count)[:, None] * window["strides"][axis] - before
        place = place + np.arange(sizes[axis]) * window["dilations"][axis]
        inside.append((place >= 0) & (place < x.shape[2 + axis]))
        places.append(np.clip(place, 0, x.shape[2 + axis] - 1))
    values = x.astype(np.float64)[:, :, places[0][:, None, :, None], places[1][None, :, None, :]]
    return np.where(inside[0][:, None, :, None] & inside[1][None, :, None, :], values, fill)


def expected(inputs: list[Array], given: Window) -> Array:
    x, *rest = inputs
    if not rest:
        return np.asarray(windows(x, given["kernel_shape"], given, -np.inf).max(axis=(-2, -1)))
    y: Array = np.einsum(
        "ncpqyx,ocyx->nopq", windows(x, list(rest[0].shape[2:]), given, 0.0), rest[0].astype(np.float64)
    )
    return y


@pytest.mark.parametrize(("name", "shapes", "given"), RIGHT)
def test_what_is_accepted_is_right(name: str, shapes: list[Shape], given: Window, operators: Any) -> None:
    operator, rng = operators(name), np.random.default_rng(5)
    inputs = [rng.integers(-8, 9, shape).astype(np.float32) for shape in shapes]  # sums are exact
    attributes, right = operator.attributes(shapes, given), expected(inputs, given)
    assert operator.bind(shapes, attributes).shape(operator.signature.outputs[0].pattern) == right.shape
    outcome = operator.call(inputs, attributes, right.shape)
    assert isinstance(outcome, Ran), outcome
    assert not outcome.faults
    np.testing.assert_array_equal(outcome.outputs[0], right)


@pytest.mark.parametrize(("name", "shapes", "given", "message"), REFUSED)
def test_what_is_too_large_is_named_before_any_memory_is_touched(
    name: str, shapes: list[Shape], given: Window, message: str, operators: Any
) -> None:
    operator = operators(name)
    attributes = operator.attributes(shapes, given)
    with pytest.raises(RunError) as refusal:
        operator.bind(shapes, attributes)
    assert message in str(refusal.value)
    outcome = operator.call([np.ones(shape, np.float32) for shape in shapes], attributes, (1, 1, 1, 1))
    assert outcome == Reported(f"{name}: {message}")
