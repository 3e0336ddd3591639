from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfreg.ops.toml_lines import Path, key_lines, line_of

WHOLE = '''\
# [not.a.table]
title = "a # b"  # = c
a.b.c = 1
"x y".'z' = 'C:\\'

list = [ "]", # ]
  1,

  [ 2, 3 ], { k = 1, l = [ 4,
    5 ] },
]
text = """
key = 1
[table] \\"""
"""
raw = \'\'\'
other = 2
\'\'\'\'
date = 1979-05-27 07:32:00
[ table ]   # [x]
d = { e.f = "}", g = {} }
  [table.inner]
  h = -inf
[[rows]]
n = 1
[[rows]]
n = 2
[rows.sub]
o = 1
[[rows.deep]]
p = 1
[[rows.deep]]

p = 2'''

# Counted by hand.
LINES: dict[Path, int] = {
    (): 1,
    ("title",): 2,
    ("a",): 3,
    ("a", "b"): 3,
    ("a", "b", "c"): 3,
    ("x y",): 4,
    ("x y", "z"): 4,
    ("list",): 6,
    ("list", 0): 6,
    ("list", 1): 7,
    ("list", 2): 9,
    ("list", 2, 0): 9,
    ("list", 2, 1): 9,
    ("list", 3): 9,
    ("list", 3, "k"): 9,
    ("list", 3, "l"): 9,
    ("list", 3, "l", 0): 9,
    ("list", 3, "l", 1): 10,
    ("text",): 12,
    ("raw",): 16,
    ("date",): 19,
    ("table",): 20,
    ("table", "d"): 21,
    ("table", "d", "e"): 21,
    ("table", "d", "e", "f"): 21,
    ("table", "d", "g"): 21,
    ("table", "inner"): 22,
    ("table", "inner", "h"): 23,
    ("rows",): 24,
    ("rows", 0): 24,
    ("rows", 0, "n"): 25,
    ("rows", 1): 26,
    ("rows", 1, "n"): 27,
    ("rows", 1, "sub"): 28,
    ("rows", 1, "sub", "o"): 29,
    ("rows", 1, "deep"): 30,
    ("rows", 1, "deep", 0): 30,
    ("rows", 1, "deep", 0, "p"): 31,
    ("rows", 1, "deep", 1): 32,
    ("rows", 1, "deep", 1, "p"): 34,
}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_key_item_and_table_has_its_line(ending: str) -> None:
    text = WHOLE.replace("\n", ending)
    assert set(paths_of(tomllib.loads(text))) == set(LINES)
    assert key_lines(text) == LINES


def test_an_empty_document_has_its_root() -> None:
    assert key_lines("") == {(): 1}
    assert key_lines("\n# only a comment") == {(): 1}


def test_a_path_without_a_line_takes_that_of_what_is_around_it() -> None:
    lines = key_lines("a = 1\n[b]\nc = 2\n")
    assert line_of(lines, ("b", "c")) == 3
    assert line_of(lines, ("b", "missing")) == 2
    assert line_of(lines, ("b", "missing", 4, "deeper")) == 2
    assert line_of(lines, ("nowhere",)) == 1


def paths_of(value: Any, path: Path = ()) -> list[Path]:
    """Every path of a value that `tomllib` gives: the witness for which paths there are."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in paths_of(item, (*path, key)))]


@dataclass
class Writer:
    """Writes a document and notes, as it goes, the line on which everything begins."""

    text: str = ""
    lines: dict[Path, int] = field(default_factory=lambda: {(): 1})

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def value(self, draw: st.DrawFn, path: Path, depth: int = 0) -> None:
        kind = draw(st.sampled_from(["bare", "string", "string", "array", "table"][: 5 if depth < 2 else 3]))
        if kind == "bare":
            self.text += draw(st.sampled_from(["1", "-2.5e3", "true", "inf", "1979-05-27T07:32:00Z", "0xff"]))
        elif kind == "string":
            self.text += draw(strings)
        elif kind == "array":
            self.text += "["
            for index in range(draw(st.integers(0, 3))):
                self.text += draw(st.sampled_from(["", " ", "\n", " # ], [x]\n", "\n\n\t"]))
                self.lines[*path, index] = self.line
                self.value(draw, (*path, index), depth + 1)
                self.text += draw(st.sampled_from(["", "\n", " # , \n"])) + ","
            self.text += draw(st.sampled_from(["", "\n", "# ]\n"])) + "]"
        else:
            self.text += "{"
            for index in range(draw(st.integers(0, 2))):
                self.text += ", " if index else " "
                self.lines[*path, f"k{index}"] = self.line
                self.text += f"k{index} = "
                self.value(draw, (*path, f"k{index}"), depth + 1)
            self.text += " }"

    def pairs(self, draw: st.DrawFn, table: Path) -> None:
        for index in range(draw(st.integers(0, 3))):
            self.text += draw(st.sampled_from(["", "\n", "# x = [\n", "  "]))
            key = draw(st.sampled_from(["p{}", '"p{}"', "'p{}'"])).format(index)
            path: Path = (*table, f"p{index}")
            self.lines[path] = self.line
            if draw(st.booleans()):
                self.lines[*path, "dotted"] = self.line
                path, key = (*path, "dotted"), f"{key} . dotted"
            self.text += f"{key} = "
            self.value(draw, path)
            self.text += draw(st.sampled_from(["", " # comment = [1]", "\t"])) + "\n"


strings = st.sampled_from(
    [
        '""',
        "''",
        '"a = 1"',
        '"\\\\"',
        '"\\" # ["',
        "'\\'",
        "'# {'",
        '""""""',
        '"""a "quoted" word"""',
        '"""\n[x]\n\\"""\ny = 1\n"""',
        '"""ends with a quote""""',
        "''''''",
        "'''\n]\n'x'\n'''",
        "'''ends with two'''''",
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> Writer:
    writer = Writer()
    writer.pairs(draw, ())
    for number in range(draw(st.integers(0, 3))):
        name, rows = f"t{number}", draw(st.integers(0, 2))
        for row in range(max(1, rows)):
            table: Path = (name, row) if rows else (name,)
            writer.lines.setdefault((name,), writer.line)
            writer.lines[table] = writer.line
            writer.text += f"[[ {name} ]] # [[x]]\n" if rows else f"[{name}]\n"
            writer.pairs(draw, table)
    return writer


@given(documents())
def test_any_document_has_the_lines_on_which_it_was_written(document: Writer) -> None:
    assert set(paths_of(tomllib.loads(document.text))) == set(document.lines)
    assert key_lines(document.text) == document.lines


def test_an_escaped_key_is_found_under_the_name_that_it_spells() -> None:
    # TOML 1.0: quoted keys follow the rules of basic strings, so "\u0061b" is the key ab.
    text = 'x = 1\n"\\u0061b" = 2\n'
    assert tomllib.loads(text) == {"x": 1, "ab": 2}
    assert line_of(key_lines(text), ("ab",)) == 2
