"""The reference of a package, run in child processes."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from hfreg.arrays import Array
from hfreg.errors import RunError
from hfreg.ops.package import OpPackage, copy_package
from hfreg.ops.signature import Attributes, Shape, Types
from hfreg.processes import Worker, WorkerPool, clean_environment, python_command
from hfreg.wire import Message, jsonable

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Expected:
    """What the reference says about one call."""

    outputs: tuple[Array, ...]
    """float64 before rounding, or integers."""
    scale: Array | None = None
    """The error scale of the first output, where the package defines one."""


class Reference:
    """Child processes that run `reference.py`, one for each thread that calls. A context manager."""

    def __init__(self, package: OpPackage) -> None:
        self._package = package
        self._folder = tempfile.TemporaryDirectory(prefix="hfreg-reference-")
        folder = Path(self._folder.name)
        copy_package(package.files, folder)
        command = python_command("hfreg.ops.reference_worker", str(folder), package.name)
        self._calls = itertools.count()
        self._workers = WorkerPool(lambda: Worker(command, env=clean_environment(), cwd=folder))

    def __call__(
        self, inputs: Sequence[Array | None], attributes: Attributes, *, types: Types, scale: bool
    ) -> Expected:
        """Run one call.

        Args:
            inputs: values of the operator's element types; None for an absent input.
            attributes: all attributes.
            types: what the type variables stand for.
            scale: whether the error scale is wanted.

        Raises:
            RunError: the reference failed.
        """
        names = list(self._package.manifest.inputs)
        arrays = {name: array for name, array in zip(names, inputs, strict=True) if array is not None}
        used = {name: value for name, value in attributes.items() if name in self._package.reference_attributes}
        named = {variable: dtype.name for variable, dtype in types.items()}
        body = {
            "call": next(self._calls),
            "inputs": names,
            "attributes": jsonable(used),
            "types": named,
            "scale": scale,
        }
        where = f"{self._package.name}/reference.py"
        try:
            answer = self._workers.ask(Message(body, arrays), timeout_s=TIMEOUT_S)
        except RunError as error:
            raise RunError(error.message, where=where) from error
        if not isinstance(answer, Message):
            raise RunError(f"the reference process ended: {answer}", where=where)
        if "error" in answer.body:
            raise RunError(f"the reference failed:\n{answer.body['error']}", where=where)
        error_scale = answer.arrays.pop("scale", None)
        outputs, count = tuple(answer.arrays.values()), len(self._package.manifest.outputs)
        if len(outputs) != count:
            raise RunError(f"the reference returned {len(outputs)} outputs, expected {count}", where=where)
        if error_scale is not None and not _broadcasts(error_scale.shape, outputs[0].shape):
            shapes = f"{list(error_scale.shape)}, which does not broadcast to {list(outputs[0].shape)}"
            raise RunError(f"the error scale has the shape {shapes}", where=where)
        return Expected(outputs, error_scale)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.close()
        self._folder.cleanup()


def _broadcasts(shape: Shape, to: Shape) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))
