"""Attribute values as Python callers write them: tuples, arrays and numbers of NumPy are as good as lists and ints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from operator import index
from typing import Any

import numpy as np

from hfreg.errors import RunError

_BEYOND = 1 << 63


def plain(kind: str, value: Any, *, where: str) -> Any:
    """A value in the form that a manifest has for attributes of a kind; what has none is left to the later checks.

    Raises:
        RunError: a number is beyond those of ONNX: 64-bit integers, and what a double holds.
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if kind == "ints" and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_number(index, item, where) for item in value]
    if kind == "int":
        return _number(index, value, where)
    if kind == "float" and isinstance(value, Real):
        return _number(float, value, where)
    return value


def _number(make: Callable[[Any], int | float], value: Any, where: str) -> Any:
    """The number, or the value itself where it is none or a truth value."""
    if isinstance(value, bool):
        return value
    try:
        number = make(value)
    except OverflowError:
        number = math.inf
    except TypeError:
        return value
    if isinstance(number, int) and not -_BEYOND <= number < _BEYOND:
        raise RunError("is beyond the integers of 64 bits", where=where)
    if number == math.inf and value != math.inf:
        raise RunError("is beyond the largest double", where=where)
    return number
