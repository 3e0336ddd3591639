from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hfreg.evaluation.sampling import WORK_LIMIT, SampledCall, sample_call
from hfreg.ops.binding import bind
from hfreg.ops.manifest import AttributeValue
from hfreg.ops.signature import Shape, Signature, complete_attributes, signatures
from unit import samples

MANIFESTS = {
    name: samples.manifest(getattr(samples, name.upper()))
    for name in ("unary", "broadcast", "matmul", "softmax", "conv", "pool")
}
CLASSES = [(name, s) for name, manifest in MANIFESTS.items() for s in signatures(manifest)]
EACH_CLASS = pytest.mark.parametrize(("name", "signature"), CLASSES, ids=[f"{n}-{s.class_name}" for n, s in CLASSES])


def draw(signature: Signature, count: int = 60, **wanted: Any) -> list[SampledCall]:
    rng = np.random.default_rng(7)
    calls = [sample_call(signature, rng, **wanted) for _ in range(count)]
    assert all(call is not None for call in calls)
    return [call for call in calls if call is not None]


def shapes(call: SampledCall) -> tuple[Shape, ...]:
    assert all(shape is not None for shape in call.shapes)
    return tuple(shape for shape in call.shapes if shape is not None)


@EACH_CLASS
@pytest.mark.parametrize("stretch", [False, True])
def test_every_call_fits_its_signature(name: str, signature: Signature, stretch: bool) -> None:
    for call in draw(signature, stretch=stretch):
        given = {key: value for key, value in call.attributes.items() if key in MANIFESTS[name].attributes}
        assert complete_attributes(MANIFESTS[name], given) == call.attributes
        assert bind(signature, call.shapes, call.attributes) == call.binding


@EACH_CLASS
def test_no_call_is_larger_than_a_reference_can_work_out_at_once(name: str, signature: Signature) -> None:
    for call in draw(signature):
        inputs = {axis for tensor in signature.inputs for axis in tensor.pattern.axes}
        assert math.prod(math.prod(call.binding.extents[axis]) for axis in inputs) <= WORK_LIMIT


@EACH_CLASS
def test_calls_differ_and_the_same_seed_draws_the_same_calls(name: str, signature: Signature) -> None:
    calls = draw(signature)
    assert len({call.shapes for call in calls}) > 20
    assert draw(signature) == calls


def test_calls_that_stretch_are_calls_that_numpy_broadcasts() -> None:
    signature = signatures(MANIFESTS["broadcast"])[0]
    calls = draw(signature, stretch=True)
    for call in calls:
        assert call.binding.extents["i"] == np.broadcast_shapes(*shapes(call))
    ranks = [{len(shape) for shape in shapes(call)} for call in calls]
    assert any(len(found) > 1 for found in ranks), "some inputs leave axes out"
    stretched = [call for call in calls if any(1 in a and 1 not in b for a in shapes(call) for b in shapes(call))]
    assert stretched, "some inputs have an extent of 1 where others do not"


def test_calls_that_do_not_stretch_have_inputs_of_one_shape() -> None:
    for call in draw(signatures(MANIFESTS["broadcast"])[0]):
        assert len(set(shapes(call))) == 1


def test_matrix_products_are_ones_that_numpy_does() -> None:
    signature = signatures(MANIFESTS["matmul"])[0]
    for call in draw(signature, stretch=True):
        a, b = (np.broadcast_to(np.float32(0), shape) for shape in shapes(call))
        assert call.binding.shape(signature.outputs[0].pattern) == np.matmul(a, b).shape


def test_the_located_axis_is_counted_from_both_ends() -> None:
    last, inner = signatures(MANIFESTS["softmax"])
    for signature in (last, inner):
        axes = []
        for call in draw(signature):
            axis = call.attributes["axis"]
            assert isinstance(axis, int)
            (shape,) = shapes(call)
            assert (shape[axis],) == call.binding.extents["n"]
            axes.append(axis)
        assert min(axes) < 0 <= max(axes)
    assert all(call.attributes["axis"] in (-1, len(shapes(call)[0]) - 1) for call in draw(last))


@pytest.mark.parametrize("size", [0, 1, 17, 257])
def test_wanted_extents_are_taken(size: int) -> None:
    signature = signatures(MANIFESTS["softmax"])[1]
    for call in draw(signature, extents={"n": size, "outer": (2, 3)}, count=10):
        assert call.binding.extents["n"] == (size,)
        assert shapes(call)[0][:2] == (2, 3)


