"""Each case changes one thing of a valid manifest; `¶` in the new text stands on the line that the problem names."""

from __future__ import annotations

import pytest

from hfreg.errors import ManifestError
from hfreg.ops.manifest import Attribute, AttributeValue
from hfreg.ops.manifest_checks import check_manifest, value_problem
from hfreg.ops.package import load_manifest
from unit import samples

RICH = samples.manifest_text(
    """
[types]
T = ["float32", "float16"]
I = ["int32", "int64"]

[inputs.x]
type = "T"
shape = "batch... c h"

[inputs.w]
type = "T"
shape = "c kh"
optional = true

[outputs.y]
type = "I"
shape = "batch... c oh"

[axes.batch]
rank = 2
broadcast = true

[axes.kh]
attribute = "kernel_shape[0]"

[axes.oh]
window = { over = "h", size = "kh", position = 0 }

[attributes.axis]
type = "int"
default = -1
locates = "c"

[attributes.kernel_shape]
type = "ints"
length = 1
from_axes = ["kh"]

[attributes.strides]
type = "ints"
length = 1
default = [1]
minimum = 1
maximum = 9

[attributes.mode]
type = "string"
default = "max"
allowed = ["max", "min"]

[attributes.to]
type = "int"
default = 0
type_of = "I"

[attributes.alpha]
type = "float"
default = 0.5

[[classes]]
name = "maxima"
attributes = { mode = "max" }

[[classes]]
name = "minima"
attributes = { mode = "min", axis = -2 }
shapes = { x = "c h", y = "c oh" }

[accuracy]
bound = "E5"

[[workloads]]
name = "small"
shapes = { x = [2, 3, 8], w = [3, 2] }
attributes = { strides = [2] }
reason = "small"
flops = "2 * c*h"

[languages.c]
sources = ["c/a.c"]
classes = ["maxima"]
"""
)


def change(text: str, old: str, new: str) -> str:
    if not old:
        return text + new
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    return text.replace(old, new)


def problems(text: str) -> list[tuple[int, str]]:
    """The problems of a manifest as (line, message)."""
    with pytest.raises(ManifestError) as caught:
        load_manifest(text, "op.toml")
    found = []
    for problem in caught.value.problems:
        place, _, line = problem.where.rpartition(":")
        assert place == "op.toml", problem
        found.append((int(line), problem.message))
    return found


def test_the_manifest_that_the_cases_change_is_valid() -> None:
    assert check_manifest(load_manifest(RICH, "op.toml")) == []


