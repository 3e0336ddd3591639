"""The process that holds one native kernel.

Its arguments are the number of threads and three inherited file descriptors: arena, kernel, host runtime. Only the
standard library and the ABI are imported.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import Any

from hfreg.kernels import abi
from hfreg.processes import Limits, apply_limits
from hfreg.wire import Message
from hfreg.workers import serve


class NativeKernel:
    """One kernel and the arena that its tensors are in."""

    def __init__(self, threads: int, arena: int, kernel: int, runtime: int) -> None:
        self.arena = arena
        self.memory: mmap.mmap | None = None
        self.base = 0
        self.function = abi.kernel_function(abi.load_descriptor(kernel, "kernel"), "kernel")
        self.runtime = abi.Runtime(abi.load_descriptor(runtime, "runtime"), threads)
        self.context = self.runtime.context()

    def answer(self, request: Message) -> Message:
        if "hello" in request.body:
            return Message({})
        self.map(request.body["arena"])
        tensors = [self.tensor(header) for header in request.body["tensors"]]
        pointers = (ctypes.c_void_p * len(tensors))(*(ctypes.addressof(t) if t else None for t in tensors))
        numbers = [float.fromhex(v) if isinstance(v, str) else int(v) for v in request.body["attributes"]]
        status = self.function(self.context, pointers, len(tensors), abi.values(numbers), len(numbers))
        message = self.runtime.message(self.context) if status else ""
        return Message({"call": request.body["call"], "status": status, "message": message})

    def map(self, size: int) -> None:
        """Map the arena, again where it has grown."""
        if self.memory is None or len(self.memory) < size:
            self.memory = mmap.mmap(self.arena, size)
            self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def tensor(self, header: dict[str, Any] | None) -> abi.DLTensor | None:
        if header is None:
            return None
        address = self.base + header["offset"]
        return abi.tensor(address, header["code"], header["bits"], header["shape"], header["strides"])


if __name__ == "__main__":
    apply_limits(Limits())
    os.closerange(max(map(int, sys.argv[2:])) + 1, 256)
    serve(NativeKernel(*map(int, sys.argv[1:])).answer)
