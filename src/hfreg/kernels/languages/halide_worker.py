"""The child process that compiles kernels with Halide, each in a fork of its own.

For each request it runs the package's semantics and schedule, writes object files, and answers with what it did. It is
the only place where semantics and schedules run.
"""

from __future__ import annotations

import inspect
import os
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halide as hl

from hfreg.errors import BuildError, HfregError
from hfreg.kernels.artifact import KernelKey
from hfreg.kernels.schedules import MakeVariants, ScheduleTarget, check_variants, class_schedule
from hfreg.kernels.targets import target
from hfreg.lang.elements import FLOAT32, INT32, element
from hfreg.lang.tensor import Graph, Tensor
from hfreg.ops.loading import load_module
from hfreg.ops.manifest import Manifest
from hfreg.ops.package import MANIFEST, load_manifest
from hfreg.ops.signature import Signature, TensorSignature, Types, signatures
from hfreg.processes import Limits, apply_limits
from hfreg.wire import Message
from hfreg.workers import serve_forked

ENTRY_POINT = "hfreg_halide_{}"


def compile_request(request: dict[str, Any]) -> dict[str, Any]:
    """Compile one kernel: all its variants. The answer says what the front end has to know of them."""
    key, folder = KernelKey.from_json(request["key"]), Path(request["package"])
    manifest = load_manifest((folder / MANIFEST).read_text(), MANIFEST)
    signature = next(s for s in signatures(manifest) if s.class_name == key.attribute_class)
    semantics, goal = _semantics(folder, manifest), ScheduleTarget.of(target(key.target))
    started = time.perf_counter()
    result = signature.outputs[0].dtype(key.dtypes)
    probe = Graph(goal.lowering(), result)
    fill_graph(probe, semantics, signature, key.dtypes)
    name, make = class_schedule(probe)
    hand = None if request["useClassSchedule"] else _hand_schedule(folder, key, signature)
    by_hand = hand(probe, goal) if hand else []
    variants = by_hand or make(probe, goal)
    axes = _axis_places(signature)
    check_variants(variants, axes)
    compiled = []
    for number, variant in enumerate(variants):
        graph = Graph(variant.lowering, result)
        fill_graph(graph, semantics, signature, key.dtypes)
        variant.apply(graph, goal)
        output = {hl.OutputFileType.object: request["output"].format(number)}
        function = ENTRY_POINT.format(number)
        graph.out.func.compile_to(output, graph.arguments, function, hl.Target(goal.halide_string))
        touches = graph.output_memory is not None
        compiled.append({"name": variant.name, "condition": variant.condition, "touches_output": touches})
    return {
        "variants": compiled,
        "axes": axes,
        "scalars": _scalar_table(signature),
        "buffers": _buffer_types(signature, key.dtypes, goal),
        "schedule": "hand" if by_hand else f"class {name}",
        "compile_seconds": round(time.perf_counter() - started, 3),
    }


def _semantics(folder: Path, manifest: Manifest) -> Callable[..., Tensor]:
    module = load_module(folder / "semantics.py", f"hfreg_semantics_{manifest.name}")
    function: Callable[..., Tensor] = getattr(module, manifest.name)
    return function


def _hand_schedule(folder: Path, key: KernelKey, signature: Signature) -> MakeVariants | None:
    """The function named like the attribute class in `schedules/<architecture>.py`, if there is one.

    It may decline an element type, by giving no variants: then the class schedule serves.
    """
    path = folder / "schedules" / f"{target(key.target).architecture}.py"
    if not path.is_file():
        return None
    make = getattr(load_module(path, f"hfreg_schedule_{key.operator}"), signature.class_name, None)
    return make if callable(make) else None


def _axis_places(signature: Signature) -> dict[str, tuple[int, int]]:
    """Where the extent of each axis that a condition may name is: a tensor, and an axis of its view."""
    named = signature.view_extents(dict.fromkeys(signature.axes, ()))
    places: dict[str, tuple[int, int]] = {}
    for number, tensor in enumerate(signature.tensors):
        for place, axis in enumerate(signature.view_axes(tensor)):
            if axis in named:
                places.setdefault(axis, (number, place))
    return places