def test_wanted_attributes_are_taken_and_the_others_drawn_from_what_is_served() -> None:
    signature = signatures(MANIFESTS["pool"])[0]
    modes, strides, kernels = set[object](), set[int](), set[int]()
    for call in draw(signature, attributes={"dilations": [2]}):
        assert call.attributes["dilations"] == [2]
        modes.add(call.attributes["ceil_mode"])
        for name, found in (("strides", strides), ("kernel_shape", kernels)):
            value = call.attributes[name]
            assert isinstance(value, list)
            found.update(value)
    assert modes == {0, 1}
    assert min(strides) == min(kernels) == 1  # their minimum
    assert max(strides) > 1 and max(kernels) > 1


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("default = 0.5", {-0.5, 0.25, 0.5, 1.0}),
        ("default = 0.0", {-0.5, 0.0, 1.0}),
        ("default = 1\nminimum = 1", {1.0, 2.0}),
        ("default = 0.5\nallowed = [0.5, 4]", {0.5, 4.0}),
    ],
)
def test_a_float_attribute_takes_values_around_its_default_or_those_that_are_served(
    lines: str, expected: set[float]
) -> None:
    # A kernel with the default compiled in must fail, as must one that only ever saw small or positive ones.
    manifest = samples.manifest(samples.UNARY + f'[attributes.alpha]\ntype = "float"\n{lines}\n')
    assert {call.attributes["alpha"] for call in draw(signatures(manifest)[0])} == expected


def test_some_calls_have_strides_groups_and_windows_that_are_rare() -> None:
    groups, sizes = set[object](), set[int]()
    for call in draw(signatures(MANIFESTS["conv"])[0], 200):
        groups.add(call.attributes["group"])
        sizes.update(call.binding.extents["kh"])
    assert {4, 5, 8} <= groups
    assert sizes == set(range(1, 8))
    strides, pads = set[object](), set[object]()
    for call in draw(signatures(MANIFESTS["pool"])[0], 200):
        for name, found in (("strides", strides), ("pads", pads)):
            values = call.attributes[name]
            assert isinstance(values, list)
            found.update(values)
    assert {1, 2, 3, 4, 5, 7, 8, 16} == strides
    assert {0, 1, 2, 4, 5, 7, 8, 16} == pads


def test_padding_counts_as_work() -> None:
    wide: dict[str, AttributeValue] = {"pads": [1000, 1000], "strides": [1], "kernel_shape": [1], "dilations": [1]}
    for call in draw(signatures(MANIFESTS["pool"])[0], 20, attributes=wide):
        (shape,) = shapes(call)
        assert call.work == math.prod(shape[:2]) * (shape[2] + 2000) <= WORK_LIMIT


def test_an_integer_attribute_without_a_minimum_takes_negative_values_where_no_others_are_allowed() -> None:
    manifest = samples.manifest(samples.UNARY + '[attributes.a]\ntype = "int"\ndefault = -3\nmaximum = -2\n')
    assert {call.attributes["a"] for call in draw(signatures(manifest)[0])} == {-2}


def test_an_attribute_that_gives_an_extent_gives_it() -> None:
    signature = signatures(MANIFESTS["conv"])[0]
    for call in draw(signature, attributes={"group": 3}, count=20):
        x, weights, _ = shapes(call)
        assert x[1] == 3 * weights[1]
        assert weights[0] % 3 == 0
        assert call.attributes["kernel_shape"] == list(weights[2:])


def test_optional_inputs_are_there_or_all_absent() -> None:
    signature = signatures(MANIFESTS["conv"])[0]
    assert all(None not in call.shapes for call in draw(signature, count=10))
    dropped = draw(signature, count=10, drop_optional=True)
    assert all(call.shapes[2] is None and None not in call.shapes[:2] for call in dropped)


def test_where_nothing_fits_nothing_is_drawn() -> None:
    signature = signatures(MANIFESTS["unary"])[0]
    assert sample_call(signature, np.random.default_rng(0), extents={"i": (WORK_LIMIT + 1,)}) is None
    pool = signatures(MANIFESTS["pool"])[0]
    tight: dict[str, AttributeValue] = {"kernel_shape": [9], "pads": [0, 0]}
    assert sample_call(pool, np.random.default_rng(0), extents={"w": 3}, attributes=tight) is None


def test_a_class_is_sampled_with_the_values_that_are_compiled_in() -> None:
    manifest = samples.manifest(
        samples.UNARY
        + '[attributes.mode]\ntype = "string"\ndefault = "a"\n'
        + '[[classes]]\nname = "first"\nattributes = { mode = "b" }\n'
    )
    for call in draw(signatures(manifest)[0], count=5):
        assert call.attributes == {"mode": "b"}
