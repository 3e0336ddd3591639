"""The child process that runs a package's `reference.py`.

Started as `python -m hfreg.ops.reference_worker FOLDER NAME`, it answers each message (a call: inputs and attributes)
with the expected outputs, and the error scale where the package defines one. What the package prints goes to stderr.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from hfreg.arrays import Array
from hfreg.ops.loading import load_module
from hfreg.processes import Limits, apply_limits
from hfreg.wire import Message, from_jsonable
from hfreg.workers import serve


def main(folder: str, name: str) -> None:
    """Serve until the parent closes the stream."""
    apply_limits(Limits())
    module = load_module(Path(folder) / "reference.py", f"hfreg_reference_{name}")
    function, scale = getattr(module, name), getattr(module, "error_scale", None)
    serve(lambda call: _answer(function, scale, call))


def _answer(function: Any, scale: Any, call: Message) -> Message:
    """Run one call. Inputs arrive as the kernel gets them; floats are widened to float64, which is exact."""
    number: int = call.body["call"]
    names: list[str] = call.body["inputs"]
    inputs = [_widen(call.arrays[name]) if name in call.arrays else None for name in names]
    attributes = from_jsonable(call.body["attributes"])
    if "types" in inspect.signature(function).parameters:
        attributes["types"] = call.body["types"]
    try:
        with np.errstate(all="ignore"):
            expected = function(*inputs, **attributes)
            outputs = expected if isinstance(expected, tuple) else (expected,)
            arrays = {f"expected.{i}": _result(np.asarray(value)) for i, value in enumerate(outputs)}
            if scale is not None and call.body["scale"]:
                arrays["scale"] = np.asarray(scale(*inputs, expected=outputs[0], **attributes), dtype=np.float64)
    except Exception:
        return Message({"call": number, "error": traceback.format_exc(limit=-3)})
    return Message({"call": number}, arrays)


def _widen(array: Array) -> Array:
    return array if array.dtype.kind in "iub" else array.astype(np.float64)


def _result(array: Array) -> Array:
    """Integers as they are, real numbers as float64; anything else is a TypeError."""
    return array if array.dtype.kind in "iub" else array.astype(np.float64, casting="same_kind")


if __name__ == "__main__":
    main(*sys.argv[1:])
