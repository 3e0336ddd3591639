"""The same package gives the same kernels wherever it is built, and whoever builds it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from integration.surface import PACKAGES, hfreg, host

pytestmark = pytest.mark.build

ONE_TYPE = 'T = ["float32"]'


def build(package: Path, home: Path, *, umask: int, **env: str) -> dict[str, Any]:
    """Build in a home of its own, with a cold cache; kernel digests by name."""
    folders = {name: str(home / name.lower()) for name in ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "HFREG_CACHE")}
    for folder in folders.values():
        Path(folder).mkdir(parents=True)
    result = hfreg(
        "build", package, "--target", host(), "--json",
        env=folders | env, umask=umask, cwd=home,
    )  # fmt: skip
    assert result.status == 0, str(result)
    return {entry["name"]: entry["digest"] for entry in result.json()}


def test_two_folders_two_homes_two_users(tmp_path: Path) -> None:
    """Halide and C kernels: other folders, umask, locale, time zone and hash seed."""
    one, other = tmp_path / "one" / "softmax", tmp_path / "quite another place" / "öp päckages" / "softmax"
    shutil.copytree(PACKAGES / "softmax", one)
    manifest = one / "op.toml"
    manifest.write_text(re.sub(r"^T = .*$", ONE_TYPE, manifest.read_text(), flags=re.MULTILINE))
    shutil.copytree(one, other)
    for path in other.rglob("*"):
        os.utime(path, (0, 86400 * 365 * 20))
    first = build(one, tmp_path / "home", umask=0o022, LC_ALL="C", TZ="UTC", PYTHONHASHSEED="1")
    second = build(
        other, tmp_path / "h", umask=0o077, LC_ALL="C.UTF-8", LANG="de_DE.UTF-8", TZ="Pacific/Auckland",
        PYTHONHASHSEED="2", SOURCE_DATE_EPOCH="0", CFLAGS="-O0", CPATH=str(tmp_path), COLUMNS="20",
    )  # fmt: skip
    assert len(first) == 3, "two classes in Halide and one in C"
    assert first == second


def test_no_path_of_the_builder_is_in_a_kernel(ten: Path, home: dict[str, str]) -> None:
    private = [value.encode() for value in home.values()] + [b"hfreg-build-", str(PACKAGES).encode()]
    for path in (ten / "blobs" / "sha256").iterdir():
        content = path.read_bytes()
        if content.startswith(b"\x7fELF"):
            assert not [value for value in private if value in content], path
