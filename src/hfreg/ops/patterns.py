"""Shape patterns: how a manifest writes the axes of a tensor.

    pattern := item*                     separated by blanks; none at all is a scalar
    item    := name                      one axis
             | name "..."                a group: any number of axes, also none
             | name "?"                  an axis that may be absent; its extent is then 1
             | "1"  |  "1?"              an axis of extent 1; one that may be absent
             | "(" name name ")"         one axis that the operator sees as two, the first one outer

The same name in two patterns is the same axis. `batch... m? k` is the left operand of a matrix product,
`n (g c) h w` an image whose channels are divided into groups.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

ItemKind = Literal["axis", "group", "optional", "one", "optional one", "split"]

_TOKEN = re.compile(
    r"\s*(?:(?P<split>\(\s*(?P<outer>[a-z]\w*)\s+(?P<inner>[a-z]\w*)\s*\))"
    r"|(?P<one>1\??)"
    r"|(?P<name>[a-z]\w*)(?P<mark>\.\.\.|\?)?)(?=\s|\(|$)"
)


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a pattern."""

    kind: ItemKind
    axis: str = ""
    inner: str = ""
    """The inner axis of a split."""

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(name for name in (self.axis, self.inner) if name)

    def __str__(self) -> str:
        return {
            "axis": self.axis,
            "group": f"{self.axis}...",
            "optional": f"{self.axis}?",
            "one": "1",
            "optional one": "1?",
            "split": f"({self.axis} {self.inner})",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The axes of one tensor."""

    items: tuple[Item, ...]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Read a pattern.

        Raises:
            ValueError: it does not follow the grammar, or names an axis twice.
        """
        items: list[Item] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"{text!r} is no shape pattern: cannot read {text[position:].strip()!r}")
            items.append(_item(match))
            position = match.end()
        names = [name for item in items for name in item.axes]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{text!r} is no shape pattern: it names the axis {name} twice")
        return cls(tuple(items))

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of its axes, splits opened."""
        return tuple(name for item in self.items for name in item.axes)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(item.axis for item in self.items if item.kind == "group")

    def __str__(self) -> str:
        return " ".join(map(str, self.items))


def _item(match: re.Match[str]) -> Item:
    if match["split"]:
        return Item("split", match["outer"], match["inner"])
    if match["one"]:
        return Item("one" if match["one"] == "1" else "optional one")
    kind: ItemKind = "group" if match["mark"] == "..." else "optional" if match["mark"] == "?" else "axis"
    return Item(kind, match["name"])
