from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hfreg.ops.binding import Binding, PartialShape, ShapeError, bind, select
from hfreg.ops.manifest import AttributeValue
from hfreg.ops.patterns import Pattern
from hfreg.ops.signature import Signature, complete_attributes, signatures
from unit import samples

MANIFESTS = {
    name: samples.manifest(getattr(samples, name.upper()))
    for name in ("unary", "broadcast", "matmul", "softmax", "conv", "pool")
}


def bind_shapes(
    name: str, shapes: Sequence[PartialShape | None], attributes: Mapping[str, AttributeValue] | None = None
) -> tuple[Signature, Binding]:
    manifest = MANIFESTS[name]
    return select(signatures(manifest), shapes, complete_attributes(manifest, attributes or {}))


def output(
    name: str, *shapes: PartialShape | None, attributes: Mapping[str, AttributeValue] | None = None
) -> PartialShape:
    """The shape of the output of a call."""
    signature, binding = bind_shapes(name, shapes, attributes)
    return binding.shape(signature.outputs[0].pattern)


def message(name: str, *shapes: PartialShape | None, attributes: Mapping[str, AttributeValue] | None = None) -> str:
    with pytest.raises(ShapeError) as caught:
        bind_shapes(name, shapes, attributes)
    assert caught.value.where == "sample"
    return caught.value.message


# Groups


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 4), (2, 0, 5), (1, 2, 3, 4, 5, 6)])
def test_a_group_takes_any_number_of_axes(shape: tuple[int, ...]) -> None:
    assert output("unary", shape) == shape


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=4, min_side=0))
def test_inputs_broadcast_as_in_numpy(shapes: hnp.BroadcastableShapes) -> None:
    assert output("broadcast", *shapes.input_shapes) == shapes.result_shape


small_shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(st.lists(small_shapes, min_size=3, max_size=3))
def test_inputs_broadcast_where_numpy_broadcasts_them_and_nowhere_else(shapes: list[tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        assert "expected [i...]: i is [" in message("broadcast", *shapes)
    else:
        assert output("broadcast", *shapes) == expected


def test_an_absent_input_takes_no_part() -> None:
    assert output("broadcast", (3, 1), (4,), None) == (3, 4)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(2,), None, None], "b is missing"),
        ([(2,)], "called with 1 inputs, expected 3"),
        ([(2,)] * 4, "called with 4 inputs, expected 3"),
        ([(2, 3), (2,), (1,)], "b has shape [2], expected [i...]: i is [2, 3] in a"),
    ],
)
def test_a_call_that_does_not_fit_is_told_why(shapes: list[PartialShape | None], expected: str) -> None:
    assert message("broadcast", *shapes) == expected


# Optional axes


