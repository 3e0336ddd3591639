"""The front end that is linked into every kernel and `hfreg.ops.binding` accept and refuse the same calls."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfreg.dtypes import DTYPES
from hfreg.errors import RunError
from hfreg.evaluation.sampling import sample_call
from hfreg.kernels import abi
from hfreg.kernels.artifact import type_tuples
from hfreg.kernels.build import ELF_EXPORTS, build_runtime, runtime_object
from hfreg.kernels.host import BoundCall, describe
from hfreg.kernels.signature_table import format_signature
from hfreg.kernels.targets import Target, host_targets
from hfreg.kernels.toolchain import compile_c, link_shared
from hfreg.ops.binding import ShapeError, bind
from hfreg.ops.package import OpPackage, load_package
from hfreg.ops.signature import Attributes, Shape, Signature, Types

pytestmark = pytest.mark.build

OPS = Path(__file__).resolve().parents[2] / "ops"
BODY = """#include "hfreg/body.h"
int32_t hfreg_body(hfreg_context *context, const hfreg_view *views, const hfreg_value *attributes) {
    (void)context, (void)views, (void)attributes;
    return 0;
}
"""
CALLS = 250
LARGEST = 1 << 16
"""Elements of an input; larger calls are not tried."""
LARGE = (2000, 65535, 65536, 2**29, 2**31 - 1, 2**31)
"""Attributes at which 32-bit arithmetic would end."""
Shapes = list[Shape | None]


def packages() -> Iterator[Any]:
    for path in sorted(OPS.glob("[a-z]*/op.toml")):
        package = load_package(path.parent)
        for signature in package.signatures:
            yield pytest.param(package, signature, id=f"{package.name}-{signature.class_name}")


@pytest.fixture(scope="module")
def goal() -> Target:
    return host_targets()[0]


@pytest.fixture(scope="module")
def runtime(goal: Target) -> abi.Runtime:
    return abi.Runtime(abi.load_library(build_runtime(goal), "runtime"), 1)


def front_end(signature: Signature, types: Types, goal: Target) -> Any:
    """A kernel with the real front end, and a body that does nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source, text in (("signature", format_signature(signature, types)), ("body", BODY)):
            (folder / f"{source}.c").write_text(text)
            include = ["-I", str(OPS.parent / "kernels" / "runtime")]
            compile_c(folder / f"{source}.c", folder / f"{source}.o", goal, flags=include)
        objects = [folder / "signature.o", folder / "body.o"]
        objects += [runtime_object(file, goal) for file in ("frontend.c", "memory.c")]
        link_shared(objects, folder / "kernel.so", goal, exports=ELF_EXPORTS, closed=True)
        library = abi.load_library((folder / "kernel.so").read_bytes(), signature.operator)
    return abi.kernel_function(library, signature.operator)


def changed_shape(shape: Shape, rng: np.random.Generator) -> Shape:
    """A shape with one axis more, one less, or another extent."""
    at = int(rng.integers(0, len(shape) + 1))
    match int(rng.integers(0, 3)):
        case 0:
            return (*shape[:at], int(rng.integers(0, 4)), *shape[at:])
        case 1:
            return (*shape[:at], *shape[at + 1 :])
        case _:
            changes: list[Callable[[int], int]] = [lambda n: n + 1, lambda n: max(0, n - 1), lambda n: 1, lambda n: 0]
            change = changes[int(rng.integers(0, len(changes)))]
            return tuple(change(n) if i == at else n for i, n in enumerate(shape))


def changed_attributes(signature: Signature, attributes: Attributes, rng: np.random.Generator) -> Attributes:
    """Attributes with another number in one place."""
    numbers = [n for n in signature.runtime_attributes if n.spec.type != "float"]
    if not numbers:
        return attributes
    number = numbers[int(rng.integers(0, len(numbers)))]
    low = number.spec.minimum if number.spec.minimum is not None else -6
    value = int(rng.integers(low, low + 12)) if rng.random() < 0.7 else int(rng.choice(LARGE))
    if number.spec.allowed is not None:
        value = int(rng.choice([n for n in number.spec.allowed if isinstance(n, int)]))
    old = attributes[number.name]
    if isinstance(old, list) and number.index is not None:
        return attributes | {number.name: [*old[: number.index], value, *old[number.index + 1 :]]}
    return attributes | {number.name: value}


def calls(signature: Signature) -> Iterator[tuple[Shapes, Attributes, list[Shape]]]:
    """Input shapes, attributes, and the output shapes of the call that these were made from."""
    rng = np.random.default_rng(2026)
    for _ in range(CALLS):
        call = sample_call(signature, rng, stretch=bool(rng.integers(0, 2)), drop_optional=bool(rng.integers(0, 2)))
        assert call is not None
        shapes, attributes = list(call.shapes), dict(call.attributes)
        outputs = [call.binding.shape(tensor.pattern) for tensor in signature.outputs]
        for _ in range(int(rng.integers(0, 3))):
            place = int(rng.integers(0, len(shapes) + 1))
            if place == len(shapes):
                attributes = changed_attributes(signature, attributes, rng)
            elif (shape := shapes[place]) is not None:
                shapes[place] = changed_shape(shape, rng)
        yield shapes, attributes, outputs


@pytest.mark.parametrize(("package", "signature"), list(packages()))
def test_both_accept_and_refuse_the_same_calls(
    package: OpPackage, signature: Signature, goal: Target, runtime: abi.Runtime
) -> None:
    types = {variable: DTYPES[name] for variable, name in type_tuples(package.manifest)[0]}
    function = front_end(signature, types, goal)
    accepted = refused = 0
    rng = np.random.default_rng(1)

    def run(everything: Shapes, attributes: Attributes) -> str:
        """What the kernel says to a call; empty where it takes it."""
        arrays = [
            None if shape is None else np.zeros(shape, tensor.dtype(types).numpy)
            for tensor, shape in zip(signature.tensors, everything, strict=True)
        ]
        described = zip(signature.tensors, arrays, strict=True)
        tensors = [None if array is None else describe(array, tensor.dtype(types)) for tensor, array in described]
        numbers = [number.of(attributes) for number in signature.runtime_attributes]
        try:
            BoundCall(function, runtime, tensors, numbers, package.name)()
        except RunError as error:
            return str(error)
        return ""

    for shapes, attributes, outputs in calls(signature):
        in_python, result = try_binding(signature, shapes, attributes)
        everything = [*shapes, *(result or outputs)]
        if any(np.prod(shape or (), dtype=float) > LARGEST for shape in everything):
            continue
        in_kernel = run(everything, attributes)
        assert bool(in_python) == bool(in_kernel), (shapes, attributes, outputs, in_python, in_kernel)
        if not in_python:
            wrong = [changed_shape(result[0], rng), *result[1:]]
            assert wrong == result or run([*shapes, *wrong], attributes), (shapes, attributes, wrong)
        accepted, refused = accepted + (not in_python), refused + bool(in_python)
    takes_any_shape = all(tensor.pattern.items[0].kind == "group" for tensor in signature.tensors)
    assert accepted > CALLS // 10
    assert refused > CALLS // 50 or (takes_any_shape and len(signature.inputs) == 1)


def try_binding(signature: Signature, shapes: Shapes, attributes: Attributes) -> tuple[str, list[Shape]]:
    """Why the Python side refuses a call, empty where it does not; and the shapes of its outputs."""
    try:
        binding = bind(signature, shapes, attributes)
    except ShapeError as error:
        return str(error), []
    return "", [binding.shape(tensor.pattern) for tensor in signature.outputs]
