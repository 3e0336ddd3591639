"""Digests and canonical JSON: the names of things.

A digest is written `sha256:<64 hexadecimal digits>`. Canonical JSON is RFC 8785, so the same value always has the
same bytes. Parsing is strict: what two parsers could read differently (duplicate keys, NaN, a byte order mark, bytes
after the value) is refused. Numbers are IEEE 754 doubles, as RFC 8785 has them: an integer that a double need not hold
is read as one.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import rfc8785

from hfreg.errors import VerificationError

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
EXACT = 1 << 53
"""Integers below this are doubles, each one a number of its own."""

JsonValue = Any
"""What `json` reads and writes: None, bool, int, float, str, list, and dict with str keys."""


def sha256(data: bytes) -> str:
    """The digest of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """The digest of a file's content."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(files: Mapping[str, bytes] | Iterable[tuple[str, bytes]]) -> str:
    """The digest of a set of files: of the canonical JSON that maps each relative path to its content's digest."""
    return json_digest({path: sha256(content) for path, content in dict(files).items()})


def json_digest(value: JsonValue) -> str:
    """The digest of a value's canonical JSON."""
    return sha256(canonical_json(value))


def canonical_json(value: JsonValue) -> bytes:
    """RFC 8785 JSON.

    Raises:
        ValueError: the value holds something that JSON cannot (NaN, an integer beyond 2**53, an object).
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise ValueError(f"not representable in canonical JSON: {error}") from error


def parse_json(data: bytes, *, where: str) -> JsonValue:
    """Parse JSON strictly.

    Raises:
        VerificationError: not UTF-8, not one JSON value, a duplicate key, NaN, a number beyond the largest double, or
            half of a surrogate pair.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse,
            parse_float=_double,
            parse_int=_integer,
        )
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        raise VerificationError(_explain(error), where=where) from error


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} appears twice in one JSON object")
        result[key] = value
    return result


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _double(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]}... is beyond the largest double")
    return number


def _integer(text: str) -> int | float:
    number = _double(text)
    return int(text) if abs(number) < EXACT else number


def _explain(error: ValueError | RecursionError) -> str:
    match error:
        case UnicodeDecodeError():
            return f"not UTF-8 text (byte {error.start})"
        case UnicodeEncodeError():
            return "half of a surrogate pair is no text"
        case json.JSONDecodeError():
            return f"not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        case RecursionError():
            return "JSON nested too deeply"
        case _:
            return str(error)


def is_digest(text: str) -> bool:
    """Whether a string is a well-formed digest."""
    return DIGEST.fullmatch(text) is not None


def short(digest: str) -> str:
    """The first twelve hexadecimal digits, for people."""
    return digest.removeprefix("sha256:")[:12]