@given(small_shapes, small_shapes)
def test_matrix_products_have_the_shapes_that_numpy_gives(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        expected = np.matmul(np.zeros(a), np.zeros(b)).shape
    except ValueError:
        message("matmul", a, b)
    else:
        assert output("matmul", a, b) == expected


@st.composite
def matrices(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that fit, most of the time."""
    k = draw(st.integers(0, 4))
    batch = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0)).input_shapes
    a = (k,) if draw(st.integers(0, 3)) == 0 else (*batch[0], draw(st.integers(0, 4)), k)
    b = (k,) if draw(st.integers(0, 3)) == 0 else (*batch[1], k, draw(st.integers(0, 4)))
    return a, b


@given(matrices())
def test_matrix_products_of_every_rank_have_the_shapes_that_numpy_gives(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    assert output("matmul", *shapes) == np.matmul(*map(np.zeros, shapes)).shape


def test_an_axis_that_is_absent_has_no_extent() -> None:
    _, binding = bind_shapes("matmul", [(3,), (2, 3, 4)])
    assert binding.extents == {"batch": (2,), "m": (), "k": (3,), "n": (4,)}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((), (3,), "a has shape [], expected [batch... m? k]"),
        ((2, 3), (4, 5), "b has shape [4, 5], expected [batch... k n?]: k is 3 in a"),
        ((2, 1, 3), (4, 3, 5), None),
        ((2, 1, 3), (3, 3, 5), "b has shape [3, 3, 5], expected [batch... k n?]: batch is [2] in a"),
    ],
)
def test_matrices_that_do_not_fit_are_told_why(a: tuple[int, ...], b: tuple[int, ...], expected: str | None) -> None:
    if expected is None:
        expected = "b has shape [4, 3, 5], expected [batch... k n?]: batch is [2] in a"
    assert message("matmul", a, b) == expected


OPTIONAL = samples.manifest(
    """
[inputs.x]
type = "float32"
shape = "1? n 1"

[inputs.m]
type = "float32"
shape = "p? n"

[inputs.o]
type = "float32"
shape = "p? 1"

[outputs.y]
type = "float32"
shape = "p? n 1 1?"

[accuracy]
bound = "E0"
"""
)


@pytest.mark.parametrize(
    ("x", "m", "o", "y"),
    [
        ((4, 1), (4,), (1,), (4, 1)),
        ((1, 4, 1), (5, 4), (5, 1), (5, 4, 1)),
        ((4, 1), (5, 4), (5, 1), (5, 4, 1)),
        ((4, 1), (5, 4), (1,), None),  # p is there, so it cannot be absent
        ((4, 1), (4,), (5, 1), None),  # p is absent, so it cannot be there
        ((2, 4, 1), (4,), (1,), None),
        ((4, 2), (4,), (1,), None),
        ((4,), (4,), (1,), None),
        ((1, 1, 4, 1), (4,), (1,), None),
    ],
)
def test_axes_that_may_be_absent_are_absent_everywhere_or_nowhere(
    x: tuple[int, ...], m: tuple[int, ...], o: tuple[int, ...], y: tuple[int, ...] | None
) -> None:
    signature = signatures(OPTIONAL)[0]
    if y is None:
        with pytest.raises(ShapeError):
            bind(signature, [x, m, o], {})
    else:
        assert bind(signature, [x, m, o], {}).shape(signature.outputs[0].pattern) == y


# Located axes and classes


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).map(tuple), st.data())
def test_the_located_axis_is_the_one_that_numpy_would_take(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    signature, binding = bind_shapes("softmax", [shape], {"axis": axis})
    before, after = shape[:axis], shape[axis:][1:]
    assert binding.extents["outer"] == before
    assert binding.extents["n"] == (shape[axis],)
    assert binding.extents.get("inner", ()) == after
    assert signature.class_name == ("inner" if after else "last")
    assert binding.shape(signature.outputs[0].pattern) == shape


@pytest.mark.parametrize(
    ("shape", "axis", "expected"),
    [
        ((2, 3), 2, "axis is 2, expected -2 to 1: x has 2 axes"),
        ((2, 3), -3, "axis is -3, expected -2 to 1: x has 2 axes"),
        ((), 0, "x has shape [], expected [outer... n inner...]"),
        ((), -1, "x has shape [], expected [outer... n inner...]"),
    ],
)
def test_an_axis_that_is_not_there_is_refused(shape: tuple[int, ...], axis: int, expected: str) -> None:
    assert message("softmax", shape, attributes={"axis": axis}) == expected


def test_the_first_class_that_fits_serves_and_the_last_one_explains() -> None:
    last, inner = signatures(MANIFESTS["softmax"])
    assert select([last, inner], [(2, 3)], {"axis": -1})[0] is last
    assert select([inner, last], [(2, 3)], {"axis": -1})[0] is inner
    with pytest.raises(ShapeError, match=r"axis is 0, which the class last has not"):
        select([inner, last][1:], [(2, 3)], {"axis": 0})
    with pytest.raises(ShapeError, match="the operator has no attribute class"):
        select([], [(2, 3)], {})


def test_a_class_serves_only_the_values_that_are_compiled_in() -> None:
    manifest = samples.manifest(
        samples.UNARY
        + '[attributes.mode]\ntype = "string"\ndefault = "a"\n'
        + '[[classes]]\nname = "first"\nattributes = { mode = "a" }\n'
        + '[[classes]]\nname = "second"\nattributes = { mode = "b" }\n'
    )
    both = signatures(manifest)
    assert [select(both, [(2,)], {"mode": mode})[0].class_name for mode in "ab"] == ["first", "second"]
    with pytest.raises(ShapeError, match="mode is 'c', expected 'b'"):
        select(both, [(2,)], {"mode": "c"})


def test_an_extent_below_its_minimum_is_refused() -> None:
    manifest = samples.manifest(samples.UNARY + "[axes.i]\nminimum = 2\n")
    signature = signatures(manifest)[0]
    assert bind(signature, [(2, 3)], {}).extents == {"i": (2, 3)}
    assert bind(signature, [()], {}).extents == {"i": ()}
    with pytest.raises(ShapeError, match="i is 1, expected at least 2"):
        bind(signature, [(3, 1)], {})


# Splits and attributes that give extents


@given(*[st.integers(0, 4)] * 4, st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))
def test_split_axes_are_divided_by_the_attribute(n: int, m: int, h: int, w: int, g: int, c: int, k: int) -> None:
    h, w = h + k, w + k  # so that the window fits
    signature, binding = bind_shapes("conv", [(n, g * c, h, w), (g * m, c, k, k), (g * m,)], {"group": g})
    assert (binding.extents["g"], binding.extents["c"], binding.extents["m"]) == ((g,), (c,), (m,))
    assert binding.shape(signature.outputs[0].pattern) == (n, g * m, h - k + 1, w - k + 1)
    assert binding.shape(Pattern.parse("(g c) 1 n")) == (g * c, 1, n)


@pytest.mark.parametrize(
    ("x", "weights", "attributes", "expected"),
    [
        (
            (1, 5, 8, 8),
            (4, 2, 3, 3),
            {"group": 2},
            "x has shape [1, 5, 8, 8], expected [n (g c) h w]: g is 2 in attribute group",
        ),
        (
            (1, 4, 8, 8),
            (5, 2, 3, 3),
            {"group": 2},
            "weights has shape [5, 2, 3, 3], expected [(g m) {c kh kw}]: g is 2 in attribute group",
        ),
        (
            (1, 4, 8, 8),
            (4, 3, 3, 3),
            {"group": 2},
            "weights has shape [4, 3, 3, 3], expected [(g m) {c kh kw}]: c is 2 in x",
        ),
        (
            (1, 4, 8, 8),
            (4, 4, 3, 3),
            {"kernel_shape": [3, 2]},
            "weights has shape [4, 4, 3, 3], expected [(g m) {c kh kw}]: kw is 2 in attribute kernel_shape",
        ),
        ((4, 8, 8), (4, 4, 3, 3), {}, "x has shape [4, 8, 8], expected [n (g c) h w]"),
        ((1, 4, 8, 8), (4, 4, 0, 3), {}, "the window spans 0 along h, more than the 8 of the padded input"),
    ],
)
def test_groups_and_kernel_shapes_that_do_not_fit_are_refused(
    x: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, AttributeValue], expected: str
) -> None:
    assert message("conv", x, weights, None, attributes=attributes) == expected


@pytest.mark.parametrize("attributes", [{}, {"kernel_shape": [3, 2]}], ids=["left out", "said"])
def test_an_attribute_that_repeats_a_shape_may_be_left_out(attributes: dict[str, AttributeValue]) -> None:
    signature, binding = bind_shapes("conv", [(1, 4, 8, 8), (6, 4, 3, 2), None], attributes)
    assert binding.attributes["kernel_shape"] == [3, 2]
    assert binding.shape(signature.outputs[0].pattern) == (1, 6, 6, 7)


def test_an_attribute_that_repeats_a_shape_is_not_made_up_where_the_shape_is_not_known() -> None:
    _, binding = bind_shapes("conv", [(1, 4, 8, 8), (6, 4, 3, None), None])
    assert "kernel_shape" not in binding.attributes
    extent: PartialShape = binding.extents["kw"]
    assert extent == (None,)


def test_merged_axes_are_axes_of_their_own() -> None:
    _, binding = bind_shapes("conv", [(1, 4, 8, 8), (6, 4, 3, 2), None])
    assert [binding.extents[name] for name in ("c", "kh", "kw")] == [(4,), (3,), (2,)]
    assert binding.shape(Pattern.parse("{kh kw} c")) == (3, 2, 4)
    assert "weights has shape [6, 4, 3], expected" in message("conv", (1, 4, 8, 8), (6, 4, 3), None)


# Partial shapes


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]], dict[str, AttributeValue]]:
    name = draw(st.sampled_from(["unary", "broadcast", "matmul", "softmax", "pool"]))
    if name == "unary":
        return name, [draw(small_shapes)], {}
    if name == "broadcast":
        shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3, min_side=0))
        return name, list(shapes.input_shapes), {}
    if name == "matmul":
        return name, list(draw(matrices())), {}
    if name == "softmax":
        shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple))
        return name, [shape], {"axis": draw(st.integers(-len(shape), len(shape) - 1))}
    kernel, stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return name, [(1, 2, draw(st.integers(kernel, 9)))], {"kernel_shape": [kernel], "strides": [stride]}


@given(calls(), st.data())
def test_an_extent_that_is_not_known_fits_and_what_is_concluded_is_true(
    call: tuple[str, list[tuple[int, ...]], dict[str, AttributeValue]], data: st.DataObject
) -> None:
    name, shapes, attributes = call
    signature, binding = bind_shapes(name, shapes, attributes)
    holes = [
        tuple(None if data.draw(st.booleans()) else extent for extent in shape) for shape in shapes
    ]  # fmt: skip
    partial_signature, partial = bind_shapes(name, holes, attributes)
    assert partial_signature.class_name == signature.class_name
    for axis, extents in binding.extents.items():
        concluded: PartialShape = partial.extents[axis]
        assert len(concluded) == len(extents)
        assert all(a is None or a == b for a, b in zip(concluded, extents, strict=True))
    if holes == shapes:
        assert partial == binding


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((None,), (1,), (None,)),  # 1 stretches to whatever the other one is
        ((None,), (4,), (4,)),  # only 1 and 4 fit beside 4
        ((None, 3), (2, 1), (2, 3)),
        ((None,), (None,), (None,)),
        ((None,), (), (None,)),
        ((2, None), (None,), (2, None)),
    ],
)
def test_an_unknown_extent_broadcasts_to_what_can_be_known(
    a: PartialShape, b: PartialShape, expected: PartialShape
) -> None:
    assert output("broadcast", a, b, None) == expected


def test_known_extents_are_still_held_against_each_other() -> None:
    assert "i is [2, ?] in a" in message("broadcast", (2, None), (3, None), None)
    assert "k is 3 in a" in message("matmul", (None, 3), (4, None))


def test_an_unknown_extent_leaves_the_positions_of_a_window_unknown() -> None:
    attributes: dict[str, AttributeValue] = {"kernel_shape": [3]}
    assert output("pool", (None, 2, None), attributes=attributes) == (None, 2, None)


@pytest.mark.parametrize(
    ("x", "weights", "expected"),
    [
        ((None, 4, 8, 8), (6, 2, 3, 3), (None, 6, 6, 6)),
        ((1, None, 8, 8), (6, 2, 3, 3), (1, 6, 6, 6)),
        ((1, 4, 8, None), (None, 2, 3, 3), (1, None, 6, None)),
    ],
)
def test_a_split_axis_of_unknown_extent_gives_an_unknown_extent(
    x: PartialShape, weights: PartialShape, expected: PartialShape
) -> None:
    # `Binding.extents`: "From partial shapes they are partial too"; the shape of an output has to follow.
    assert output("conv", x, weights, None, attributes={"group": 2}) == expected


# Windows


def brute_force(extent: int, size: int, stride: int, dilation: int, pads: tuple[int, int], *, ceil: bool) -> int:
    """The positions of a window, by sliding it over the padded axis.

    A window starts at every multiple of the stride. It counts where all its elements are inside the padded axis. With
    ceil_mode one more counts, if there is anything of the axis behind the last one that fits (the padded axis does
    not end exactly there) and it does not start in the padding at the end (MaxPool-22 says so in words, PyTorch and
    onnxruntime do it in every version).
    """
    padded = ["before"] * pads[0] + ["data"] * extent + ["after"] * pads[1]
    starts = [
        start
        for start in range(0, len(padded), stride)
        if all(start + place * dilation < len(padded) for place in range(size))
    ]
    if not starts:
        return 0
    covered_to = starts[-1] + (size - 1) * dilation + 1
    following = starts[-1] + stride
    if ceil and covered_to < len(padded) and following < len(padded) and padded[following] != "after":
        return len(starts) + 1
    return len(starts)


windows = st.tuples(st.integers(1, 12), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))


@given(windows, st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(0, 1))
def test_the_positions_of_a_window_are_those_of_sliding_it(
    window: tuple[int, int, int, int], pads: tuple[int, int], ceil: int
) -> None:
    extent, size, stride, dilation = window
    attributes: dict[str, AttributeValue] = {
        "kernel_shape": [size],
        "strides": [stride],
        "dilations": [dilation],
        "pads": list(pads),
        "ceil_mode": ceil,
    }
    expected = brute_force(extent, size, stride, dilation, pads, ceil=bool(ceil))
    if expected:
        assert output("pool", (1, 1, extent), attributes=attributes) == (1, 1, expected)
    else:
        reach = dilation * (size - 1) + 1
        padded = extent + sum(pads)
        assert f"spans {reach} along w, more than the {padded} of the padded input" in message(
            "pool", (1, 1, extent), attributes=attributes
        )


def onnx_positions(extent: int, size: int, stride: int, dilation: int, pads: int, *, mode: str, ceil: bool) -> int:
    """The formulas of MaxPool-12, each as the specification writes it."""
    reach = (size - 1) * dilation + 1
    up_or_down = math.ceil if ceil else math.floor
    match mode, ceil:
        case "NOTSET", _:
            return up_or_down((extent + pads - dilation * (size - 1) - 1) / stride + 1)
        case "VALID", True:
            return math.ceil((extent - reach + 1) / stride)
        case "VALID", False:
            return math.floor((extent - reach) / stride) + 1
        case _, True:
            return math.ceil(extent / stride)
        case _:
            return math.floor((extent - 1) / stride) + 1


@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("mode", ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
def test_the_positions_of_a_window_follow_the_formulas_of_max_pool_12(mode: str, ceil: int) -> None:
    wrong = []
    for extent in range(1, 13):
        for size, stride, dilation in [(k, s, d) for k in range(1, 5) for s in range(1, 5) for d in range(1, 4)]:
            reach = (size - 1) * dilation + 1
            for pads in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)] if mode == "NOTSET" else [(0, 0)]:
                padded = extent + sum(pads)
                expected = onnx_positions(extent, size, stride, dilation, sum(pads), mode=mode, ceil=bool(ceil))
                if expected < 1 or (mode in ("NOTSET", "VALID") and reach > padded):
                    continue  # the window does not fit: no output
                if (expected - 1) * stride >= extent + pads[0]:
                    continue  # would start in the padding at the end, which later versions of MaxPool rule out
                attributes: dict[str, AttributeValue] = {
                    "kernel_shape": [size],
                    "strides": [stride],
                    "dilations": [dilation],
                    "pads": list(pads),
                    "auto_pad": mode,
                    "ceil_mode": ceil,
                }
                got = output("pool", (1, 1, extent), attributes=attributes)[-1]
                if got != expected:
                    wrong.append((extent, size, stride, dilation, pads, got, expected))
    assert not wrong, f"{len(wrong)} differ, first (extent, size, stride, dilation, pads, got, expected): {wrong[0]}"


@given(windows, st.sampled_from(["SAME_UPPER", "SAME_LOWER"]))
def test_automatic_padding_is_as_small_as_can_be_and_as_even_as_can_be(
    window: tuple[int, int, int, int], mode: str
) -> None:
    extent, size, stride, dilation = window
    attributes: dict[str, AttributeValue] = {
        "kernel_shape": [size],
        "strides": [stride],
        "dilations": [dilation],
        "auto_pad": mode,
    }
    _, binding = bind_shapes("pool", [(1, 1, extent)], attributes)
    pads = binding.attributes["pads"]
    assert isinstance(pads, list)
    before, after = pads
    # Brute force: the smallest total that gives ceil(extent / stride) positions; the odd one goes to the end for UPPER.
    wanted = -(-extent // stride)
    totals = range(100)
    total = next(t for t in totals if brute_force(extent, size, stride, dilation, (0, t), ceil=False) >= wanted)
    assert before + after == total
    assert after - before == (total % 2 if mode == "SAME_UPPER" else -(total % 2))
    assert binding.extents["ow"] == (wanted,)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("extent", "size", "stride"), [(18, 1, 7), (22, 1, 11), (29, 3, 10), (9, 2, 5)])
def test_automatic_padding_is_never_negative(extent: int, size: int, stride: int, mode: str) -> None:
    # (ceil(extent / stride) - 1) * stride + size - extent is negative: 0 gives as many windows, and Conv of
    # onnx.reference takes it too, so window i starts at i * stride.
    attributes: dict[str, AttributeValue] = {"kernel_shape": [size], "strides": [stride], "auto_pad": mode}
    _, binding = bind_shapes("pool", [(1, 1, extent)], attributes)
    assert binding.attributes["pads"] == [0, 0]
    assert binding.extents["ow"] == (-(-extent // stride),)


def test_automatic_padding_does_not_change_the_callers_attributes_or_the_defaults() -> None:
    given_attributes: dict[str, AttributeValue] = {"kernel_shape": [3], "auto_pad": "SAME_UPPER", "pads": [0, 0]}
    output("pool", (1, 1, 8), attributes=given_attributes)
    assert given_attributes["pads"] == [0, 0]
    complete = complete_attributes(MANIFESTS["pool"], {"kernel_shape": [3], "auto_pad": "SAME_UPPER"})
    bind(signatures(MANIFESTS["pool"])[0], [(1, 1, 8)], complete)
    assert MANIFESTS["pool"].attributes["pads"].default == [0, 0]
    assert complete["pads"] == [0, 0]


def test_valid_padding_overrides_the_pads() -> None:
    attributes: dict[str, AttributeValue] = {"kernel_shape": [3], "auto_pad": "VALID", "pads": [5, 5]}
    _, binding = bind_shapes("pool", [(1, 1, 8)], attributes)
    assert binding.attributes["pads"] == [0, 0]
    assert binding.extents["ow"] == (6,)


@pytest.mark.parametrize("mode", ["VALID", "SAME_UPPER", "SAME_LOWER"])
def test_automatic_padding_leaves_nothing_to_round_up(mode: str) -> None:
    # A kernel knows no auto_pad: it gets pads, and a ceil_mode that agrees with the positions.
    attributes: dict[str, AttributeValue] = {"kernel_shape": [2], "strides": [2], "auto_pad": mode, "ceil_mode": 1}
    _, binding = bind_shapes("pool", [(1, 1, 5)], attributes)
    assert binding.attributes["ceil_mode"] == 0
    attributes["auto_pad"] = "NOTSET"
    assert bind_shapes("pool", [(1, 1, 5)], attributes)[1].attributes["ceil_mode"] == 1


def test_a_class_with_ceil_mode_compiled_in_does_not_serve_automatic_padding() -> None:
    classes = '[[classes]]\nname = "up"\nattributes = { ceil_mode = 1 }\n[[classes]]\nname = "general"\n'
    manifest = samples.manifest(samples.POOL + classes)
    given = complete_attributes(manifest, {"kernel_shape": [2], "strides": [2], "ceil_mode": 1})
    for mode, name in (("NOTSET", "up"), ("VALID", "general")):
        assert select(signatures(manifest), [(1, 1, 5)], given | {"auto_pad": mode})[0].class_name == name


def test_an_attribute_that_repeats_extents_is_missing_where_its_class_has_them_not() -> None:
    body = (
        samples.CONV
        + """
[[classes]]
name = "flat"
shapes = { x = "n (g c) h", weights = "(g m) c 1", y = "n (g m) h" }
"""
    )
    flat = signatures(samples.manifest(body))[0]
    with pytest.raises(ShapeError, match="nothing gives the extent of kh"):
        bind(flat, [(1, 4, 8), (6, 2, 1), None], {"group": 2, "strides": [1, 1], "dilations": [1, 1]})


def test_a_window_whose_size_only_an_absent_input_has_is_named() -> None:
    body = samples.CONV.replace('(g m) {c kh kw}"', '(g m) {c kh kw}"\noptional = true')
    signature = signatures(samples.manifest(body))[0]
    with pytest.raises(ShapeError, match="nothing gives the extent of kh"):
        bind(signature, [(1, 4, 8, 8), None, (6,)], {"group": 2})


def test_two_window_axes_have_their_own_places_in_the_attribute_lists() -> None:
    attributes: dict[str, AttributeValue] = {"strides": [1, 2], "dilations": [2, 1], "pads": [1, 0, 0, 3]}
    # h: 9 + 1 + 0 - (2*2 + 1) = 5 -> 6; w: 8 + 0 + 3 - 2 = 9 -> 9 // 2 + 1 = 5
    assert output("conv", (1, 4, 9, 8), (4, 4, 3, 2), None, attributes=attributes) == (1, 4, 6, 5)
    same: dict[str, AttributeValue] = {"strides": [2, 3], "auto_pad": "SAME_LOWER"}
    signature, binding = bind_shapes("conv", [(1, 4, 9, 8), (4, 4, 4, 2), None], same)
    # h: ceil(9/2) = 5, total (5-1)*2 + 4 - 9 = 3: 2 before, 1 after. w: ceil(8/3) = 3, total (3-1)*3 + 2 - 8 = 0.
    assert binding.attributes["pads"] == [2, 0, 1, 0]
    assert binding.shape(signature.outputs[0].pattern) == (1, 4, 5, 3)


def test_attributes_that_the_manifest_does_not_have_take_the_defaults_of_onnx() -> None:
    body = samples.POOL.partition("[attributes.strides]")[0] + '[accuracy]\nbound = "E0"\n'
    signature = signatures(samples.manifest(body))[0]
    assert bind(signature, [(1, 1, 8)], {"kernel_shape": [3]}).extents["ow"] == (6,)


@pytest.mark.parametrize(
    ("attributes", "channels", "message"),
    [
        ({"strides": [65536, 1]}, 4, "strides[0] is 65536, expected at most 65535"),
        ({"dilations": [1, 65536]}, 4, "dilations[1] is 65536, expected at most 65535"),
        ({"pads": [0, 0, 0, 2**29 + 1]}, 4, f"pads[3] is {2**29 + 1}, expected at most {2**29}"),
        ({"pads": [0, 2**29 - 8, 0, 1]}, 4, f"w with its padding is {2**29 + 1}, expected at most {2**29}"),
        # 2 of 4 channels: (2 + 2) * ((9 + 2*s)**2 + 9*s*s + 32) + 4096 is 2**29 where s is 3211.8
        ({"strides": [3212, 3212], "group": 2}, 2, "x padded to whole strides has 2^29 elements or more along c, h, w"),
    ],
)
def test_windows_that_32_bits_cannot_count_are_refused(
    attributes: dict[str, AttributeValue], channels: int, message: str
) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        output("conv", (1, 4, 9, 8), (4, channels, 1, 1), None, attributes=attributes)


def test_the_largest_windows_that_are_served() -> None:
    steps: dict[str, AttributeValue] = {"strides": [1, 65535], "dilations": [65535, 65535]}
    assert output("conv", (1, 4, 9, 8), (4, 4, 1, 1), None, attributes=steps) == (1, 4, 9, 1)
    wide: dict[str, AttributeValue] = {"strides": [3211, 3211], "group": 2}
    assert output("conv", (1, 4, 9, 9), (4, 2, 1, 1), None, attributes=wide) == (1, 4, 1, 1)
    pads: dict[str, AttributeValue] = {"kernel_shape": [1], "strides": [65535], "pads": [2**29 - 8, 0]}
    assert output("pool", (1, 1, 8), attributes=pads) == (1, 1, 8193)
