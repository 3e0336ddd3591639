"""Versions of op packages (SemVer 2.0.0) and references to them.

A reference is `name`, `name@1.2.0`, `name@^1.2` or `name@~1.2`. A caret admits what does not change the left-most
non-zero number, a tilde admits patch releases; a pre-release is admitted only by a reference that names it exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering

from semver import Version as _SemVer

from hfreg.errors import UsageError

MAX_LENGTH = 255
"""Of a version, as semver.org advises: numbers beyond any use are not read."""
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_RANGE = re.compile(r"(?P<kind>[\^~]?)(?P<numbers>(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){0,2})", re.ASCII)


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A SemVer version. Ordered by precedence, ties (build metadata) by text."""

    text: str

    def __post_init__(self) -> None:
        if len(self.text) > MAX_LENGTH or not _SemVer.is_valid(self.text):
            raise UsageError(
                f"{self.text!r} is not a version", hint="write three numbers, as in 1.0.0 (SemVer, see semver.org)"
            )

    @property
    def numbers(self) -> tuple[int, int, int]:
        parsed = _SemVer.parse(self.text)
        return parsed.major, parsed.minor, parsed.patch

    @property
    def is_prerelease(self) -> bool:
        return _SemVer.parse(self.text).prerelease is not None

    @property
    def rank(self) -> tuple[bool, Version]:
        """What to sort by where nobody asks for a version: any release comes above any pre-release."""
        return not self.is_prerelease, self

    def __lt__(self, other: Version) -> bool:
        order = _SemVer.parse(self.text).compare(other.text)
        return order < 0 or (order == 0 and self.text < other.text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Reference:
    """What a user writes to name an op package: a name and the versions that will do."""

    name: str
    range: str = ""
    """Empty for any version, an exact version, or `^` or `~` with one to three numbers."""

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read `name[@range]`.

        Raises:
            UsageError: not of that form.
        """
        name, at, wanted = text.partition("@")
        if not NAME.fullmatch(name) or (at and not wanted):
            raise UsageError(f"{text!r} is not a reference", hint="write name, name@1.2.0, name@^1 or name@~1.2")
        reference = cls(name, wanted)
        reference.admits(Version("0.0.0"))
        return reference

    def admits(self, version: Version) -> bool:
        """Whether a version is within the range.

        Raises:
            UsageError: the range does not parse.
        """
        if not self.range:
            return not version.is_prerelease
        if _SemVer.is_valid(self.range):
            return version.text == self.range
        match = _RANGE.fullmatch(self.range)
        is_whole = match is not None and not match["kind"] and match["numbers"].count(".") == 2
        if match is None or is_whole or len(self.range) > MAX_LENGTH:
            raise UsageError(
                f"{self.range!r} is not a version range", where=self.name, hint="write 1.2.0, 1.2, ^1 or ~1.2"
            )
        given = [int(number) for number in match["numbers"].split(".")]
        low = (*given, 0, 0)[:3]
        high = _upper(given, match["kind"])
        return not version.is_prerelease and low <= version.numbers < high

    def best(self, versions: Iterable[Version]) -> Version | None:
        """The highest version that it admits, or None."""
        return max((version for version in versions if self.admits(version)), default=None)

    def __str__(self) -> str:
        return f"{self.name}@{self.range}" if self.range else self.name


def _upper(given: list[int], kind: str) -> tuple[int, ...]:
    """The first numbers above the range: the place that may not change goes up by one."""
    if kind == "^":
        fixed = next((i for i, number in enumerate(given) if number), len(given) - 1)
    else:
        fixed = min(len(given), 2) - 1
    return (*given[:fixed], given[fixed] + 1)
