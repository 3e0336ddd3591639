from __future__ import annotations

import pytest

from hfreg import errors
from hfreg.errors import HfregError, ManifestError, Problem

# design.md, section 10: 1 for a failed verdict, 2 for wrong use, 3 for a fault of the environment.
EXIT_STATUS = {
    "ManifestError": 1,
    "BuildError": 1,
    "RunError": 1,
    "RegistryError": 1,
    "VerificationError": 1,
    "UntrustedKeyError": 1,
    "UsageError": 2,
    "MachineError": 3,
}


@pytest.mark.parametrize(("name", "status"), EXIT_STATUS.items())
def test_the_class_of_an_error_decides_the_exit_status(name: str, status: int) -> None:
    error_class = getattr(errors, name)
    assert issubclass(error_class, HfregError)
    assert error_class.exit_status == status


def test_no_error_class_is_missing_from_the_table() -> None:
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, HfregError) and value is not HfregError
    }
    assert classes == set(EXIT_STATUS)


@pytest.mark.parametrize(
    ("where", "hint", "text"),
    [
        ("", "", "it broke"),
        ("op.toml:3", "", "op.toml:3: it broke"),
        ("", "mend it", "it broke\n  mend it"),
        ("op.toml:3", "mend it", "op.toml:3: it broke\n  mend it"),
    ],
)
def test_an_error_says_where_and_what_and_what_to_do_next(where: str, hint: str, text: str) -> None:
    error = HfregError("it broke", where=where, hint=hint)
    assert str(error) == text
    assert (error.message, error.where, error.hint) == ("it broke", where, hint)


@pytest.mark.parametrize(("where", "text"), [("op.toml:3", "op.toml:3: bad"), ("", "bad")])
def test_a_problem_names_its_place_where_it_has_one(where: str, text: str) -> None:
    assert str(Problem(where, "bad")) == text


@pytest.mark.parametrize(
    ("problems", "head"),
    [
        ([Problem("a", "x")], "1 problem\n  a: x"),
        ([Problem("a", "x"), Problem("b", "y")], "2 problems\n  a: x\n  b: y"),
    ],
)
def test_a_manifest_error_lists_all_problems(problems: list[Problem], head: str) -> None:
    error = ManifestError(problems, hint="see the manual")
    assert str(error) == f"{head}\n  see the manual"
    assert error.problems == tuple(problems)
