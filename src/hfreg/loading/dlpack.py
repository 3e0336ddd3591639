"""Tensors of other libraries, through DLPack. https://dmlc.github.io/dlpack/latest/python_spec.html

An import borrows: the producer's capsule is kept for the time of the call and never consumed, so the producer frees its
own memory. An export hands a capsule to a consumer, which calls the deleter when it is done.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfreg.arrays import Array
from hfreg.dtypes import DType, from_dlpack
from hfreg.errors import RunError
from hfreg.kernels import abi

_PLAIN = b"dltensor"
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _ManagedTensor(ctypes.Structure):
    """DLManagedTensor, the form before DLPack 1.0 that every library still takes."""

    _fields_ = [("tensor", abi.DLTensor), ("manager", ctypes.c_void_p), ("deleter", _Deleter)]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


@dataclass(frozen=True)
class Borrowed:
    """A tensor of another library, valid as long as this object lives."""

    tensor: abi.DLTensor
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    capsule: Any


def borrow(value: Any, *, where: str) -> Borrowed:
    """Look at a tensor in CPU memory.

    Raises:
        RunError: it is on another device, of an element type that kernels do not know, or the producer refuses.
    """
    try:
        kind, number = map(int, value.__dlpack_device__())
        capsule = value.__dlpack__() if kind == abi.CPU else None
    except Exception as error:  # somebody else's code
        raise RunError(f"does not give its memory: {error}", where=where) from error
    if kind != abi.CPU:
        raise RunError(f"is on DLPack device {kind, number}, expected CPU memory", where=where)
    if not _is_valid(capsule, _PLAIN):
        raise RunError("gives a DLPack capsule that is used up or of another version", where=where)
    tensor = abi.DLTensor.from_address(_pointer(capsule, _PLAIN))
    dtype = from_dlpack(tensor.dtype.code, tensor.dtype.bits)
    if dtype is None or tensor.dtype.lanes != 1:
        raise RunError(
            f"has the DLPack element type {tensor.dtype.code}/{tensor.dtype.bits}, unknown here", where=where
        )
    rank = tensor.ndim
    shape = tuple(tensor.shape[i] for i in range(rank))
    strides = tuple(tensor.strides[i] for i in range(rank)) if tensor.strides else None
    return Borrowed(tensor, dtype, shape, strides, capsule)


_exported: dict[int, Any] = {}
"""What consumers still use, by the address of the managed tensor."""


def _forget(address: int) -> None:
    _exported.pop(address, None)


_delete = _Deleter(_forget)


class Export:
    """An array of ours that other libraries can import, whatever its element type."""

    def __init__(self, array: Array, dtype: DType) -> None:
        self._array, self._dtype = array, dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return abi.CPU, 0

    def __dlpack__(self, **_: Any) -> Any:
        array, dtype = self._array, self._dtype
        strides = [stride // array.itemsize for stride in array.strides]
        tensor = abi.tensor(array.ctypes.data, dtype.dlpack, dtype.bits, array.shape, strides)
        managed = _ManagedTensor(tensor, None, _delete)
        address = ctypes.addressof(managed)
        _exported[address] = managed, tensor, array
        return _new(address, _PLAIN, None)


def importer(value: Any) -> Callable[[Any], Any] | None:
    """The function `from_dlpack` of the library that a tensor comes from; None where it has none."""
    if hasattr(value, "__array_namespace__"):
        return getattr(value.__array_namespace__(), "from_dlpack", None)
    library = sys.modules.get(type(value).__module__.partition(".")[0])
    return getattr(library, "from_dlpack", None)


def give_back(array: Array, dtype: DType, like: Any) -> Any:
    """A result in the library of an argument: NumPy for NumPy, a torch tensor for a torch tensor."""
    make = None if isinstance(like, (np.ndarray, np.generic)) else importer(like)
    return array if make is None else make(Export(array, dtype))
