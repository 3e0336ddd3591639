"""The C ABI of kernels (`kernels/include/hfreg/kernel.h`) for ctypes, and loading a kernel from bytes.

Only the standard library is imported: the runner process has nothing else.
"""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import os
from collections.abc import Sequence
from typing import Any

from hfreg.errors import RunError

ABI_VERSION = 1
CPU = 1
MESSAGE_BYTES = 320


class DLDevice(ctypes.Structure):
    """Where a tensor lives."""

    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    """An element type."""

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    """A tensor of DLPack. Strides count elements."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Value(ctypes.Union):
    """A run-time attribute."""

    _fields_ = [("integer", ctypes.c_int64), ("real", ctypes.c_double)]


def values(numbers: Sequence[int | float]) -> Any:
    """An array of run-time attributes."""
    array = (Value * max(1, len(numbers)))()
    for slot, number in zip(array, numbers, strict=False):
        if isinstance(number, float):
            slot.real = number
        else:
            slot.integer = number
    return array


def tensor(address: int, code: int, bits: int, shape: Sequence[int], strides: Sequence[int] | None) -> DLTensor:
    """A DLTensor over memory that the caller keeps alive."""
    rank = len(shape)
    extents = (ctypes.c_int64 * rank)(*shape)
    steps = (ctypes.c_int64 * rank)(*strides) if strides is not None else None
    result = DLTensor(address, DLDevice(CPU, 0), rank, DLDataType(code, bits, 1), extents, steps, 0)
    result.keep = extents, steps
    return result


def load_library(content: bytes, name: str) -> ctypes.CDLL:
    """Load a shared object from bytes: from a sealed file in memory, so nobody can change it after it was checked.

    Raises:
        RunError: the system's loader refuses it.
    """
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        _write_all(descriptor, content)
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        return load_descriptor(descriptor, name)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def load_descriptor(descriptor: int, name: str) -> ctypes.CDLL:
    """Load a shared object from an open file.

    Raises:
        RunError: the system's loader refuses it.
    """
    try:
        return ctypes.CDLL(_fresh_path(descriptor))
    except OSError as error:
        raise RunError(f"cannot be loaded: {error}", where=name) from error


_loads = itertools.count()


def _fresh_path(descriptor: int) -> str:
    """A path of an open file that was never used before.

    The system's loader takes a path that it knows for the library that it loaded then, but descriptors are used again.
    The number of the load is written in ways to say "this folder".
    """
    number = format(next(_loads), "024b")
    return f"/proc/self/fd/{''.join('./' if bit == '0' else './/' for bit in number)}{descriptor}"


class Runtime:
    """The host runtime: the thread pool and the memory of all kernels of this process."""

    def __init__(self, library: ctypes.CDLL, threads: int) -> None:
        version = ctypes.c_uint32.in_dll(library, "hfreg_runtime_abi").value
        if version != ABI_VERSION:
            raise RunError(f"the host runtime has ABI {version}, expected {ABI_VERSION}")
        self._library = library
        self._context_bytes = ctypes.c_uint32.in_dll(library, "hfreg_call_context_size").value
        self._init = library.hfreg_call_context_init
        self._init.argtypes, self._init.restype = (ctypes.c_void_p, ctypes.c_void_p), None
        library.hfreg_pool_create.restype = ctypes.c_void_p
        self._pool = library.hfreg_pool_create(ctypes.c_int32(threads))
        if not self._pool:
            raise RunError("the thread pool could not be made: memory or threads ran out")
        self.threads = threads

    def context(self) -> Any:
        """A fresh context for one call at a time."""
        block = ctypes.create_string_buffer(self._context_bytes)
        self._init(block, self._pool)
        return block

    def message(self, context: Any) -> str:
        """What the last call with this context reported."""
        start = self._context_bytes - MESSAGE_BYTES
        return bytes(context[start:]).split(b"\0", 1)[0].decode(errors="replace")

    def close(self) -> None:
        """End the pool's threads. No kernel may be running."""
        if self._pool:
            self._library.hfreg_pool_destroy.argtypes = (ctypes.c_void_p,)
            self._library.hfreg_pool_destroy(self._pool)
            self._pool = None


def kernel_function(library: ctypes.CDLL, name: str) -> Any:
    """The entry point of a kernel.

    Raises:
        RunError: the library is no kernel of this ABI.
    """
    try:
        version = ctypes.c_uint32.in_dll(library, "hfreg_kernel_abi").value
        function = library.hfreg_kernel
    except (ValueError, AttributeError) as error:
        raise RunError(f"is no kernel: {error}", where=name) from error
    if version != ABI_VERSION:
        raise RunError(f"has kernel ABI {version}, this hfreg has {ABI_VERSION}", where=name)
    function.argtypes = (
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_int32,
    )
    function.restype = ctypes.c_int32
    return function
