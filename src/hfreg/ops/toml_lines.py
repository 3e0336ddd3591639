"""Lines of the keys of a TOML document, so that a problem can name its line.

`tomllib` gives values without places. This scanner runs on text that `tomllib` has accepted, so it may trust the
syntax and only has to know where strings, comments, arrays and inline tables begin and end.
"""

from __future__ import annotations

import re
import tomllib

Path = tuple[str | int, ...]
_KEY = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*\.?""")
_SKIP = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)+")


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.lines: dict[Path, int] = {(): 1}
        self.counts: dict[Path, int] = {}

    def line(self) -> int:
        return self.text.count("\n", 0, self.position) + 1

    def skip(self) -> None:
        if match := _SKIP.match(self.text, self.position):
            self.position = match.end()

    def keys(self, end: str) -> tuple[str, ...]:
        """A dotted key up to `end`, which is passed over."""
        parts: list[str] = []
        while not self.text.startswith(end, self.position):
            match = _KEY.match(self.text, self.position)
            if match is None:
                raise ValueError(f"line {self.line()}: expected a key")
            parts.extend(tomllib.loads(f"{match[1]} = 0"))
            self.position = match.end()
        self.position += len(end)
        return tuple(parts)

    def mark(self, base: Path, keys: tuple[str, ...], line: int) -> Path:
        """Note the line of every prefix that has none yet; tables of an array are entered through their last one."""
        path = base
        for position, key in enumerate(keys, start=1):
            path = (*path, key)
            self.lines.setdefault(path, line)
            if path in self.counts and position < len(keys):
                path = (*path, self.counts[path] - 1)
        return path

    def document(self) -> None:
        table: Path = ()
        self.skip()
        while self.position < len(self.text):
            line = self.line()
            if self.text.startswith("[[", self.position):
                self.position += 2
                array = self.mark((), self.keys("]]"), line)
                index = self.counts.get(array, 0)
                self.counts[array] = index + 1
                table = (*array, index)
                self.lines[table] = line
            elif self.text.startswith("[", self.position):
                self.position += 1
                table = self.mark((), self.keys("]"), line)
                self.lines[table] = line
            else:
                self.pair(table)
            self.skip()

    def pair(self, table: Path) -> None:
        line = self.line()
        path = self.mark(table, self.keys("="), line)
        self.lines[path] = line
        self.value(path)

    def value(self, path: Path) -> None:
        while self.text[self.position] in " \t":
            self.position += 1
        opening = self.text[self.position]
        if opening in "\"'":
            self.string(opening)
        elif opening == "[":
            self.items(path)
        elif opening == "{":
            self.inline_table(path)
        else:
            end = re.compile(r"[,\]}\n#]").search(self.text, self.position)
            self.position = end.start() if end else len(self.text)

    def string(self, quote: str) -> None:
        mark = quote * 3 if self.text.startswith(quote * 3, self.position) else quote
        self.position += len(mark)
        while not self.text.startswith(mark, self.position):
            self.position += 2 if quote == '"' and self.text[self.position] == "\\" else 1
        self.position += len(mark)
        while len(mark) == 3 and self.text.startswith(quote, self.position):
            self.position += 1  # a quotation mark may stand right before the closing ones

    def items(self, path: Path) -> None:
        self.position += 1
        self.skip()
        index = 0
        while self.text[self.position] != "]":
            self.lines[(*path, index)] = self.line()
            self.value((*path, index))
            self.skip()
            index += 1
        self.position += 1

    def inline_table(self, path: Path) -> None:
        self.position += 1
        self.skip()
        while self.text[self.position] != "}":
            self.pair(path)
            self.skip()
        self.position += 1


def key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, of every key, array item and table of a valid TOML document, by path from the root."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of a path, or of the nearest thing around it that has one."""
    while path not in lines:
        path = path[:-1]
    return lines[path]
