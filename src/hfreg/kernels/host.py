"""Kernels in this very process: for callers who trust them (`hfreg.load`) and for the process that takes times."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from hfreg.arrays import Array
from hfreg.dtypes import DTYPES, DType, from_numpy
from hfreg.errors import RunError
from hfreg.kernels import abi


def describe(array: Array, dtype: DType) -> abi.DLTensor:
    """A DLTensor over an array, which the caller keeps alive."""
    strides = [stride // array.itemsize for stride in array.strides]
    return abi.tensor(array.ctypes.data, dtype.dlpack, dtype.bits, array.shape, strides)


def known_dtype(array: Array) -> DType:
    """The element type of an array, which kernels must know.

    Raises:
        RunError: hfreg has none for it.
    """
    dtype = from_numpy(array.dtype)
    if dtype is None:
        raise RunError(f"{array.dtype} is no element type of hfreg", hint=f"known: {', '.join(DTYPES)}")
    return dtype


class HostKernel:
    """A kernel that is loaded into this process. It may be called from several threads."""

    def __init__(self, content: bytes, name: str, runtime: abi.Runtime) -> None:
        self._library = abi.load_library(content, name)
        self._function = abi.kernel_function(self._library, name)
        self._runtime = runtime
        self.name = name

    def bind(self, tensors: Sequence[abi.DLTensor | None], attributes: Sequence[int | float]) -> BoundCall:
        """Prepare a call; the tensors' memory must stay where it is."""
        return BoundCall(self._function, self._runtime, tensors, attributes, self.name)


class BoundCall:
    """A prepared call of a kernel."""

    def __init__(
        self,
        function: Any,
        runtime: abi.Runtime,
        tensors: Sequence[abi.DLTensor | None],
        attributes: Sequence[int | float],
        name: str,
    ) -> None:
        self._function = function
        self._runtime = runtime
        self._context = runtime.context()
        self._tensors = list(tensors)
        addresses = (ctypes.addressof(t) if t is not None else None for t in self._tensors)
        self._pointers = (ctypes.c_void_p * len(self._tensors))(*addresses)
        self._numbers = abi.values(attributes)
        self._arguments = (self._context, self._pointers, len(self._tensors), self._numbers, len(attributes))
        self._name = name

    def __call__(self) -> None:
        """Run.

        Raises:
            RunError: the kernel reported an error.
        """
        if self._function(*self._arguments):
            raise RunError(self._runtime.message(self._context), where=self._name)
