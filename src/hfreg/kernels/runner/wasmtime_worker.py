"""The process that holds one WebAssembly kernel.

Its arguments are the number of threads and two inherited file descriptors: arena, kernel. A module imports nothing
and has its own linear memory, so the arena is copied in before a call and out after it, canaries and all: what the
kernel did to the memory around its tensors is seen as on a native target.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from typing import Any

import wasmtime

from hfreg.processes import Limits, apply_limits
from hfreg.wire import Message
from hfreg.workers import serve

PAGE = 65536
_TENSOR = struct.Struct("<I ii i BBH II 4x Q")  # DLTensor with 32-bit pointers


class WasmKernel:
    """One module, and the arena that its tensors are in."""

    def __init__(self, arena: int, kernel: int) -> None:
        config = wasmtime.Config()
        config.wasm_simd = True
        config.cranelift_opt_level = "speed"
        engine = wasmtime.Engine(config)
        with os.fdopen(os.dup(kernel), "rb") as file:
            file.seek(0)
            module = wasmtime.Module(engine, file.read())
        self.arena = arena
        self.store = wasmtime.Store(engine)
        self.exports = wasmtime.Instance(self.store, module, []).exports(self.store)
        self.memory: wasmtime.Memory = self.exports["memory"]
        self.base = 0
        self.reserved = 0

    def answer(self, request: Message) -> Message:
        if "hello" in request.body:
            return Message({})
        size, used = request.body["arena"], request.body["used"]
        self.reserve(size)
        with mmap.mmap(self.arena, size) as shared:
            self.memory.write(self.store, shared[:used], self.base)
            status = self.run(request.body)
            shared[:used] = bytes(self.memory.read(self.store, self.base, self.base + used))
        message = self.message() if status else ""
        return Message({"call": request.body["call"], "status": status, "message": message})

    def reserve(self, size: int) -> None:
        """Linear memory for the arena, and behind it for the descriptions of the tensors."""
        if size > self.reserved:
            self.base = self.exports["hfreg_reserve"](self.store, size + PAGE) & 0xFFFFFFFF
            if not self.base:
                raise MemoryError("the module's memory cannot grow")
            self.reserved = size

    def run(self, body: dict[str, Any]) -> int:
        at = (self.base + self.reserved + 15) & ~15
        pointers = []
        for header in body["tensors"]:
            if header is None:
                pointers.append(0)
                continue
            rank = len(header["shape"])
            table = struct.pack(f"<{2 * rank}q", *header["shape"], *header["strides"])
            self.memory.write(self.store, table, at)
            record = _TENSOR.pack(
                self.base + header["offset"], 1, 0, rank, header["code"], header["bits"], 1, at, at + 8 * rank, 0
            )
            at += len(table)
            self.memory.write(self.store, record, at)
            pointers.append(at)
            at += (len(record) + 15) & ~15
        numbers = [
            struct.pack("<d", float.fromhex(v)) if isinstance(v, str) else struct.pack("<q", v)
            for v in body["attributes"]
        ]
        self.memory.write(self.store, b"".join(numbers), at)
        table_at = at + 8 * len(numbers)
        self.memory.write(self.store, struct.pack(f"<{len(pointers)}I", *pointers), table_at)
        self.exports["hfreg_reset"](self.store)
        context = self.exports["hfreg_host_context"](self.store)
        status: int = self.exports["hfreg_kernel"](self.store, context, table_at, len(pointers), at, len(numbers))
        return status

    def message(self) -> str:
        start = self.exports["hfreg_host_message"](self.store) & 0xFFFFFFFF
        return bytes(self.memory.read(self.store, start, start + 320)).split(b"\0", 1)[0].decode(errors="replace")


def main(arena: int, kernel: int) -> None:
    """Serve. A trap ends the process with the status that stands for a crash."""
    apply_limits(Limits(address_space_bytes=None))
    try:
        serve(WasmKernel(arena, kernel).answer)
    except wasmtime.Trap as error:
        sys.stderr.write(f"the module trapped: {error}\n")
        sys.exit(70)


if __name__ == "__main__":
    main(int(sys.argv[2]), int(sys.argv[3]))