def fill_graph(graph: Graph, semantics: Callable[..., Tensor], signature: Signature, types: Types) -> None:
    """Run the semantics on the canonical views of a signature.

    Args:
        graph: an empty graph.
        semantics: the package's function.
        signature: the signature of the attribute class.
        types: what the type variables stand for.

    Raises:
        BuildError: the result has other axes than the output.
    """
    operands = [
        graph.input(
            tensor.name,
            tensor.dtype(types),
            signature.view_axes(tensor),
            any_stride=signature.has_any_stride(tensor),
        )
        for tensor in signature.inputs
    ]
    given = _attributes(graph, signature)
    accepted = inspect.signature(semantics).parameters
    result = semantics(*operands, **{name: value for name, value in given.items() if name in accepted})
    output = signature.outputs[0]
    if result.rank != len(signature.view_axes(output)):
        expected = list(signature.view_axes(output))
        raise BuildError(f"the semantics give the axes {list(result.axes)}, the output {output.name} has {expected}")
    graph.output(result)


def _attributes(graph: Graph, signature: Signature) -> dict[str, Any]:
    """The attributes as semantics see them: numbers that are compiled in, or Halide parameters; lists as tuples."""
    values: dict[str, Any] = dict(signature.fixed)
    located = _located_axis(signature)
    numbers: dict[str, list[Any]] = {}
    for number in signature.runtime_attributes:
        if number.name == signature.locator:
            continue
        dtype = FLOAT32 if number.spec.type == "float" else INT32
        label = number.name if number.index is None else f"{number.name}_{number.index}"
        numbers.setdefault(number.name, []).append(graph.scalar(label, dtype))
    for name, expressions in numbers.items():
        values[name] = tuple(expressions) if signature.attributes[name].type == "ints" else expressions[0]
    for name, spec in signature.attributes.items():
        if spec.locates:
            values[name] = located if name == signature.locator else None
    return values


def _located_axis(signature: Signature) -> int | None:
    """The place of the located axis in the canonical view of the tensor that has others beside it."""
    if not signature.locator:
        return None
    name = signature.attributes[signature.locator].locates

    def is_located(tensor: TensorSignature) -> bool:
        return name in tensor.pattern.axes and len(tensor.pattern.items) > 1

    tensor = next(tensor for tensor in signature.inputs if is_located(tensor))
    return signature.view_axes(tensor).index(name)


def _scalar_table(signature: Signature) -> list[dict[str, Any]]:
    """Which of the kernel's attributes the compiled function takes, in order."""
    return [
        {"attribute": place, "is_real": number.spec.type == "float"}
        for place, number in enumerate(signature.runtime_attributes)
        if number.name != signature.locator
    ]


def _buffer_types(signature: Signature, types: Types, goal: ScheduleTarget) -> list[tuple[int, int]]:
    """The Halide type, as (code, bits), of each tensor's memory."""
    memory = [element(tensor.dtype(types), has_float16=goal.has_float16).memory for tensor in signature.tensors]
    codes = {hl.TypeCode.Int: 0, hl.TypeCode.UInt: 1, hl.TypeCode.Float: 2}
    return [(codes[kind.code()], kind.bits()) for kind in memory]


def _answer(request: Message) -> Message:
    """Compile one kernel, or say why it does not compile."""
    os.chdir(request.body["package"])
    try:
        return Message(compile_request(request.body))
    except (HfregError, hl.HalideError) as error:
        return Message({"error": str(error)})
    except Exception:  # of the package's code
        return Message({"error": traceback.format_exc(limit=-3)})


if __name__ == "__main__":
    apply_limits(Limits())
    warnings.simplefilter("ignore")
    serve_forked(_answer)
