"""`hfreg.load`: verified kernels as callables on arrays of NumPy and of other libraries."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hfreg import HfregError, LoadedOperator, load
from hfreg.errors import RunError, UsageError, VerificationError
from integration.surface import host

pytestmark = pytest.mark.build

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def operator(ten: Path, home: dict[str, str]) -> Callable[[str], LoadedOperator]:
    loaded: dict[str, LoadedOperator] = {}

    def get(name: str) -> LoadedOperator:
        if name not in loaded:
            loaded[name] = load(name, registry=ten)
        return loaded[name]

    return get


Operators = Callable[[str], LoadedOperator]


def softmax64(x: Array, axis: int) -> Array:
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(axis=axis, keepdims=True))
    y: Array = e / e.sum(axis=axis, keepdims=True)
    return y


def test_the_example_of_the_readme(ten: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFREG_REGISTRY", str(ten))
    softmax = load("softmax@^1")
    x = np.random.default_rng(3).standard_normal((4, 33)).astype(np.float32)
    y = softmax(x, axis=-1)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32 and y.shape == x.shape
    assert np.abs(y - softmax64(x, -1)).max() < 1e-6
    assert softmax.reference == "softmax@1.0.0"
    assert softmax.target == host()


@pytest.mark.parametrize("reference", ["softmax", "softmax@1.0.0", "softmax@^1", "softmax@~1.0", "softmax@^1.0.0"])
def test_references(reference: str, ten: Path) -> None:
    assert load(reference, registry=ten).reference == "softmax@1.0.0"


@pytest.mark.parametrize("reference", ["softmax@^2", "softmax@1.0.1", "nothing", "softmax@", "soft max", "../softmax"])
def test_references_to_nothing(reference: str, ten: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(reference, registry=ten)
    assert caught.value.hint


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_attributes(axis: int, operator: Operators) -> None:
    x = np.random.default_rng(4).standard_normal((5, 7, 9)).astype(np.float32)
    assert np.abs(operator("softmax")(x, axis=axis) - softmax64(x, axis)).max() < 1e-6


@pytest.mark.parametrize("language", ["halide", "c"])
def test_a_kernel_language_by_name(language: str, ten: Path) -> None:
    x = np.random.default_rng(5).standard_normal((3, 100)).astype(np.float32)
    assert np.abs(load("softmax", registry=ten, language=language)(x) - softmax64(x, -1)).max() < 1e-6


def test_a_class_that_a_language_does_not_have(ten: Path) -> None:
    with pytest.raises(RunError, match=r"softmax@1.0.0: has no verified kernel for float32, class inner, on .*, in c"):
        load("softmax", registry=ten, language="c")(np.zeros((2, 3), np.float32), axis=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_types(dtype: Any, operator: Operators) -> None:
    x = np.array([-1.5, 0.0, 2.0, np.nan, np.inf]).astype(dtype)
    y = operator("relu")(x)
    assert y.dtype == x.dtype
    assert np.array_equal(y, np.array([0, 0, 2, np.nan, np.inf]).astype(dtype), equal_nan=True)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
    "stepped": lambda a: a[::2, 1::3],
    "one column": lambda a: a[:, 3:4],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
    "fortran": np.asfortranarray,
    "offset": lambda a: a[1:, 1:],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["relu", "softmax", "add", "mat_mul", "layer_normalization"])
def test_layouts_give_the_same_bits(layout: str, name: str, operator: Operators) -> None:
    rng = np.random.default_rng(6)
    x = LAYOUTS[layout](rng.standard_normal((12, 18)).astype(np.float32))
    rows, columns = x.shape
    others = {
        "add": [rng.standard_normal(columns).astype(np.float32)],
        "mat_mul": [rng.standard_normal((5, columns)).astype(np.float32).T],
        "layer_normalization": [rng.standard_normal(2 * columns).astype(np.float32)[::2]],
    }.get(name, [])
    assert not (layout == "stepped" and x.flags.c_contiguous)
    expected = operator(name)(np.ascontiguousarray(x), *(np.ascontiguousarray(other) for other in others))
    assert np.array_equal(operator(name)(x, *others), expected)
    assert rows


def test_inputs_stay_as_they_are(operator: Operators) -> None:
    x = np.random.default_rng(7).standard_normal((6, 8)).astype(np.float32)
    x.flags.writeable = False
    before = x.copy()
    operator("softmax")(x, axis=0)
    assert np.array_equal(x, before)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (2, 0, 5)])
def test_size_0(shape: tuple[int, ...], operator: Operators) -> None:
    x = np.zeros(shape, np.float32)
    assert operator("relu")(x).shape == shape
    assert operator("softmax")(x).shape == shape
    assert operator("add")(x, np.float32(1)).shape == shape


def test_a_sum_over_nothing_is_0(operator: Operators) -> None:
    y = operator("mat_mul")(np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32))
    assert np.array_equal(y, np.zeros((3, 4), np.float32))


def test_0_d(operator: Operators) -> None:
    y = operator("relu")(np.float32(-2.0))
    assert y.shape == () and y == 0
    assert operator("add")(np.array(1.5, np.float32), np.array(2.0, np.float32)) == 3.5


def test_misaligned_and_strange_memory(operator: Operators) -> None:
    raw = np.zeros(4 * 10 + 1, np.uint8)
    view = raw[1:].view(np.float32)
    view[...] = np.arange(10) - 4
    assert np.array_equal(operator("relu")(view), np.maximum(view, 0))
    record = np.zeros(5, np.dtype([("a", np.uint8), ("b", np.float32)]))
    record["b"] = [-1, 2, -3, 4, 5]
    assert np.array_equal(operator("relu")(record["b"]), [0, 2, 0, 4, 5])


def test_eight_threads_get_the_same_results(operator: Operators) -> None:
    rng = np.random.default_rng(8)
    softmax, mat_mul = operator("softmax"), operator("mat_mul")
    inputs = [rng.standard_normal((50 + i, 300)).astype(np.float32) for i in range(16)]
    weights = rng.standard_normal((300, 120)).astype(np.float32)
    alone = [(softmax(x), mat_mul(x, weights)) for x in inputs]
    barrier = threading.Barrier(8)

    def work(start: int) -> bool:
        barrier.wait()
        return all(
            np.array_equal(softmax(inputs[i % 16]), alone[i % 16][0])
            and np.array_equal(mat_mul(inputs[i % 16], weights), alone[i % 16][1])
            for i in range(start, start + 40)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_threads_that_load_for_the_first_time(ten: Path) -> None:
    x = np.arange(100, dtype=np.float32).reshape(10, 10)
    softmax = load("softmax", registry=ten)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: softmax(x), range(16)))
    assert all(np.array_equal(result, results[0]) for result in results)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_no_bit(threads: int, ten: Path) -> None:
    x = np.random.default_rng(9).standard_normal((257, 513)).astype(np.float32)
    assert np.array_equal(
        load("softmax", registry=ten, threads=threads)(x), load("softmax", registry=ten, threads=1)(x)
    )


F32 = np.float32


def zeros(*shape: int) -> Array:
    return np.zeros(shape, F32)


BAD_CALLS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], list[str]]] = {
    "no input": ("softmax", (), {}, ["softmax@1.0.0: x", "missing"]),
    "too many inputs": ("relu", (zeros(2), zeros(2)), {}, ["relu@1.0.0", "takes 1 inputs (x), got 2"]),
    "a list": ("relu", ([1.0, 2.0],), {}, ["relu@1.0.0: x", "is a list", "expected a NumPy array", "numpy.asarray"]),
    "a string": ("relu", ("abc",), {}, ["relu@1.0.0: x", "is a str"]),
    "float64": ("relu", (np.zeros(2),), {}, ["relu@1.0.0: x", "float64", "expected float32 or float16 or bfloat16"]),
    "complex": ("relu", (np.zeros(2, complex),), {}, ["relu@1.0.0: x", "complex128"]),
    "big endian": ("relu", (np.zeros(2, ">f4"),), {}, ["relu@1.0.0: x", "byte order"]),
    "types": ("add", (zeros(2), np.zeros(2, np.float16)), {}, ["add@1.0.0: b", "is float16, expected float32 as a is"]),
    "shapes": ("add", (zeros(2, 3), zeros(2, 4)), {}, ["add", "b has shape [2, 4]", "in a"]),
    "inner extents": ("mat_mul", (zeros(2, 3), zeros(4, 5)), {}, ["mat_mul", "b has shape [4, 5]", "k is 3 in a"]),
    "rank": ("conv", (zeros(1, 2, 3), zeros(1, 2, 1, 1)), {}, ["conv", "x has shape [1, 2, 3]"]),
    "axis": ("softmax", (zeros(2, 3),), {"axis": 2}, ["softmax", "axis is 2, expected -2 to 1", "2 axes"]),
    "axis of a scalar": ("softmax", (F32(1),), {}, ["softmax", "x has shape []"]),
    "type of an attribute": ("softmax", (zeros(3),), {"axis": 1.5}, ["softmax", "axis", "1.5"]),
    "unknown attribute": ("softmax", (zeros(3),), {"axes": 1}, ["softmax", "no attribute 'axes'", "axis"]),
    "value of an attribute": ("gelu", (zeros(3),), {"approximate": "no"}, ["gelu", "approximate", "'no'", "tanh"]),
    "no attribute": ("max_pool", (zeros(1, 1, 3, 3),), {}, ["max_pool", "needs the attribute 'kernel_shape'"]),
    "window": ("max_pool", (zeros(1, 1, 3, 3),), {"kernel_shape": [5, 5]}, ["max_pool", "window", "5", "3"]),
    "group": ("conv", (zeros(1, 3, 4, 4), zeros(2, 1, 1, 1)), {"group": 2}, ["conv", "x has shape [1, 3, 4, 4]"]),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_errors_name_operator_argument_and_what_was_expected(case: str, operator: Operators) -> None:
    name, inputs, attributes, expected = BAD_CALLS[case]
    with pytest.raises(HfregError) as caught:
        operator(name)(*inputs, **attributes)
    for part in expected:
        assert part in str(caught.value), str(caught.value)


def test_a_target_that_is_not_there(ten: Path) -> None:
    with pytest.raises(UsageError, match="unknown target 'abacus'"):
        load("relu", registry=ten, target="abacus")
    with pytest.raises(RunError, match="aether is planned"):
        load("relu", registry=ten, target="aether")


def test_a_stranger_does_not_load(ten: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(VerificationError, match="is not trusted here"):
        load("relu", registry=ten)


class Foreign:
    """A tensor of a library that is no other: DLPack by way of NumPy."""

    def __init__(self, array: Array, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


def test_dlpack_without_a_library(operator: Operators) -> None:
    x = np.array([-1.0, 2.0], F32)
    assert np.array_equal(np.asarray(operator("relu")(Foreign(x))), [0, 2])


def test_dlpack_on_another_device(operator: Operators) -> None:
    with pytest.raises(RunError, match=r"relu@1.0.0: x: is on DLPack device \(2, 0\), expected CPU memory"):
        operator("relu")(Foreign(np.zeros(2, F32), (2, 0)))


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="needs PyTorch, which hfreg does not install")


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_torch_tensors(kind: str, operator: Operators, torch: Any) -> None:
    x = torch.randn(6, 9).to(getattr(torch, kind))
    y = operator("relu")(x)
    assert isinstance(y, torch.Tensor) and y.dtype == x.dtype
    assert torch.equal(y, torch.relu(x))
    assert torch.equal(operator("relu")(x.T), torch.relu(x.T))
    assert torch.equal(operator("relu")(x[::2, 1:]), torch.relu(x[::2, 1:]))


@pytest.mark.torch
def test_a_torch_result_owns_its_memory(operator: Operators, torch: Any) -> None:
    results = [operator("relu")(torch.full((1000,), float(i))) for i in range(50)]
    for i, result in enumerate(results):
        assert result.sum().item() == 1000 * i
        result.add_(1)


@pytest.mark.torch
def test_torch_tensors_that_need_gradients(operator: Operators, torch: Any) -> None:
    with pytest.raises(RunError, match=r"relu@1.0.0: x: does not give its memory"):
        operator("relu")(torch.zeros(3, requires_grad=True))
