"""The C ABI of kernels: a bad call gets the same clear message from a kernel as from hfreg's own checks, and strides,
gaps, offsets and absent inputs change no bit of a result."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfreg.dtypes import DTYPES
from hfreg.errors import RunError
from hfreg.kernels import abi
from hfreg.kernels.build import build_runtime
from hfreg.kernels.host import BoundCall, HostKernel
from hfreg.kernels.targets import host_targets
from hfreg.ops.binding import ShapeError, bind
from hfreg.ops.signature import Signature, complete_attributes, signatures
from hfreg.registry.registry import OpVersion, Registry
from hfreg.versions import Reference
from integration.surface import host

pytestmark = pytest.mark.build

Array = np.ndarray[Any, Any]
FLOAT32 = DTYPES["float32"]


class Kernel:
    """A published kernel, called as a compiler would call it: with DLTensors and numbers."""

    def __init__(self, version: OpVersion, class_name: str, types: str, runtime: abi.Runtime) -> None:
        slug = f"{version.config.name}.{types}.{class_name}.{host()}.halide"
        self.manifest = version.op_manifest
        self.signature: Signature = next(s for s in signatures(self.manifest) if s.class_name == class_name)
        self._kernel = HostKernel(version.layer(slug), slug, runtime)
        self._types = {"T": FLOAT32, "T2": DTYPES["uint8"]}

    def numbers(self, **given: Any) -> list[int | float]:
        attributes = complete_attributes(self.manifest, given)
        return [number.of(attributes) for number in self.signature.runtime_attributes]

    def call(self, tensors: list[abi.DLTensor | None], numbers: list[int | float]) -> None:
        call: BoundCall = self._kernel.bind(tensors, numbers)
        call()

    def complaint(self, tensors: list[abi.DLTensor | None], numbers: list[int | float]) -> str:
        with pytest.raises(RunError) as caught:
            self.call(tensors, numbers)
        return caught.value.message

    def dtype(self, place: int) -> Any:
        return self.signature.tensors[place].dtype(self._types)

    def tensors(self, shapes: list[tuple[int, ...] | None]) -> list[abi.DLTensor | None]:
        """Zeros of these shapes, inputs first."""
        return [
            None if shape is None else tensor(np.zeros(shape, self.dtype(place).numpy))
            for place, shape in enumerate(shapes)
        ]


def tensor(array: Array) -> abi.DLTensor:
    """A DLTensor that keeps its array."""
    kind = DTYPES[array.dtype.name]
    strides = [stride // array.itemsize for stride in array.strides]
    made = abi.tensor(array.ctypes.data, kind.dlpack, kind.bits, array.shape, strides)
    made.array = array
    return made


@pytest.fixture(scope="module")
def kernel(ten: Path, home: dict[str, str]) -> Callable[..., Kernel]:
    registry = Registry.open(ten)

    def get(name: str, class_name: str, types: str = "float32") -> Kernel:
        return Kernel(registry.resolve(Reference.parse(name)), class_name, types, runtime)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HFREG_CACHE", home["HFREG_CACHE"])
        runtime = abi.Runtime(abi.load_library(build_runtime(host_targets()[0]), "runtime"), 2)
    return get


Shapes = list[tuple[int, ...] | None]
BAD_SHAPES: dict[str, tuple[str, str, Shapes, dict[str, Any], str]] = {
    "extents": ("mat_mul", "batched", [(2, 3), (4, 5), (2, 5)], {},
                "b has shape [4, 5], expected [batch... k n?]: k is 3 in a"),
    "batches": (
        "mat_mul", "batched", [(7, 2, 3), (2, 3, 4), (7, 2, 4)], {},
        "b has shape [2, 3, 4], expected [batch... k n?]: batch is [7] in a",
    ),
    "a scalar": ("mat_mul", "batched", [(), (3, 4), (4,)], {}, "a has shape [], expected [batch... m? k]"),
    "broadcasting": ("add", "general", [(2, 3), (2, 4), (2, 4)], {},
                     "b has shape [2, 4], expected [i...]: i is [2, 3] in a"),
    "longer": ("add", "general", [(3,), (5, 4), (5, 4)], {}, "b has shape [5, 4], expected [i...]: i is [3] in a"),
    "the rank": ("conv", "general", [(1, 2, 3), (1, 2, 1, 1), None, (1,)], {"kernel_shape": [1, 1]},
                 "x has shape [1, 2, 3], expected [n (g c) h w]"),
    "channels": ("conv", "general", [(1, 3, 4, 4), (2, 1, 1, 1), None, (1,)], {"group": 2, "kernel_shape": [1, 1]},
                 "x has shape [1, 3, 4, 4], expected [n (g c) h w]: g is 2 in attribute group"),
    "weights": ("conv", "general", [(1, 4, 4, 4), (2, 3, 1, 1), None, (1,)], {"kernel_shape": [1, 1]},
                "w has shape [2, 3, 1, 1], expected [(g o) {c kh kw}]: c is 4 in x"),
    "a kernel shape": ("conv", "general", [(1, 4, 4, 4), (2, 4, 1, 2), None, (1,)], {"kernel_shape": [1, 1]},
                       "w has shape [2, 4, 1, 2], expected [(g o) {c kh kw}]: kw is 1 in attribute kernel_shape"),
    "a bias": ("conv", "general", [(1, 4, 4, 4), (2, 4, 1, 1), (3,), (1,)], {"kernel_shape": [1, 1]},
               "b has shape [3], expected [(g o)]: o is 2 in w"),
    "the window": ("max_pool", "general", [(1, 1, 3, 4), (1,)], {"kernel_shape": [2, 5], "pads": [0, 0, 0, 0]},
                   "the window spans 5 along w, more than the 4 of the padded input"),
    "a dilated window": ("max_pool", "general", [(1, 1, 5, 5), (1,)], {"kernel_shape": [3, 3], "dilations": [3, 1]},
                         "the window spans 7 along h, more than the 5 of the padded input"),
    "no rows": ("max_pool", "general", [(1, 1, 0, 4), (1,)], {"kernel_shape": [1, 1], "pads": [1, 0, 1, 0]},
                "h is 0, expected at least 1"),
    "an axis beyond": ("softmax", "last", [(2, 3), (2, 3)], {"axis": 2}, "axis is 2, expected -2 to 1: x has 2 axes"),
    "an axis below": ("softmax", "last", [(2, 3), (2, 3)], {"axis": -3}, "axis is -3, expected -2 to 1: x has 2 axes"),
    "another class": ("softmax", "last", [(2, 3), (2, 3)], {"axis": 0}, "axis is 0, which the class last has not"),
    "no axis": ("softmax", "last", [(), ()], {}, "x has shape [], expected [outer... n]"),
    "scale": ("layer_normalization", "general", [(2, 6), (5,), None, (2, 6)], {},
              "scale has shape [5], expected [n...]: n is [6] in x"),
    "channels of a scale": ("quantize_linear", "per_axis", [(2, 6), (5,), None, (2, 6)], {},
                            "y_scale has shape [5], expected [c]: c is 6 in x"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_SHAPES)
def test_kernels_and_python_refuse_bad_shapes_with_the_same_words(case: str, kernel: Callable[..., Kernel]) -> None:
    name, class_name, shapes, attributes, message = BAD_SHAPES[case]
    bad = kernel(name, class_name, "float32-uint8" if name == "quantize_linear" else "float32")
    complete = complete_attributes(bad.manifest, attributes)
    with pytest.raises(ShapeError) as caught:
        bind(bad.signature, shapes[: len(bad.signature.inputs)], complete)
    assert str(caught.value) == f"{name}: {message}"
    assert bad.complaint(bad.tensors(shapes), bad.numbers(**attributes)) == f"{name}: {message}"


def test_an_output_of_another_shape(kernel: Callable[..., Kernel]) -> None:
    add = kernel("add", "general")
    said = add.complaint(add.tensors([(2, 3), (3,), (3, 3)]), [])
    assert said == "add: y has shape [3, 3], expected [i...]: i is [2, 3] in a"
    said = add.complaint(add.tensors([(2, 3), (3,), (6,)]), [])
    assert said == "add: y has shape [6], expected [i...]: i is [2, 3] in a"


def changed(**fields: Any) -> Callable[[abi.DLTensor], abi.DLTensor | None]:
    def change(good: abi.DLTensor) -> abi.DLTensor:
        for name, value in fields.items():
            setattr(good, name, value)
        return good

    return change


def with_extents(*extents: int) -> Callable[[abi.DLTensor], abi.DLTensor | None]:
    def change(good: abi.DLTensor) -> abi.DLTensor:
        made = abi.tensor(good.data, good.dtype.code, good.dtype.bits, extents, None)
        made.before = good
        return made

    return change


SPANS = "spans 2^31 elements or more, which this kernel does not support"
BAD_TENSORS: dict[str, tuple[Callable[[abi.DLTensor], abi.DLTensor | None], str]] = {
    "missing": (lambda _: None, "is missing"),
    "on a GPU": (changed(device=abi.DLDevice(2, 0)), "is not in CPU memory"),
    "float64": (changed(dtype=abi.DLDataType(2, 64, 1)), "has another element type than this kernel"),
    "int32": (changed(dtype=abi.DLDataType(0, 32, 1)), "has another element type than this kernel"),
    "vectors": (changed(dtype=abi.DLDataType(2, 32, 4)), "has another element type than this kernel"),
    "17 axes": (with_extents(*[1] * 17), "has more than 16 axes"),
    "-1 axes": (changed(ndim=-1), "has more than 16 axes"),
    "negative": (with_extents(-3), "has a negative extent"),
    "huge": (with_extents(1 << 31), "has 2^31 elements or more, which this kernel does not support"),
    "huge in all": (with_extents(1 << 16, 1 << 16), "has 2^31 elements or more, which this kernel does not support"),
    "overflowing": (with_extents(*[1 << 30] * 6), "has 2^31 elements or more, which this kernel does not support"),
    "far apart": (changed(strides=(ctypes.c_int64 * 1)(1 << 30)), SPANS),
    "far back": (changed(strides=(ctypes.c_int64 * 1)(-(1 << 62))), SPANS),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TENSORS)
@pytest.mark.parametrize("place", [0, 1])
def test_tensors_that_are_no_tensors(case: str, place: int, kernel: Callable[..., Kernel]) -> None:
    relu = kernel("relu", "general")
    change, message = BAD_TENSORS[case]
    tensors = relu.tensors([(3,), (3,)])
    good = tensors[place]
    assert good is not None
    tensors[place] = change(good)
    assert relu.complaint(tensors, []) == f"relu: {'xy'[place]} {message}"


def test_counts(kernel: Callable[..., Kernel]) -> None:
    softmax = kernel("softmax", "last")
    tensors = softmax.tensors([(3,), (3,)])
    assert softmax.complaint(tensors[:1], [-1]) == "softmax: called with 1 tensors, expected 2"
    assert softmax.complaint([*tensors, tensors[0]], [-1]) == "softmax: called with 3 tensors, expected 2"
    assert softmax.complaint(tensors, []) == "softmax: called with 0 attributes, expected 1"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("strides", [0, 1], "strides[0] is 0, expected at least 1"),
        ("dilations", [1, -1], "dilations[1] is -1, expected at least 1"),
        ("pads", [0, 0, -2, 0], "pads[2] is -2, expected at least 0"),
        ("ceil_mode", 2, "ceil_mode is 2, expected at most 1"),
        ("strides", [1, 1 << 40], "strides[1] is 1099511627776, expected at most 2147483647"),
    ],
)
def test_attributes_out_of_range(name: str, value: Any, message: str, kernel: Callable[..., Kernel]) -> None:
    pool = kernel("max_pool", "general")
    attributes = complete_attributes(pool.manifest, {"kernel_shape": [1, 1]}) | {name: value}
    numbers = [number.of(attributes) for number in pool.signature.runtime_attributes]
    assert pool.complaint(pool.tensors([(1, 1, 3, 3), (1, 1, 3, 3)]), numbers) == f"max_pool: {message}"


def views(array: Array, rng: np.random.Generator) -> Iterator[Array]:
    """The same values in other places of memory."""
    yield array
    yield np.asfortranarray(array)
    flipped = (slice(None, None, -1),) * array.ndim
    yield array[flipped].copy()[flipped]
    for axis in range(array.ndim):
        yield np.flip(np.flip(array, axis).copy(), axis)
    for _ in range(4):
        gaps = [int(n) for n in rng.integers(1, 4, array.ndim)]
        offsets = [int(n) for n in rng.integers(0, 3, array.ndim)]
        larger = np.full([o + g * n + 2 for o, g, n in zip(offsets, gaps, array.shape, strict=True)], 7, array.dtype)
        order = rng.permutation(array.ndim)
        larger = larger.transpose(order).copy().transpose(np.argsort(order))
        places = zip(offsets, gaps, array.shape, strict=True)
        view = larger[tuple(slice(o, o + g * n, g) for o, g, n in places)]
        view[...] = array
        yield view


CALLS: dict[str, tuple[str, Shapes, dict[str, Any]]] = {
    "relu": ("general", [(3, 4, 5), (3, 4, 5)], {}),
    "add": ("general", [(2, 3, 4, 5), (3, 1, 5), (2, 3, 4, 5)], {}),
    "softmax": ("inner", [(4, 6, 5), (4, 6, 5)], {"axis": 1}),
    "mat_mul": ("batched", [(3, 4, 5), (3, 5, 6), (3, 4, 6)], {}),
    "layer_normalization": ("general", [(3, 4, 6), (4, 6), (4, 6), (3, 4, 6)], {"axis": 1}),
    "conv": ("general", [(2, 4, 6, 5), (6, 2, 3, 2), (6,), (2, 6, 4, 4)], {"group": 2, "kernel_shape": [3, 2]}),
    "max_pool": ("general", [(2, 3, 6, 5), (2, 3, 4, 4)], {"kernel_shape": [3, 2]}),
}


@pytest.mark.parametrize("name", CALLS)
def test_memory_layouts_change_no_bit(name: str, kernel: Callable[..., Kernel]) -> None:
    class_name, shapes, attributes = CALLS[name]
    under_test, rng = kernel(name, class_name), np.random.default_rng(10)
    inputs = [np.asarray(rng.standard_normal(shape or ()), np.float32) for shape in shapes[:-1]]
    numbers = under_test.numbers(**attributes)

    def run(arrays: list[Array]) -> Array:
        y = np.full(shapes[-1] or (), np.nan, np.float32)
        under_test.call([*map(tensor, arrays), tensor(y)], numbers)
        return y

    expected = run(inputs)
    assert not np.isnan(expected).any()
    for place, array in enumerate(inputs):
        for view in views(array, rng):
            assert np.array_equal(run([*inputs[:place], view, *inputs[place + 1 :]]), expected), view.strides


def test_no_strides_mean_compact_and_a_byte_offset_counts(kernel: Callable[..., Kernel]) -> None:
    relu = kernel("relu", "general")
    raw, y = np.arange(-4, 8, dtype=np.float32), np.zeros((2, 3), np.float32)
    x = abi.tensor(raw.ctypes.data, 2, 32, (2, 3), None)
    x.byte_offset = 8
    relu.call([x, tensor(y)], [])
    assert np.array_equal(y, np.maximum(raw[2:8].reshape(2, 3), 0))


def test_absent_optional_inputs(kernel: Callable[..., Kernel]) -> None:
    conv = kernel("conv", "general")
    rng = np.random.default_rng(11)
    x, w = (np.asarray(rng.standard_normal(shape), np.float32) for shape in ((1, 2, 4, 4), (3, 2, 2, 2)))
    results = []
    for bias in (None, tensor(np.zeros(3, np.float32))):
        y = np.zeros((1, 3, 3, 3), np.float32)
        conv.call([tensor(x), tensor(w), bias, tensor(y)], conv.numbers(kernel_shape=[2, 2]))
        results.append(y)
    assert np.array_equal(results[0], results[1])
