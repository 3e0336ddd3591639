"""Shape patterns: how a manifest writes the axes of a tensor.

    pattern := item*                     separated by blanks; none at all is a scalar
    item    := name                      one axis
             | name "..."                a group: any number of axes, also none
             | name "?"                  an axis that may be absent; its extent is then 1
             | "1"  |  "1?"              an axis of extent 1; one that may be absent
             | "(" name name ")"         one axis that the operator sees as two, the first one outer
             | "{" name name+ "}"        several axes that the kernel sees as one

The same name in two patterns is the same axis. `batch... m? k` is the left operand of a matrix product,
`n (g c) h w` an image whose channels are divided into groups.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

ItemKind = Literal["axis", "group", "optional", "one", "optional one", "split", "merge"]

_NAMES = r"[a-z]\w*(?:\s+[a-z]\w*)*"
_TOKEN = re.compile(
    rf"\s*(?:\(\s*(?P<split>{_NAMES})\s*\)"
    rf"|\{{\s*(?P<merge>{_NAMES})\s*\}}"
    r"|(?P<one>1\??)"
    r"|(?P<name>[a-z]\w*)(?P<mark>\.\.\.|\?)?)(?=\s|\(|\{|$)"
)
_FORMATS = {
    "axis": "{0}",
    "group": "{0}...",
    "optional": "{0}?",
    "one": "1",
    "optional one": "1?",
    "split": "({0})",
    "merge": "{{{0}}}",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a pattern."""

    kind: ItemKind
    axes: tuple[str, ...] = ()

    @property
    def axis(self) -> str:
        """Its only axis, or the first one; empty for an axis of extent 1."""
        return self.axes[0] if self.axes else ""

    @property
    def takes(self) -> int:
        """How many axes of a tensor it takes for certain."""
        return {"axis": 1, "one": 1, "split": 1, "merge": len(self.axes)}.get(self.kind, 0)

    def __str__(self) -> str:
        return _FORMATS[self.kind].format(" ".join(self.axes))


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
            items.append(_item(match, text))
            position = match.end()
        names = [name for item in items for name in item.axes]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{text!r} is no shape pattern: it names the axis {name} twice")
        return cls(tuple(items))

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of its axes."""
        return tuple(name for item in self.items for name in item.axes)

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of its groups."""
        return tuple(item.axis for item in self.items if item.kind == "group")

    def __str__(self) -> str:
        return " ".join(map(str, self.items))


def _item(match: re.Match[str], text: str) -> Item:
    if match["one"]:
        return Item("one" if match["one"] == "1" else "optional one")
    if match["name"]:
        kind: ItemKind = "group" if match["mark"] == "..." else "optional" if match["mark"] == "?" else "axis"
        return Item(kind, (match["name"],))
    names = tuple((match["split"] or match["merge"]).split())
    kind = "split" if match["split"] else "merge"
    if len(names) > 3 or len(names) < 2 or (kind == "split" and len(names) > 2):
        raise ValueError(f"{text!r} is no shape pattern: a split has two names, a merge two or three")
    return Item(kind, names)
