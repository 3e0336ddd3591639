"""The parent's side of a runner process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np

from hfreg.arrays import Array
from hfreg.dtypes import DType
from hfreg.errors import MachineError, RunError
from hfreg.kernels.artifact import Kernel
from hfreg.kernels.build import build_runtime
from hfreg.kernels.runner.arena import POISONS, Arena, Block, MemoryFault
from hfreg.kernels.targets import target
from hfreg.processes import Ending, Exited, Killed, TimedOut, Worker, clean_environment, python_command
from hfreg.wire import Message

START_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Call:
    """One call of a kernel."""

    inputs: tuple[Array | None, ...]
    outputs: tuple[tuple[DType, tuple[int, ...]], ...]
    """Type and shape of each output."""
    attributes: tuple[int | float, ...] = ()
    names: tuple[str, ...] = ()
    """The names of inputs and outputs, for messages."""
    shift: int = 0
    """Elements by which the data is off a multiple of 64 bytes."""

    def name(self, position: int) -> str:
        return self.names[position] if position < len(self.names) else f"tensor {position}"


@dataclass(frozen=True)
class Ran:
    """The kernel returned without an error."""

    outputs: tuple[Array, ...]
    """Of the first run; copies."""
    faults: tuple[MemoryFault, ...] = ()
    repeats: bool = True
    """Whether the second run gave the same bits."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The kernel returned an error."""

    message: str


@dataclass(frozen=True, slots=True)
class Garbled:
    """What came from the runner is no answer to the call: the kernel wrote into its pipe."""

    detail: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The runner process did not survive the call: it crashed, or was killed at the deadline or for what it said."""

    ending: Ending | Garbled

    def __str__(self) -> str:
        match self.ending:
            case Garbled(detail):
                return f"the runner's answer is none: {detail}"
            case Killed():
                return str(self.ending)
            case TimedOut(seconds):
                return f"no answer after {seconds:g} s"
            case Exited(status, _, stderr):
                return f"exit status {status}" + (f": {stderr}" if stderr else "")


RunOutcome = Ran | Reported | Stopped


@dataclass
class KernelRunner:
    """A runner process for one kernel. A context manager; after a `Stopped` outcome it starts a fresh process."""

    kernel: Kernel
    threads: int = 1
    timeout_s: float = CALL_TIMEOUT_S
    arena: Arena = field(default_factory=Arena)
    _worker: Worker | None = None
    _calls: int = 0

    def call(self, call: Call) -> RunOutcome:
        """Run a call twice, with different poisons in the outputs, and check what it did to memory."""
        blocks = self.arena.place(call.inputs, call.outputs, shift=call.shift)
        images: list[list[Array]] = []
        faults: list[MemoryFault] = []
        before = [self.arena.storage(block).copy() for block in blocks[: len(call.inputs)] if block is not None]
        for poison in POISONS:
            self.arena.arm(blocks, len(call.outputs), poison)
            outcome = self._ask(blocks, call)
            if outcome is not None:
                return outcome
            faults += self._memory_faults(call, blocks, before)
            images.append([self._take(block) for block in blocks[len(call.inputs) :] if block is not None])
            if faults:
                break
        if len(images) == len(POISONS):
            faults += _unwritten(call, images)
        repeats = all(a.tobytes() == b.tobytes() for a, b in zip(images[0], images[-1], strict=True))
        return Ran(tuple(images[0]), tuple(faults), repeats)

    def _take(self, block: Block) -> Array:
        return self.arena.view(block).copy()

    def _memory_faults(self, call: Call, blocks: Sequence[Block | None], before: list[Array]) -> list[MemoryFault]:
        faults = [
            fault
            for position, block in enumerate(blocks)
            if block is not None and (fault := self.arena.canary_fault(call.name(position), block))
        ]
        inputs = [(i, block) for i, block in enumerate(blocks[: len(call.inputs)]) if block is not None]
        for (position, block), image in zip(inputs, before, strict=True):
            changed = self.arena.storage(block) != image
            if changed.any():
                detail = f"the kernel wrote to this input, first at byte {int(np.argmax(changed))}"
                faults.append(MemoryFault("input_modified", call.name(position), detail))
        return faults

    def _ask(self, blocks: Sequence[Block | None], call: Call) -> Reported | Stopped | None:
        """Make the call in the runner; None where it returned 0."""
        worker = self._worker or self._start()
        self._calls += 1
        body = {
            "call": self._calls,
            "arena": self.arena.size,
            "used": self.arena.used,
            "tensors": [block.header() if block else None for block in blocks],
            "attributes": [value.hex() if isinstance(value, float) else value for value in call.attributes],
        }
        try:
            answer: Message | Ending | Garbled = worker.ask(Message(body), timeout_s=self.timeout_s)
        except RunError as error:
            answer = Garbled(error.message)
        match answer:
            case Message({"call": self._calls, "status": 0}):
                return None
            case Message({"call": self._calls, "status": int(), "message": str(message)}):
                return Reported(message)
            case Message(body):
                answer = Garbled(f"a message with {', '.join(map(str, body)) or 'nothing'}")
        self._stop()
        return Stopped(answer)

    def _start(self) -> Worker:
        goal = target(self.kernel.key.target)
        if reason := goal.why_not_here():
            raise MachineError(f"kernels for {goal.name} cannot run here: {reason}")
        assert goal.run is not None
        is_native = goal.run.how == "native"
        module = f"hfreg.kernels.runner.{'native' if is_native else goal.run.how}_worker"
        contents = [self.kernel.content, *([build_runtime(goal)] if is_native else [])]
        with contextlib.ExitStack() as files:
            descriptors = [_memory_file(content) for content in contents]
            for descriptor in descriptors:
                files.callback(os.close, descriptor)
            shared = [self.arena.descriptor, *descriptors]
            command = python_command(module, *map(str, (self.threads, *shared)))
            worker = Worker(command, env=clean_environment(), pass_fds=shared)
        self._worker = worker
        answer = worker.ask(Message({"hello": True}), timeout_s=START_TIMEOUT_S)
        if not isinstance(answer, Message):
            self._stop()
            raise MachineError(f"the runner for {goal.name} did not start: {Stopped(answer)}")
        return worker

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.__exit__(None, None, None)
            self._worker = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self.arena.close()


def _unwritten(call: Call, images: list[list[Array]]) -> list[MemoryFault]:
    """Elements that hold the poison of each run."""
    faults = []
    for position, (first, second) in enumerate(zip(*images, strict=True)):
        width = first.itemsize
        a, b = (image.reshape(-1).view(np.uint8).reshape(-1, width) for image in (first, second))
        untouched = (a == POISONS[0]).all(axis=1) & (b == POISONS[1]).all(axis=1)
        if untouched.any():
            where = np.unravel_index(int(np.argmax(untouched)), first.shape)
            detail = (
                f"{int(untouched.sum())} of {first.size} elements were never written, first {list(map(int, where))}"
            )
            faults.append(MemoryFault("unwritten_output", call.name(len(call.inputs) + position), detail))
    return faults


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("hfreg-runner", 0)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor
