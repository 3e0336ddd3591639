"""The shared memory of a runner: every tensor between two canaries, outputs filled with poison.

    | canary | tensor | canary | canary | tensor | canary | ...

A canary that changed is a write out of bounds; an output element that still follows the poison in two runs with
different poisons was never written; an input that changed was written to.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hfreg.arrays import Array
from hfreg.dtypes import DType

CANARY_BYTES = 4096
ALIGNMENT = 64
POISONS = (0xA5, 0x5A)
_CANARY = np.random.default_rng(0x68667265).integers(0, 256, CANARY_BYTES, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Block:
    """Where one tensor lives."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    offset: int
    """Bytes from the start of the arena to the element with index 0."""
    start: int
    """Bytes to the first byte of the storage, right behind the canary."""
    size: int
    """Bytes of the storage."""

    def header(self) -> dict[str, Any]:
        return {
            "offset": self.offset,
            "code": self.dtype.dlpack,
            "bits": self.dtype.bits,
            "shape": list(self.shape),
            "strides": list(self.strides),
        }


@dataclass(frozen=True, slots=True)
class MemoryFault:
    """A rule about memory that a kernel broke."""

    kind: Literal["out_of_bounds_write", "input_modified", "unwritten_output"]
    tensor: str
    detail: str

    def __str__(self) -> str:
        return f"{self.tensor}: {self.detail}"


class Arena:
    """A growing block of memory that parent and runner share."""

    def __init__(self, size: int = 1 << 20) -> None:
        self.descriptor = os.memfd_create("hfreg-arena", os.MFD_CLOEXEC)
        self.size = size
        self.used = 0
        """Bytes up to the last canary of the latest call."""
        os.ftruncate(self.descriptor, size)
        self._memory = mmap.mmap(self.descriptor, size)
        self._bytes = np.frombuffer(self._memory, np.uint8)

    def close(self) -> None:
        del self._bytes
        self._memory.close()
        os.close(self.descriptor)

    def place(
        self, inputs: Sequence[Array | None], outputs: Sequence[tuple[DType, tuple[int, ...]]], *, shift: int = 0
    ) -> list[Block | None]:
        """Find a place for every tensor and copy the inputs in, with their strides.

        Args:
            inputs: the inputs; None for one that is absent.
            outputs: type and shape of each output.
            shift: elements by which data starts behind a multiple of 64 bytes, since callers' views do.
        """
        blocks: list[Block | None] = []
        at = 0
        for array in inputs:
            if array is None:
                blocks.append(None)
                continue
            block = _block(array.dtype, array.shape, tuple(s // array.itemsize for s in array.strides), at, shift)
            at = _end(block)
            blocks.append(block)
        for dtype, shape in outputs:
            block = _block(dtype.numpy, shape, _compact(shape), at, shift)
            at = _end(block)
            blocks.append(block)
        self.used = at
        self._grow(at)
        for array, place in zip(inputs, blocks, strict=False):
            if array is not None and place is not None:
                self.storage(place)[:] = 0xC3  # the gaps between the elements of a strided input
                self.view(place)[...] = array
        return blocks

    def arm(self, blocks: Sequence[Block | None], outputs: int, poison: int) -> None:
        """Write canaries around every tensor, and poison into the last `outputs` ones."""
        for position, block in enumerate(blocks):
            if block is None:
                continue
            self._bytes[block.start - CANARY_BYTES : block.start] = _CANARY
            self._bytes[block.start + block.size : block.start + block.size + CANARY_BYTES] = _CANARY
            if position >= len(blocks) - outputs:
                self.storage(block)[:] = poison

    def storage(self, block: Block) -> Array:
        """The bytes of a tensor."""
        return self._bytes[block.start : block.start + block.size]

    def view(self, block: Block) -> Array:
        """A tensor as NumPy sees it."""
        strides = tuple(s * block.dtype.itemsize for s in block.strides)
        return np.ndarray(block.shape, block.dtype.numpy, self._memory, block.offset, strides)

    def canary_fault(self, name: str, block: Block) -> MemoryFault | None:
        """A write before or behind a tensor."""
        before = self._bytes[block.start - CANARY_BYTES : block.start] != _CANARY
        after = self._bytes[block.start + block.size : block.start + block.size + CANARY_BYTES] != _CANARY
        if before.any():
            return _out_of_bounds(name, int(CANARY_BYTES - np.argmax(before)), "before")
        return _out_of_bounds(name, int(np.argmax(after)) + 1, "behind") if after.any() else None

    def _grow(self, size: int) -> None:
        if size <= self.size:
            return
        self.size = max(size, 2 * self.size)
        del self._bytes
        os.ftruncate(self.descriptor, self.size)
        self._memory.close()
        self._memory = mmap.mmap(self.descriptor, self.size)
        self._bytes = np.frombuffer(self._memory, np.uint8)


def _out_of_bounds(name: str, distance: int, side: str) -> MemoryFault:
    return MemoryFault("out_of_bounds_write", name, f"a write {distance} byte{'s' * (distance > 1)} {side} its memory")


def _block(dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...], at: int, shift: int) -> Block:
    from hfreg.dtypes import from_numpy

    known = from_numpy(dtype)
    assert known is not None
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)] if 0 not in shape else []
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    size = (high - low + 1) * known.itemsize if 0 not in shape else 0
    start = -(-(at + CANARY_BYTES) // ALIGNMENT) * ALIGNMENT + shift * known.itemsize
    return Block(known, shape, strides, start - low * known.itemsize, start, size)


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _end(block: Block) -> int:
    return block.start + block.size + CANARY_BYTES
