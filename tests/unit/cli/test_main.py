"""What the system refuses becomes a message and an exit status, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LONG = "a" * 300
"""Longer than a file's name may be (NAME_MAX is 255)."""


def hfreg(folder: Path, *arguments: str, output: str = "", **environment: str) -> tuple[int, str]:
    """Exit status and standard error of `hfreg ...`, in a folder."""
    with Path(output or folder / "output").open("w") as file:
        ended = subprocess.run(
            [sys.executable, "-m", "hfreg.cli.main", *arguments],
            cwd=folder,
            env={"HOME": str(folder), **environment},
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("verify", LONG), 2, f"no operator '{LONG}' in the registry"),
        (("list", "--registry", LONG), 2, f"{LONG}: there is no registry"),
        (("new", LONG), 3, f"{LONG}: File name too long"),
        (("matrix", "pages", "/dev/null/x"), 3, "/dev/null/x: Not a directory"),
        (("build", ".", "-o", "/dev/null/x"), 2, "holds no op package"),
        (("verify", "/dev/zero"), 2, "'/dev/zero' is not a reference"),
        (("show", "relu", "--registry", "nowhere"), 2, "nowhere: there is no registry"),
        (("matrix", "export", "--registry", "/dev/null"), 2, "/dev/null: there is no registry"),
        (("list", "--registry", "/dev/fd/0/x"), 2, "there is no registry"),
    ],
)
def test_what_the_system_refuses_is_a_message(
    tmp_path: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    found, text = hfreg(tmp_path, *arguments)
    assert message in text
    assert found == status


def test_a_full_disk_behind_standard_output_is_said_once(tmp_path: Path) -> None:
    assert hfreg(tmp_path, "schema", "op", output="/dev/full") == (3, "error: No space left on device\n")


@pytest.mark.parametrize("is_file", [True, False])
def test_a_registry_that_the_environment_names_is_there(tmp_path: Path, is_file: bool) -> None:
    if is_file:
        (tmp_path / "named").touch()
    status, text = hfreg(tmp_path, "list", HFREG_REGISTRY="named")
    assert status == 2
    assert "named" in text


def test_the_registry_of_a_new_user_is_empty(tmp_path: Path) -> None:
    status, text = hfreg(tmp_path, "list")
    assert status == 0
    assert "nothing is published here" in text


def test_a_bundle_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "bundle.json").open("wb") as file:
        file.truncate(1 << 40)
    status, text = hfreg(tmp_path, "verify", "bundle.json")
    assert status == 1
    assert "bundle.json: cannot be read: it has 1099511627776 bytes" in text
