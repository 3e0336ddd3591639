"""Every error that hfreg raises on purpose.

An error says *what* is wrong, *where*, and *what to do next*. The class decides the exit status of the command
line: 1 is a failed verdict, 2 wrong use, 3 a fault of the environment. Outcomes that a caller has to expect
(a kernel that crashes, a case that fails) are values, never exceptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding in a file that a person wrote."""

    where: str
    """`path:line`, or a path, or the name of an argument."""
    message: str
    """What is wrong and what would be right."""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class HfregError(Exception):
    """Base of all errors of hfreg.

    Args:
        message: what is wrong.
        where: the file, argument or record that it concerns.
        hint: what to do next.
    """

    exit_status = 1

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  {self.hint}" if self.hint else text


class ManifestError(HfregError):
    """An op package is not valid. All problems are reported at once."""

    def __init__(self, problems: Sequence[Problem], *, hint: str = "") -> None:
        count = len(problems)
        head = f"{count} problem{'s' if count != 1 else ''}"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in problems)]), hint=hint)
        self.problems = tuple(problems)


class BuildError(HfregError):
    """A kernel could not be built, or two builds of it differ."""


class RunError(HfregError):
    """A kernel, or a loaded operator, was called with something that it does not accept, or reported an error."""


class RegistryError(HfregError):
    """The registry refuses the request, or its content is not what its digests promise."""


class VerificationError(HfregError):
    """A passport, bundle, statement or artifact failed verification."""


class UntrustedKeyError(VerificationError):
    """A statement is signed with a key that is not trusted here. Nothing else is known to be wrong with it."""


class UsageError(HfregError):
    """The request itself makes no sense: an unknown name, a reference that does not parse."""

    exit_status = 2


class MachineError(HfregError):
    """Something that the machine should provide is missing or broken: a tool, a lock, disk space."""

    exit_status = 3
