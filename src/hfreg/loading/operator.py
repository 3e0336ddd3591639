"""A loaded operator: a callable over verified kernels."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfreg.arrays import Array
from hfreg.dtypes import DTYPES, DType, from_numpy, from_onnx
from hfreg.errors import RunError
from hfreg.kernels import abi
from hfreg.kernels.host import HostKernel, describe
from hfreg.loading.attributes import plain
from hfreg.loading.dlpack import Borrowed, borrow, give_back
from hfreg.ops.binding import select
from hfreg.ops.manifest import AttributeValue, Manifest
from hfreg.ops.manifest_checks import ELEMENT_LIMIT
from hfreg.ops.signature import Shape, Types, complete_attributes, signatures

KernelLoader = Callable[[tuple[tuple[str, str], ...], str], HostKernel]
"""Gives the verified kernel for some types and an attribute class, or raises a RunError that says why there is none."""
REMEMBERED_CALLS = 4096


@dataclass(frozen=True)
class _Argument:
    """An input, as the kernel will see it."""

    tensor: abi.DLTensor
    dtype: DType
    shape: tuple[int, ...]
    keep: Any


@dataclass(frozen=True, slots=True)
class _Call:
    """A kernel, and what it is called with beside the inputs."""

    kernel: HostKernel
    outputs: tuple[tuple[Shape, DType], ...]
    attributes: tuple[int | float, ...]

    def run(self, arguments: Sequence[_Argument | None]) -> list[Array]:
        try:
            outputs = [np.empty(shape, dtype.numpy) for shape, dtype in self.outputs]
        except MemoryError as error:
            raise RunError("there is no memory for the outputs", where=self.kernel.name) from error
        tensors = [argument.tensor if argument else None for argument in arguments]
        tensors += [describe(array, dtype) for array, (_, dtype) in zip(outputs, self.outputs, strict=True)]
        self.kernel.bind(tensors, self.attributes)()
        return outputs


class LoadedOperator:
    """An operator whose kernels are verified. Safe to call from several threads.

    Inputs are NumPy arrays or anything with `__dlpack__` in CPU memory; attributes are keywords with the operator's
    ONNX names: numbers, strings, and any sequences of integers. The result comes in the library of the first input.
    """

    def __init__(self, manifest: Manifest, target: str, load_kernel: KernelLoader) -> None:
        self.manifest = manifest
        self.target = target
        self.__name__ = manifest.name
        self.__doc__ = manifest.summary
        self._signatures = signatures(manifest)
        self._load_kernel = load_kernel
        self._kernels: dict[tuple[tuple[tuple[str, str], ...], str], HostKernel] = {}
        self._calls: dict[Any, _Call] = {}
        self._lock = threading.Lock()

    @property
    def reference(self) -> str:
        """`name@version`."""
        return self.manifest.reference

    def __repr__(self) -> str:
        return f"<hfreg operator {self.reference} on {self.target}>"

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        """Run the operator.

        Args:
            inputs: the inputs in the manifest's order; None, or nothing at the end, for absent optional ones.
            attributes: the attributes that differ from their defaults.

        Returns:
            The output, or a tuple of outputs.

        Raises:
            RunError: an argument does not fit, or no verified kernel serves the call.
        """
        given = self._pad(inputs)
        arguments = [self._argument(name, value) for name, value in zip(self.manifest.inputs, given, strict=True)]
        call = self._call(arguments, {name: self._plain(name, value) for name, value in attributes.items()})
        results = call.run(arguments)
        first = next((value for value in given if value is not None), None)
        pairs = zip(results, call.outputs, strict=True)
        outputs = tuple(give_back(array, dtype, first) for array, (_, dtype) in pairs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _call(self, arguments: Sequence[_Argument | None], attributes: dict[str, AttributeValue]) -> _Call:
        """What a call comes to. Calls are alike where types, shapes and attributes are, and are worked out once."""
        kinds = tuple((argument.dtype.name, argument.shape) if argument else None for argument in arguments)
        key = kinds, repr(sorted(attributes.items()))
        call = self._calls.get(key)
        if call is None:
            if len(self._calls) >= REMEMBERED_CALLS:
                self._calls.clear()
            call = self._calls[key] = self._work_out(arguments, attributes)
        return call

    def _work_out(self, arguments: Sequence[_Argument | None], attributes: dict[str, AttributeValue]) -> _Call:
        complete = complete_attributes(self.manifest, attributes)
        types = self._types(arguments, attributes)
        shapes = [argument.shape if argument else None for argument in arguments]
        signature, binding = select(self._signatures, shapes, complete)
        outputs = tuple((binding.shape(tensor.pattern), tensor.dtype(types)) for tensor in signature.outputs)
        for tensor, (shape, _) in zip(signature.outputs, outputs, strict=True):
            if math.prod(shape) >= ELEMENT_LIMIT:
                raise RunError(
                    f"would have the shape {list(shape)}, more than {ELEMENT_LIMIT - 1} elements",
                    where=f"{self.reference}: {tensor.name}",
                )
        kernel = self._kernel(tuple(sorted((name, dtype.name) for name, dtype in types.items())), signature.class_name)
        return _Call(kernel, outputs, tuple(number.of(binding.attributes) for number in signature.runtime_attributes))

    def _plain(self, name: str, value: Any) -> Any:
        if name not in self.manifest.attributes:
            known = ", ".join(self.manifest.attributes) or "none"
            raise RunError(f"has no attribute {name!r}", where=self.reference, hint=f"its attributes: {known}")
        return plain(self.manifest.attributes[name].type, value, where=f"{self.reference}: attribute {name}")

    def _pad(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs, with None for those left out at the end."""
        names = list(self.manifest.inputs)
        if len(inputs) > len(names):
            raise RunError(f"takes {len(names)} inputs ({', '.join(names)}), got {len(inputs)}", where=self.reference)
        given = [*inputs, *[None] * (len(names) - len(inputs))]
        for name, value in zip(names, given, strict=True):
            if value is None and not self.manifest.inputs[name].optional:
                raise RunError("is missing", where=f"{self.reference}: {name}")
        return given

    def _argument(self, name: str, value: Any) -> _Argument | None:
        if value is None:
            return None
        where = f"{self.reference}: {name}"
        if isinstance(value, np.ma.MaskedArray):
            raise RunError(
                "is a masked array", where=where, hint="value.filled(number) says what stands for the masked"
            )
        if isinstance(value, (np.ndarray, np.generic)):
            return _from_numpy(np.asarray(value), where)
        if hasattr(value, "__dlpack__"):
            borrowed: Borrowed = borrow(value, where=where)
            return _Argument(borrowed.tensor, borrowed.dtype, borrowed.shape, borrowed)
        raise RunError(
            f"is a {type(value).__name__}, expected a NumPy array or a tensor with __dlpack__",
            where=where,
            hint="numpy.asarray(value, dtype) makes an array of it",
        )

    def _types(self, arguments: Sequence[_Argument | None], attributes: dict[str, AttributeValue]) -> Types:
        """What each type variable stands for in this call."""
        manifest, bound = self.manifest, dict[str, DType]()
        owner: dict[str, str] = {}
        for (name, tensor), argument in zip(manifest.inputs.items(), arguments, strict=True):
            if argument is None:
                continue
            allowed = manifest.types.get(tensor.type, [tensor.type])
            where = f"{self.reference}: {name}"
            if argument.dtype.name not in allowed:
                raise RunError(f"is {argument.dtype}, expected {' or '.join(allowed)}", where=where)
            if tensor.type in manifest.types:
                known = bound.setdefault(tensor.type, argument.dtype)
                owner.setdefault(tensor.type, name)
                if known is not argument.dtype:
                    raise RunError(f"is {argument.dtype}, expected {known} as {owner[tensor.type]} is", where=where)
        for name, attribute in manifest.attributes.items():
            code = attributes.get(name)
            if attribute.type_of and isinstance(code, int) and code:
                dtype, served = from_onnx(code), manifest.types[attribute.type_of]
                where = f"{self.reference}: {name}"
                if dtype is None or dtype.name not in served:
                    raise RunError(f"is {dtype or code}, expected {' or '.join(served)}", where=where)
                if bound.setdefault(attribute.type_of, dtype) is not dtype:
                    raise RunError(f"is {dtype}, which is not the type of the other arguments", where=where)
        for variable, names in manifest.types.items():
            bound.setdefault(variable, DTYPES[names[0]])
        return bound

    def _kernel(self, types: tuple[tuple[str, str], ...], attribute_class: str) -> HostKernel:
        key = types, attribute_class
        kernel = self._kernels.get(key)
        if kernel is None:
            with self._lock:
                kernel = self._kernels.get(key) or self._load_kernel(types, attribute_class)
                self._kernels[key] = kernel
        return kernel


def _from_numpy(array: Array, where: str) -> _Argument:
    dtype = from_numpy(array.dtype)
    if dtype is None:
        hint = "native byte order is needed" if not array.dtype.isnative else f"known types: {', '.join(DTYPES)}"
        raise RunError(f"has the element type {array.dtype}, which kernels do not know", where=where, hint=hint)
    if any(stride % array.itemsize for stride in array.strides) or array.ctypes.data % array.itemsize:
        array = np.ascontiguousarray(array)  # a field of a record: no whole number of elements apart
    return _Argument(describe(array, dtype), dtype, array.shape, array)
