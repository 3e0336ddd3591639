"""Conditions on shapes, which choose among the variants of a kernel: `m <= 32 && n >= 64`.

They are written over the axes of the operator's canonical views, in the operators of C on integers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from hfreg.errors import BuildError

_TOKEN = re.compile(r"\s*(?:(?P<name>[a-z]\w*)|\d+|&&|\|\||[<>=!]=|[-+*/%<>()])")
_IN_PYTHON = {"&&": " and ", "||": " or ", "/": "//"}


def check_condition(condition: str, axes: Collection[str]) -> None:
    """Check that a condition can be read, and that it is over known axes.

    Raises:
        BuildError: it cannot, or is not.
    """
    for token in _tokens(condition):
        if token[0].isalpha() and token not in axes:
            raise BuildError(f"the condition {condition!r} names {token!r}; axes: {sorted(axes)}")


def holds(condition: str, extents: Mapping[str, int]) -> bool:
    """Whether a condition holds for a call; an empty one always does.

    Args:
        condition: one that `check_condition` accepts.
        extents: the extent of each axis, none negative.
    """
    text = "".join(_IN_PYTHON.get(token, f" {token}") for token in _tokens(condition))
    return not text or bool(eval(text, {"__builtins__": {}}, dict(extents)))  # noqa: S307 - names, numbers, operators


def _tokens(condition: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while condition[position:].strip():
        match = _TOKEN.match(condition, position)
        if match is None:
            raise BuildError(f"cannot read the condition {condition!r} at {condition[position:]!r}")
        tokens.append(match[0].strip())
        position = match.end()
    return tokens
