from __future__ import annotations

import math

import pytest

from hfreg.dtypes import DTYPES
from hfreg.errors import RunError
from hfreg.ops.manifest import AttributeValue
from hfreg.ops.signature import complete_attributes, signatures
from unit import samples

ATTRIBUTES = """
[types]
T = ["float32"]

[inputs.x]
type = "T"
shape = "outer... n inner..."

[inputs.scale]
type = "float16"
shape = "n"
optional = true
default = 1.5

[outputs.y]
type = "T"
shape = "outer... n inner..."

[outputs.kept]
type = "int64"
shape = "1"

[axes.outer]
rank = 2

[attributes.axis]
type = "int"
default = -1
locates = "n"

[attributes.pads]
type = "ints"
length = 2
default = [0, 0]

[attributes.alpha]
type = "float"
default = 1

[attributes.mode]
type = "string"
default = "a"
allowed = ["a", "b"]

[attributes.rounding]
type = "string"
default = "even"
allowed = ["even"]

[attributes.hint]
type = "int"
optional = true

[attributes.keep]
type = "int"

[[classes]]
name = "last"
shapes = { x = "outer... n", y = "outer... n" }
attributes = { mode = "a", keep = 0 }

[[classes]]
name = "flat"
shapes = { x = "n", scale = "", y = "n" }
attributes = { mode = "a" }

[[classes]]
name = "general"
attributes = { mode = "b" }

[accuracy]
bound = "E0"
"""

MANIFEST = samples.manifest(ATTRIBUTES)
LAST, FLAT, GENERAL = signatures(MANIFEST)


def test_there_is_one_signature_for_each_class_in_the_order_in_which_they_are_tried() -> None:
    assert [s.class_name for s in (LAST, FLAT, GENERAL)] == ["last", "flat", "general"]
    assert {s.operator for s in (LAST, FLAT, GENERAL)} == {"sample"}


def test_a_class_replaces_patterns_and_keeps_the_others() -> None:
    patterns = {s.class_name: {t.name: str(t.pattern) for t in s.tensors} for s in (LAST, FLAT, GENERAL)}
    assert patterns == {
        "last": {"x": "outer... n", "scale": "n", "y": "outer... n", "kept": "1"},
        "flat": {"x": "n", "scale": "", "y": "n", "kept": "1"},
        "general": {"x": "outer... n inner...", "scale": "n", "y": "outer... n inner...", "kept": "1"},
    }


def test_tensors_know_their_side_their_default_and_their_type() -> None:
    x, scale, y, kept = GENERAL.tensors
    assert GENERAL.inputs == (x, scale)
    assert GENERAL.outputs == (y, kept)
    assert [t.is_optional for t in GENERAL.tensors] == [False, True, False, False]
    assert scale.default == 1.5
    types = {"T": DTYPES["bfloat16"]}
    assert [t.dtype(types).name for t in GENERAL.tensors] == ["bfloat16", "float16", "bfloat16", "int64"]


def test_axes_stand_in_the_order_of_first_appearance() -> None:
    assert list(LAST.axes) == ["outer", "n"]
    assert list(GENERAL.axes) == ["outer", "n", "inner"]
    assert GENERAL.groups == {"outer", "inner"}
    assert FLAT.groups == frozenset()


def test_a_group_of_several_axes_is_numbered_from_the_inside() -> None:
    assert GENERAL.view_axes(GENERAL.tensors[0]) == ("outer1", "outer0", "n", "inner")
    conv = signatures(samples.manifest(samples.CONV))[0]
    assert conv.view_axes(conv.tensors[0]) == ("n", "g", "c", "h", "w")
    assert conv.view_axes(conv.tensors[1]) == ("g", "m", "c_kh_kw")  # what is merged is seen as one axis


def test_the_axis_of_a_window_brings_the_axis_of_its_elements() -> None:
    conv = signatures(samples.manifest(samples.CONV))[0]
    assert set(conv.axes) == {"n", "g", "c", "h", "w", "m", "kh", "kw", "oh", "ow"}
    pool = signatures(samples.manifest(samples.POOL))[0]
    assert list(pool.axes) == ["n", "c", "w", "ow", "kw"]  # no tensor has kw


def test_an_input_that_broadcasts_over_its_last_axis_may_have_any_stride() -> None:
    broadcast = signatures(samples.manifest(samples.BROADCAST))[0]
    assert [broadcast.has_any_stride(t) for t in broadcast.tensors] == [True, True, True, False]
    matmul = signatures(samples.manifest(samples.MATMUL))[0]
    assert not any(matmul.has_any_stride(t) for t in matmul.tensors)


def test_the_values_of_a_class_and_single_values_are_compiled_in() -> None:
    assert LAST.fixed == {"rounding": "even", "mode": "a", "keep": 0}
    assert GENERAL.fixed == {"rounding": "even", "mode": "b"}


def test_the_other_numbers_are_run_time_arguments_with_lists_flattened() -> None:
    assert [str(n) for n in LAST.runtime_attributes] == ["axis", "pads[0]", "pads[1]", "alpha"]
    assert [str(n) for n in GENERAL.runtime_attributes] == ["axis", "pads[0]", "pads[1]", "alpha", "keep"]
    given: dict[str, AttributeValue] = {"axis": -1, "pads": [3, 4], "alpha": 1, "keep": 2}
    values = [number.of(given) for number in GENERAL.runtime_attributes]
    assert values == [-1, 3, 4, 1.0, 2]
    assert [type(value) for value in values] == [int, int, int, float, int]


def test_the_attribute_that_locates_an_axis_is_known() -> None:
    assert GENERAL.locator == LAST.locator == "axis"
    matmul = signatures(samples.manifest(samples.MATMUL))[0]
    assert matmul.locator == ""


def test_missing_attributes_get_their_defaults() -> None:
    assert complete_attributes(MANIFEST, {"keep": 1}) == {
        "keep": 1,
        "axis": -1,
        "pads": [0, 0],
        "alpha": 1,
        "mode": "a",
        "rounding": "even",
    }


def test_an_attribute_that_repeats_a_shape_need_not_be_said() -> None:
    complete = complete_attributes(samples.manifest(samples.CONV), {})
    assert "kernel_shape" not in complete
    assert complete["strides"] == [1, 1]


def test_given_attributes_are_kept_and_the_callers_are_not_changed() -> None:
    given: dict[str, AttributeValue] = {"keep": 1, "axis": 0, "hint": 7, "alpha": math.inf}
    complete = complete_attributes(MANIFEST, given)
    assert complete == {"keep": 1, "axis": 0, "hint": 7, "alpha": math.inf, "pads": [0, 0]} | {
        "mode": "a",
        "rounding": "even",
    }
    assert given == {"keep": 1, "axis": 0, "hint": 7, "alpha": math.inf}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keep": 1, "axes": 0}, "sample has no attribute 'axes'"),
        ({"keep": 1, "axis": "0"}, "sample: attribute axis: expected one int, got '0'"),
        ({"keep": 1, "pads": [1]}, "sample: attribute pads: expected 2 integers"),
        ({"keep": 1, "mode": "c"}, "sample: attribute mode: 'c' is not served; served: 'a', 'b'"),
        ({}, "sample needs the attribute 'keep'"),
    ],
)
def test_attributes_that_the_package_does_not_serve_are_refused(given: dict[str, AttributeValue], message: str) -> None:
    with pytest.raises(RunError) as caught:
        complete_attributes(MANIFEST, given)
    assert message in str(caught.value)