WRONG = [
    # patterns
    ('shape = "c kh"', 'shape = "c KH"¶', "'c KH' is no shape pattern: cannot read 'KH'"),
    ('shape = "c kh"', 'shape = "c kh c"¶', "names the axis c twice"),
    ('shapes = { x = "c h"', '¶shapes = { z = "c h", x = "c h"', "there is no input or output 'z'"),
    ('shapes = { x = "c h", y', '¶shapes = { x = "c h)", y', "'c h)' is no shape pattern"),
    ('"batch... c h"', '"batch... c h a b d e f g"¶', "a pattern has at most 8 items"),
    ('"batch... c h"', '"batch... c h other... third..."¶', "a pattern has at most two groups"),
    # types
    ('I = ["int32", "int64"]', 'I = ["int32", "int64", "int32"]¶', "'int32' is there twice"),
    ('type = "I"', 'type = "U"¶', "'U' is neither a type variable of [types] nor an element type"),
    ('I = ["int32", "int64"]', 'I = ["int32",\n¶"int65"]', "unknown element type 'int65'; known: float32, "),
    ('shape = "batch... c oh"', 'shape = "batch... c oh"\n¶optional = true', "an output cannot be optional"),
    # names
    ("[outputs.y]", '¶[outputs.x]\ntype = "T"\nshape = "c"\n[outputs.y]', "'x' is the name of an input too"),
    ('name = "minima"', '¶name = "maxima"', "the class 'maxima' is there twice"),
    (
        "[languages.c]",
        '[[workloads]]\n¶name = "small"\nshapes = { x = [1, 1, 1] }\nreason = ""\n[languages.c]',
        "the workload 'small' is there twice",
    ),
    # axes
    ("[axes.kh]", "".join(f"[axes.a{n}]\n" for n in range(12)) + "[axes.kh]", "an operator has at most 16 axes"),
    ("[axes.batch]", "¶[axes.c]\nbroadcast = true\n[axes.batch]", "'c' is no group; only groups broadcast or have"),
    ("[axes.kh]", "¶[axes.kh]\nrank = 2", "'kh' is no group; only groups broadcast or have a rank"),
    ('"kernel_shape[0]"', '¶"kernel_shapes[0]"', "there is no attribute 'kernel_shapes[0]'; write its name"),
    ('"kernel_shape[0]"', '¶"kernel_shape[-1]"', "there is no attribute 'kernel_shape[-1]'"),
    ('"kernel_shape[0]"', '¶"kernel_shape"', "'kernel_shape' is not one integer"),
    ('"kernel_shape[0]"', '¶"axis[0]"', "'axis[0]' is not one integer"),
    ('"kernel_shape[0]"', '¶"alpha"', "'alpha' is not one integer"),
    ('"kernel_shape[0]"', '¶"mode"', "'mode' is not one integer"),
    ('"kernel_shape[0]"', '¶"kernel_shape[1]"', "'kernel_shape[1]' is beyond the 1 values of the attribute"),
    ('over = "h"', '¶over = "z"', "there is no axis 'z'"),
    ('size = "kh"', '¶size = "z"', "there is no axis 'z'"),
    ('"batch... c oh"', '¶"batch... c oh z"', "nothing gives the extent of 'z': no input has it, nor does [axes]"),
    ('y = "c oh"', '¶y = "c z"', "nothing gives the extent of 'z'"),
    ("[axes.kh]", "¶[axes.z]\n[axes.kh]", "no shape and no window has the axis 'z'"),
    ("position = 0", "¶position = 1", "1 is beyond the values of the attribute 'strides'"),
    ("[attributes.mode]", '[attributes.pads]\ntype = "int"\ndefault = 0\n[attributes.mode]', "attribute 'pads'"),
    ('"batch... c h"', '"batch... oh c h"¶', "'oh' is an axis of window positions, which outputs have"),
    ("maximum = 9", "¶maximum = 0", "0 is below the minimum of 1"),
    ("minimum = 1\n", "minimum = 0\n", "strides of a window have a minimum of at least 1"),
    ("minimum = 1\n", "", "strides of a window have a minimum of at least 1"),
    ('y = "c oh"', 'y = "c... oh"', "'c' is one axis here and a group elsewhere"),
    # attributes
    ('length = 1\nfrom_axes', 'from_axes', "ints need a length"),
    ("default = [1]", "¶default = [1, 2]", "expected 1 integers, got [1, 2]"),
    ("default = [1]", "¶default = 1", "expected 1 integers, got 1"),
    ("default = [1]", "¶default = [0]", "0 is below the minimum of 1"),
    ("default = [1]", "¶default = [10]", "10 is above the maximum of 9"),
    ("default = -1", "¶default = 1.0", "expected one int, got 1.0"),
    ("default = -1", "¶default = [1]", "expected one int, got [1]"),
    ("default = 0.5", '¶default = "a"', "expected one float, got 'a'"),
    ('default = "max"', "¶default = 1", "expected one string, got 1"),
    ('allowed = ["max", "min"]', 'allowed = ["max", "min",\n¶1]', "expected one string, got 1"),
    ("maximum = 9", "maximum = 9\nallowed = [1,\n¶0.5]", "expected one int, got 0.5"),
    ("maximum = 9", "maximum = 9\nallowed = [1,\n¶10]", "10 is above the maximum of 9"),
    ("[attributes.to]", '¶[attributes.auto_pad]\ntype = "string"\n[attributes.to]', "a string needs a default"),
    ("default = 0.5", "", "a float needs a default, which evaluation takes"),
    ('default = "max"', '¶default = "mean"', "'mean' is not served; served: 'max', 'min'"),
    ('from_axes = ["kh"]', '¶from_axes = ["kz"]', "there is no axis 'kz'"),
    ('from_axes = ["kh"]', '¶from_axes = ["kh", "h"]', "names as many axes as the attribute has values"),
    ('type_of = "I"', 'type_of = "I"\n¶from_axes = ["c", "h"]', "names as many axes as the attribute has values"),
    ('locates = "c"', '¶locates = "z"', "there is no axis 'z'"),
    ('type_of = "I"', '¶type_of = "U"', "there is no type variable 'U'"),
    ('[attributes.mode]', '¶[attributes.text]\ntype = "string"\n[attributes.mode]', "let every class fix it"),
    ('attributes = { mode = "max" }', "", "a string cannot be a run-time attribute: let every class fix it"),
    ("[attributes.to]", '[attributes.other]\ntype = "int"\nlocates = "h"\n[attributes.to]', "only one attribute can"),
    # classes
    ('attributes = { mode = "max" }', '¶attributes = { mode = "max", modes = 1 }', "there is no attribute 'modes'"),
    ('{ mode = "min", axis = -2 }', '¶{ mode = "min", axis = "a" }', "expected one int, got 'a'"),
    ('{ mode = "min", axis = -2 }', '¶{ mode = "mean" }', "'mean' is not served"),
    # workloads
    ("w = [3, 2] }", "¶w = [3, 2], v = [1] }", "there is no input 'v'"),
    (
        "w = [3, 2] }",
        "¶w = [32768, 65536] }",
        "[32768, 65536] has 2147483648 elements, more than kernels can index",
    ),
    ("{ x = [2, 3, 8], w", "¶{ w", "the shape of 'x' is missing"),
    ("{ strides = [2] }", "¶{ stride = [2] }", "there is no attribute 'stride'"),
    ("{ strides = [2] }", "¶{ strides = [2, 2] }", "expected 1 integers, got [2, 2]"),
    ('"2 * c*h"', '¶"2 * c + h"', "'2 * c + h' is no product of numbers and axis names"),
    ('"2 * c*h"', '¶"2 *"', "'2 *' is no product of numbers and axis names"),
    ('"2 * c*h"', '¶"2 * c * z"', "there is no axis 'z'"),
    # accuracy
    ('[accuracy]\nbound = "E5"', '¶[accuracy]\nbound = "E2"', "a function is named for the bound E2, and for no other"),
    ('[accuracy]', '¶[accuracy]\nfunction = "exp"', "a function is named for the bound E2, and for no other"),
    ('bound = "E5"', 'bound = "E7"\n¶flushes_subnormals = true', "results of E7 are exact"),
    # languages
    ('classes = ["maxima"]', 'classes = ["maxima",\n¶"other"]', "there is no class 'other'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[case[1].strip("¶")[:30] for case in WRONG])
def test_a_problem_is_reported_with_its_line(old: str, new: str, message: str) -> None:
    text = change(RICH, old, new)
    found = problems(text.replace("¶", ""))
    right = [line for line, reported in found if message in reported]
    assert right, found
    if "¶" in text:
        assert right == [text[: text.index("¶")].count("\n") + 1]


RIGHT = [
    ('"batch... c h"', '"batch... c h a b d e f"'),
    ('"batch... c h"', '"batch... c h other..."'),
    ('type = "I"', 'type = "int8"'),
    ('"kernel_shape[0]"', '"axis"'),
    ('over = "h"', 'over = "c"'),
    ("default = 0.5", "default = 1"),
    ("default = [1]", "default = [9]"),
    ('type_of = "I"', 'type_of = "I"\nfrom_axes = ["c"]'),
    ('from_axes = ["kh"]', "optional = true"),
    ('locates = "c"', 'locates = "batch"'),
    (", w = [3, 2] }", " }"),
    ("[attributes.mode]", '[attributes.auto_pad]\ntype = "string"\ndefault = "NOTSET"\n[attributes.mode]'),
    ("[attributes.mode]", '[attributes.one]\ntype = "string"\nallowed = ["a"]\n[attributes.mode]'),
    ("[attributes.mode]", '[attributes.hint]\ntype = "string"\noptional = true\n[attributes.mode]'),
    ('bound = "E5"', 'bound = "E2"\nfunction = "exp"'),
    ('bound = "E5"', 'bound = "E5"\nflushes_subnormals = true'),
    ("default = 0.5", "optional = true"),
    ("default = 0.5", "allowed = [0.25]"),
    ('shapes = { x = "c h"', 'shapes = { w = "c kh", x = "c h"'),
    ('"2 * c*h"', '"7"'),
]


@pytest.mark.parametrize(("old", "new"), RIGHT, ids=[case[1][:30] for case in RIGHT])
def test_what_is_right_is_not_reported(old: str, new: str) -> None:
    assert check_manifest(load_manifest(change(RICH, old, new), "op.toml")) == []


def test_all_problems_of_all_checks_are_reported_at_once() -> None:
    # One of each check, on lines of their own.
    chosen = [
        ('shape = "c kh"', 'shape = "c KH"¶'),
        ('type = "I"', 'type = "U"¶'),
        ('name = "minima"', '¶name = "maxima"'),
        ('"kernel_shape[0]"', '¶"kernel_shape[1]"'),
        ("default = [1]", "¶default = [1, 2]"),
        ('attributes = { mode = "max" }', '¶attributes = { mode = "mean" }'),
        ("{ strides = [2] }", "¶{ strides = 2 }"),
        ("[accuracy]", '¶[accuracy]\nfunction = "exp"'),
        ('classes = ["maxima"]', '¶classes = ["other"]'),
    ]
    text = RICH
    for old, new in chosen:
        text = change(text, old, new)
    marks = {number for number, line in enumerate(text.splitlines(), start=1) if "¶" in line}
    assert len(marks) == len(chosen)
    assert {line for line, _ in problems(text.replace("¶", ""))} >= marks


def test_an_operator_has_at_most_eight_inputs_and_outputs() -> None:
    # The model admits six inputs and two outputs, so only a caller of `check_manifest` can get here.
    manifest = load_manifest(RICH, "op.toml")
    tensor = manifest.inputs["w"]
    large = manifest.model_copy(update={"inputs": {"x": manifest.inputs["x"], **{f"w{n}": tensor for n in range(7)}}})
    messages = [message for path, message in check_manifest(large) if path == ("inputs",)]
    assert messages == ["an operator has at most 8 inputs and outputs"]


INTS = Attribute(type="ints", length=2, minimum=0, maximum=9)


@pytest.mark.parametrize(
    ("attribute", "value", "problem"),
    [
        (INTS, [0, 9], ""),
        (INTS, [1], "expected 2 integers, got [1]"),
        (INTS, [1, -1], "-1 is below the minimum of 0"),
        (INTS, [1, 10], "10 is above the maximum of 9"),
        (INTS, 3, "expected 2 integers, got 3"),
        (INTS, "12", "expected 2 integers, got '12'"),
        (Attribute(type="int"), 3, ""),
        (Attribute(type="int"), True, "expected one int, got True"),
        (Attribute(type="int"), 3.0, "expected one int, got 3.0"),
        (Attribute(type="int", allowed=[1, 2]), 3, "3 is not served; served: 1, 2"),
        (Attribute(type="int", allowed=[1, 2]), 2, ""),
        (Attribute(type="int", minimum=3), 2, "2 is below the minimum of 3"),
        (Attribute(type="float"), 0.5, ""),
        (Attribute(type="float"), 1, ""),
        (Attribute(type="float"), "1", "expected one float, got '1'"),
        (Attribute(type="float"), [1.0], "expected one float, got [1.0]"),
        (Attribute(type="float", allowed=[0.5]), 0.25, "0.25 is not served; served: 0.5"),
        (Attribute(type="float", minimum=0), -1, "-1 is below the minimum of 0"),
        (Attribute(type="string"), "a", ""),
        (Attribute(type="string"), 1, "expected one string, got 1"),
        (Attribute(type="string", allowed=["a", "b"]), "c", "'c' is not served; served: 'a', 'b'"),
    ],
)
def test_a_value_fits_its_attribute_or_it_is_said_why_not(
    attribute: Attribute, value: AttributeValue, problem: str
) -> None:
    assert value_problem(attribute, value) == problem


@pytest.mark.parametrize("value", [[1.5, 2], ["a", "b"], [None, 1], [True, False]], ids=str)
def test_the_items_of_a_list_are_integers(value: list[int]) -> None:
    # Callers pass what a node or a user gives: `ints` promises integers, one by one.
    assert "expected 2 integers" in value_problem(Attribute(type="ints", length=2, minimum=0), value)


def test_the_items_of_a_list_are_ones_that_the_package_serves() -> None:
    # `allowed`: "The values that this package serves."
    assert value_problem(Attribute(type="ints", length=2, allowed=[1, 2]), [1, 3])


@pytest.mark.parametrize("value", [-0.5, -1.0, 10.5, float("inf"), float("-inf"), float("nan")])
def test_the_limits_of_an_attribute_hold_for_floats_too(value: float) -> None:
    assert value_problem(Attribute(type="float", minimum=0, maximum=10), value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("position = 0", "position = 7", id="a window position beyond the attribute lists"),
        pytest.param('"2 * c*h"', '"2 * z"', id="flops of an axis that is not there"),
        pytest.param('bound = "E5"', 'bound = "E2"\nfunction = "gamma"', id="a function whose bound no table has"),
        pytest.param("default = 0.5", "", id="a float without a default, which no data set can draw"),
    ],
)
def test_a_manifest_that_cannot_be_evaluated_is_refused_when_it_is_loaded(old: str, new: str) -> None:
    # "Names that refer to each other" are what these checks are for; each of these fails later, far from its cause.
    with pytest.raises(ManifestError):
        load_manifest(change(RICH, old, new), "op.toml")


def test_a_window_whose_size_nothing_gives_is_refused_when_it_is_loaded() -> None:
    # The window size `kz` is in [axes] only: no input and no attribute gives its extent, as the output's axis needs.
    text = change(RICH, "[axes.kh]", "[axes.kz]\n[axes.kh]")
    with pytest.raises(ManifestError):
        load_manifest(change(text, 'size = "kh"', 'size = "kz"'), "op.toml")
