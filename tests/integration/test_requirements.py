"""The locked requirements: every package at one version, every file of it by its hash, and no address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from integration.surface import REPOSITORY

FILES = sorted((REPOSITORY / "requirements").iterdir())
PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[0-9.]+)( +--hash=sha256:[0-9a-f]{64})+ *")


def pins(path: Path) -> dict[str, str]:
    """The versions in a file, all of whose lines must be comments or pins with hashes."""
    lines = path.read_text().replace("\\\n", "").splitlines()
    found = [PIN.fullmatch(line) or pytest.fail(line) for line in lines if line and not line.lstrip().startswith("#")]
    return {match["name"]: match["version"] for match in found}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_holds_pins_with_hashes_and_no_address(path: Path) -> None:
    assert pins(path)
    assert "://" not in path.read_text()


def test_each_file_repeats_the_one_below_it() -> None:
    base, build, dev, package = (
        pins(REPOSITORY / f"requirements/{name}.txt") for name in ("base", "build", "dev", "package")
    )
    assert base.items() <= build.items() <= dev.items()
    assert package.items() <= dev.items()


def test_what_the_project_asks_for_is_locked() -> None:
    asked = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    groups = {
        "base": asked["project"]["dependencies"],
        "build": asked["project"]["optional-dependencies"]["build"],
        "package": asked["dependency-groups"]["package"],
        "dev": [entry for entry in asked["dependency-groups"]["dev"] if isinstance(entry, str)],
        "models": asked["dependency-groups"]["models"],
    }
    for name, requirements in groups.items():
        locked = pins(REPOSITORY / f"requirements/{name}.txt")
        for requirement in map(Requirement, requirements):
            assert requirement.specifier.contains(locked[requirement.name.replace("_", "-")]), requirement
