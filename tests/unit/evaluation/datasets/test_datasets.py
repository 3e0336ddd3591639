"""The data sets of accuracy.md: what has to be in each, looked for in the cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from hfreg.arrays import Array
from hfreg.dtypes import DTYPES
from hfreg.evaluation.cases import Case
from hfreg.evaluation.datasets import distribution_cases, golden_cases, shape_cases, special_value_cases
from hfreg.evaluation.datasets.shapes import _LAYOUTS, GROUPS, SIZES
from hfreg.evaluation.datasets.special_values import _insert, special_values
from hfreg.ops.binding import bind
from hfreg.ops.manifest import Manifest
from hfreg.ops.package import OpPackage, load_package
from hfreg.ops.signature import Signature, Types, signatures
from unit import samples

Maker = Callable[[Manifest, Signature, Types, np.random.Generator], Iterator[Case]]
MAKERS: dict[str, Maker] = {"D1": distribution_cases, "D2": special_value_cases, "D5": shape_cases}
FLOATS = ["float32", "float16", "bfloat16"]


def make(name: str, body: str, dtype: str = "float32", *, class_index: int = 0, seed: int = 5) -> list[Case]:
    manifest = samples.manifest(body)
    signature = signatures(manifest)[class_index]
    return list(MAKERS[name](manifest, signature, {"T": DTYPES[dtype]}, np.random.default_rng(seed)))


def first(case: Case, position: int = 0) -> Array:
    array = case.inputs[position]
    assert array is not None
    return array


SCALAR = samples.UNARY.replace("[outputs.y]", '[inputs.scale]\ntype = "T"\nshape = ""\n\n[outputs.y]')
"""An operator with an input of rank 0, such as the scale of a quantization."""

BODIES = {name: getattr(samples, name) for name in ("UNARY", "BROADCAST", "MATMUL", "SOFTMAX", "CONV", "POOL")}
BODIES["SCALAR"] = SCALAR


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", MAKERS)
def test_every_case_fits_the_signature_and_has_the_types(name: str, body: str) -> None:
    manifest = samples.manifest(BODIES[body])
    for index, signature in enumerate(signatures(manifest)):
        cases = make(name, BODIES[body], class_index=index)
        assert cases
        for case in cases:
            assert case.data_set == name
            assert case.expected is None
            bind(signature, [None if array is None else array.shape for array in case.inputs], case.attributes)
            assert all(array is None or array.dtype == np.float32 for array in case.inputs)
            assert len(case.inputs) == len(signature.inputs)


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_seed_gives_the_same_cases_and_another_one_others(name: str) -> None:
    def content(seed: int) -> list[tuple[str, bytes]]:
        return [(case.name, first(case).tobytes()) for case in make(name, samples.SOFTMAX, seed=seed)]

    assert content(5) == content(5)
    assert content(5) != content(6)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", MAKERS)
def test_a_case_can_be_told_by_its_name(name: str, body: str) -> None:
    # A passport names the case that failed ("Data set and case"): two cases of one name cannot be told apart.
    names = [case.name for case in make(name, BODIES[body])]
    assert sorted(names) == sorted(set(names))


# D1


def test_there_are_two_cases_for_each_distribution() -> None:
    # accuracy.md, "Data sets", D1.
    names = [case.name for case in make("D1", samples.MATMUL)]
    listed = ["zero-mean", "positive", "mixed-magnitudes", "near-cancelling", "large-mean", "constant-rows"]
    listed += ["one-hot-rows", "ascending", "denormal-heavy"]
    assert sorted(names) == sorted(f"{name}-{variant}" for name in listed for variant in (0, 1))


# D2

# accuracy.md, "Data sets", D2: +-0, smallest subnormal, +-smallest normal, +-1, +-largest, +-inf, NaN.
BOTH_32 = (3.4028234663852886e38, -3.4028234663852886e38)
BOTH_B16 = (3.3895313892515355e38, -3.3895313892515355e38)
MINIMUM = {
    "float32": [0.0, -0.0, 2.0**-149, 2.0**-126, -(2.0**-126), 1.0, -1.0, *BOTH_32],
    "float16": [0.0, -0.0, 2.0**-24, 2.0**-14, -(2.0**-14), 1.0, -1.0, 65504.0, -65504.0],
    "bfloat16": [0.0, -0.0, 2.0**-133, 2.0**-126, -(2.0**-126), 1.0, -1.0, *BOTH_B16],
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_special_values_are_all_there_and_the_type_has_them(dtype: str) -> None:
    values = list(special_values(DTYPES[dtype]).values())
    expected = [*MINIMUM[dtype], math.inf, -math.inf, math.nan]
    assert [value.hex() for value in values] == [value.hex() for value in expected]
    with np.errstate(over="raise", under="raise"):
        narrow = np.array(values).astype(DTYPES[dtype].numpy)
    assert [float(value).hex() for value in narrow.astype(np.float64)] == [value.hex() for value in expected]


def test_a_limit_bounds_the_largest_values_and_no_others() -> None:
    # manifest.py, `limit`: "The largest finite magnitude of an input ... Infinities and NaN are not concerned."
    free, limited, wide = (list(special_values(DTYPES["float16"], limit).values()) for limit in (None, 1000.0, 1e30))
    changed = [(a, b) for a, b in zip(free, limited, strict=True) if a.hex() != b.hex()]
    assert changed == [(65504.0, 1000.0), (-65504.0, -1000.0)]
    assert [value.hex() for value in wide] == [value.hex() for value in free]
    body = samples.UNARY.replace("[inputs.x]", "[inputs.x]\nlimit = 1000.0")
    for case in make("D2", body):
        values = first(case)[np.isfinite(first(case))]
        assert np.abs(values).max(initial=0) <= 1000.0, case.name


def bits(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(array.shape).view({2: np.uint16, 4: np.uint32}[array.itemsize])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("body", ["UNARY", "MATMUL", "SOFTMAX"])
def test_every_operand_has_every_special_value_alone_and_among_others(body: str, dtype: str) -> None:
    cases = {case.name: case for case in make("D2", BODIES[body], dtype)}
    inputs = list(samples.manifest(BODIES[body]).inputs)
    assert len(cases) == len(inputs) * 12 * 2
    for position, name in enumerate(inputs):
        for value_name, value in special_values(DTYPES[dtype]).items():
            wanted = bits(np.array([value]).astype(DTYPES[dtype].numpy))[0]
            alone = first(cases[f"{name}-{value_name}-alone"], position)
            mixed = first(cases[f"{name}-{value_name}-mixed"], position)
            assert alone.size and (bits(alone) == wanted).all()
            assert (bits(mixed) == wanted).any()
            others = [
                array for place, array in enumerate(cases[f"{name}-{value_name}-mixed"].inputs) if place != position
            ]
            assert all(array is not None and np.isfinite(array.astype(np.float64)).all() for array in others)


@pytest.mark.parametrize("shape", [(6, 6), (40, 6), (3, 5, 4), (7, 1), (2, 9)])
def test_a_special_value_stands_at_one_place_of_every_row(shape: tuple[int, ...]) -> None:
    # special_values.py: "For each floating-point operand and each special value: alone, and at one place of every row."
    array = np.zeros(shape)
    _insert(array, np.nan, alone=False)
    per_row = np.isnan(array).reshape(-1, shape[-1]).sum(axis=1)
    assert per_row.tolist() == [1] * len(per_row)


def test_special_values_visit_every_place_of_the_last_axis_where_there_are_rows_enough() -> None:
    array = np.zeros((40, 6))
    _insert(array, np.nan, alone=False)
    assert np.isnan(array).any(axis=0).all()


def test_inputs_of_integers_and_of_positive_values_have_no_special_values() -> None:
    body = samples.UNARY.replace('T = ["float32", "float16"]', 'T = ["int32"]')
    assert make("D2", body, "int32") == []
    assert make("D2", samples.UNARY.replace("[inputs.x]", '[inputs.x]\nvalues = "positive"')) == []


# D5


def test_every_axis_takes_every_size() -> None:
    # accuracy.md, D5: rank 0, size 0, 1, primes, vector length +-1, tile +-1. Vectors here have 4 to 64 elements.
    assert set(SIZES) >= {0, 1, 2, 3, 5, 7} | {n + d for n in (8, 16, 32, 64) for d in (-1, 0, 1)}
    taken = {case.binding_n for case in _softmax_cases()}
    assert taken >= set(SIZES)


class _Softmax:
    """A case with the extents of its axes."""

    def __init__(self, case: Case) -> None:
        shape, axis = first(case).shape, case.attributes["axis"]
        assert isinstance(axis, int)
        self.case, self.binding_n = case, shape[axis]
        self.outer, self.inner = shape[: axis % len(shape)], shape[axis % len(shape) + 1 :]


def _softmax_cases() -> list[_Softmax]:
    return [_Softmax(case) for case in make("D5", samples.SOFTMAX, class_index=1)]


def test_every_group_takes_every_rank_and_an_extent_of_zero() -> None:
    cases = _softmax_cases()
    for found in ({case.outer for case in cases}, {case.inner for case in cases}):
        assert found >= set(GROUPS)
        assert {len(shape) for shape in found} >= {0, 1, 2, 3, 4, 5}
        assert any(0 in shape for shape in found)
    ranks = {first(case).ndim for case in make("D5", samples.UNARY)}
    assert ranks >= {0, 1, 2, 3, 4, 5}


def test_some_inputs_have_thousands_of_elements() -> None:
    for body in (samples.UNARY, samples.BROADCAST):
        assert sum(first(case).size > 4096 for case in make("D5", body)) >= 2


def test_windows_are_tried_with_the_largest_steps_and_much_padding() -> None:
    cases = {case.name: case for case in make("D5", samples.CONV)}
    for axis, place in (("h", 0), ("w", 1)):
        for name, value in (("strides", 65535), ("dilations", 65535), ("pads", 1000)):
            given = cases[f"{name}-{axis}-{value}"].attributes[name]
            assert isinstance(given, list) and given[place] == value


def test_inputs_have_strides_of_every_kind_and_the_values_of_their_names() -> None:
    def layouts(name: str) -> list[Array]:
        cases = make("D5", samples.UNARY)
        return [first(case) for case in cases if case.name.startswith(f"layout-{name}") and first(case).ndim]

    assert any(a.ndim > 1 and a.T.flags.c_contiguous and not a.flags.c_contiguous for a in layouts("transposed"))
    assert all(stride < 0 for a in layouts("reversed") for stride in a.strides)
    assert all(a.strides[-1] == 2 * a.itemsize for a in layouts("stepped"))
    padded = [a for a in layouts("padded-rows") if a.ndim > 1]
    assert padded and all(a.strides[-2] == (a.shape[-1] + 5) * a.itemsize for a in padded)
    assert all(a.strides[0] == 0 for a in layouts("repeated"))
    assert layouts("rotated")


def test_data_stands_at_several_alignments() -> None:
    assert {case.shift for case in make("D5", samples.UNARY)} == {0, 1, 3, 7}


def test_inputs_that_broadcast_leave_axes_out_and_stretch() -> None:
    cases = [case for case in make("D5", samples.BROADCAST) if case.name.startswith("broadcast-")]
    shapes = [[array.shape for array in case.inputs if array is not None] for case in cases]
    assert len(cases) == 24
    assert sum(len({len(shape) for shape in found}) > 1 for found in shapes) > 5
    assert sum(len(set(found)) > 1 for found in shapes) > 15


def test_optional_inputs_are_absent_in_some_cases() -> None:
    cases = make("D5", samples.CONV)
    absent = [case for case in cases if case.inputs[2] is None]
    assert len(absent) == 3 and all(case.inputs[1] is not None for case in absent)


@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (2, 3, 4), (0, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("name", _LAYOUTS)
def test_layouts_change_strides_and_not_values(name: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    changed = _LAYOUTS[name](array)
    assert (changed.shape, changed.dtype) == (array.shape, array.dtype)
    expected = np.stack([array[0]] * shape[0]) if name == "repeated" and shape[0] else array
    np.testing.assert_array_equal(changed, expected)


# D0


@pytest.fixture
def package(tmp_path: Path) -> OpPackage:
    from hfreg.ops.golden import write_golden

    body = samples.SOFTMAX.replace('T = ["float32"]', 'T = ["float32", "bfloat16"]').replace("E5", "E0")
    text = samples.manifest_text(body)
    reference = b"def sample(x, *, axis): ...\n"
    files = {**samples.package_files(text), "reference.py": reference, "semantics.py": reference}
    files = {name: content for name, content in files.items() if not name.startswith("golden/")}
    root = samples.write_files(tmp_path / "sample", files)
    manifest = samples.manifest(body)
    for name, dtype, axis in (
        ("last32", np.float32, 1),
        ("inner32", np.float32, 0),
        ("last16", ml_dtypes.bfloat16, -1),
    ):
        x = np.arange(6).reshape(2, 3).astype(dtype)
        write_golden(root / "golden" / name, manifest, [x], [x], attributes={"axis": axis}, source=f"{name} by hand")
    return load_package(root)


@pytest.mark.parametrize(
    ("class_index", "dtype", "expected"),
    [(0, "float32", ["last32"]), (1, "float32", ["inner32"]), (0, "bfloat16", ["last16"]), (1, "bfloat16", [])],
)
def test_a_kernel_gets_the_golden_cases_of_its_types_and_class(
    package: OpPackage, class_index: int, dtype: str, expected: list[str]
) -> None:
    cases = list(golden_cases(package, package.signatures[class_index], {"T": DTYPES[dtype]}))
    assert [case.name for case in cases] == expected
    for case in cases:
        assert case.data_set == "D0"
        assert case.label == f"D0/{case.name}"
        assert case.source == f"{case.name} by hand"
        assert case.expected is not None
        np.testing.assert_array_equal(case.expected[0].astype(np.float64), np.arange(6).reshape(2, 3))
