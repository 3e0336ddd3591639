"""Messages between hfreg and its child processes: a JSON header, then the raw bytes of some arrays.

    "HFRG"  uint32 header length  header  array bytes ...

The header is `{"body": ..., "arrays": [{"name", "dtype", "shape"}, ...]}`. Nothing in a message is ever executed: what
comes from a child process is data from somebody else's code.
"""

from __future__ import annotations

import json
import math
import operator
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hfreg.dtypes import DTYPES, DType
from hfreg.errors import RunError

if TYPE_CHECKING:
    from hfreg.arrays import Array

MAGIC = b"HFRG"
_PREFIX = struct.Struct("<4sI")
MAX_HEADER = 16 << 20
MAX_ARRAYS = 1 << 32


@dataclass(frozen=True, slots=True)
class Message:
    """What one side says to the other."""

    body: dict[str, Any]
    arrays: dict[str, Array] = field(default_factory=dict)


def dump(message: Message) -> bytes:
    """The bytes of a message."""
    table = [
        {"name": name, "dtype": array.dtype.name, "shape": list(array.shape)} for name, array in message.arrays.items()
    ]
    header = json.dumps({"body": message.body, "arrays": table}).encode()
    contents = (array.tobytes() for array in message.arrays.values())
    return b"".join((_PREFIX.pack(MAGIC, len(header)), header, *contents))


def load(read: Callable[[int], bytes]) -> Message:
    """Read one message.

    Args:
        read: returns exactly the number of bytes asked for, or raises.

    Raises:
        RunError: what arrives is no message.
    """
    magic, length = _PREFIX.unpack(read(_PREFIX.size))
    if magic != MAGIC or length > MAX_HEADER:
        raise RunError("a child process sent something that is no message")
    try:
        header = json.loads(read(length))
        body, table = header["body"], header["arrays"]
        layouts = [
            (str(entry["name"]), DTYPES[entry["dtype"]], [operator.index(n) for n in entry["shape"]]) for entry in table
        ]
        if not isinstance(body, dict) or any(min(shape, default=0) < 0 for _, _, shape in layouts):
            raise RunError("a child process sent a message that cannot be read")
        if sum(math.prod(shape) * dtype.itemsize for _, dtype, shape in layouts) > MAX_ARRAYS:
            raise RunError("a child process sent more than 4 GiB")
        return Message(body, {name: _array(read, dtype, shape) for name, dtype, shape in layouts})
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise RunError(f"a child process sent a message that cannot be read: {error!r}") from error


def _array(read: Callable[[int], bytes], dtype: DType, shape: list[int]) -> Array:
    import numpy as np  # a runner process sends no arrays, and starts faster without NumPy

    content = bytearray(read(math.prod(shape) * dtype.itemsize))
    return np.frombuffer(content, dtype=dtype.numpy).reshape(shape)


def jsonable(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as a message body carries them: infinities and NaN have no JSON, so floats travel as hexadecimal."""
    return {name: {"float": value.hex()} if isinstance(value, float) else value for name, value in attributes.items()}


def from_jsonable(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `jsonable`."""
    return {
        name: float.fromhex(value["float"]) if isinstance(value, dict) else value for name, value in attributes.items()
    }
