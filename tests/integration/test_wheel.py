"""The wheel: what it carries, and what the base install does without the extra `build`.

The base install is a virtual environment that has the wheel and, by links, the packages of `requirements/base.txt`:
whatever else this environment has is absent there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

from integration.conftest import Once
from integration.surface import PACKAGES, REPOSITORY, Result, host

ROOT_FOLDERS = ("ops", "kernels", "passports", "registry", "matrix")
HEAVY = {"halide", "ziglang", "onnxruntime", "wasmtime", "mpmath", "pytest", "pytest_benchmark"}


def build(source: Path, output: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(output)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return next(output.glob("*.tar.gz")), next(output.glob("*.whl"))


@pytest.fixture(scope="module")
def built(once: Once) -> tuple[Path, Path]:
    folder = once("built", lambda output: build(REPOSITORY, output))
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def tracked(*folders: str) -> set[str]:
    """The files under folders of this checkout, without what Python writes beside them."""
    paths = (path for folder in folders for path in (REPOSITORY / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(REPOSITORY)) for path in paths if "__pycache__" not in path.parts}


def test_the_wheel_carries_the_program_and_the_root_folders(built: tuple[Path, Path]) -> None:
    names = {name for name in contents(built[1]) if ".dist-info/" not in name}
    program = {name.removeprefix("src/") for name in tracked("src/hfreg")}
    assert names == program | {f"hfreg/_root/{name}" for name in tracked(*ROOT_FOLDERS)}
    assert "hfreg/py.typed" in names


def test_the_sdist_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    sdist, wheel = built
    subprocess.run(["tar", "--extract", "--file", sdist, "--directory", tmp_path], check=True)
    _, again = build(next(tmp_path.iterdir()), tmp_path / "out")
    assert contents(again) == contents(wheel)


def link(name: str, site: Path) -> None:
    """Put an installed package into another `site-packages`, as links."""
    installed = distribution(name)
    for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
        target = Path(str(installed.locate_file(top)))
        if not (site / top).exists():
            (site / top).symlink_to(target)


def make_base(folder: Path, wheel: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in re.findall(r"^([a-z0-9-]+)==", (REPOSITORY / "requirements/base.txt").read_text(), re.MULTILINE):
        link(name, site)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)], check=True)


Base = Callable[..., Result]


@pytest.fixture(scope="module")
def base(once: Once, built: tuple[Path, Path], home: dict[str, str]) -> Base:
    """Runs a program of the base install, away from the checkout."""
    folder = once("base", lambda folder: make_base(folder, built[1]))

    def run(program: str, *arguments: str | Path) -> Result:
        command = [str(folder / "bin" / program), *map(str, arguments)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | home
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        return Result(ended.returncode, ended.stdout, ended.stderr)

    return run


def python(base: Base, code: str) -> str:
    result = base("python", "-c", code)
    assert result.status == 0, str(result)
    return result.out


def test_the_base_install_is_light(base: Base) -> None:
    found = python(base, f"import importlib.util as u; print([n for n in {sorted(HEAVY)} if u.find_spec(n)])")
    assert found == "[]\n"


def test_root_folders_are_found_in_the_package(base: Base) -> None:
    code = f"from hfreg.resources import root_folder as f; print([str(f(n)) for n in {ROOT_FOLDERS}])"
    assert all("/site-packages/hfreg/_root/" in folder for folder in eval(python(base, code)))


def test_the_command_says_its_version(base: Base) -> None:
    assert base("hfreg", "--version").out == "hfreg 0.1.0\n"


def test_packages_are_checked(base: Base) -> None:
    assert base("hfreg", "check", PACKAGES / "relu").status == 0


@pytest.mark.parametrize("command", ["build", "test"])
def test_building_says_that_the_extra_is_missing(base: Base, command: str) -> None:
    result = base("hfreg", command, PACKAGES / "relu", "--target", host())
    assert result.status == 3, str(result)
    assert "hfreg[build]" in result.err
    assert "Traceback" not in result.err


@pytest.mark.build
class TestWhatOthersPublished:
    """A compiler or an auditor needs no extra."""

    def test_it_is_listed(self, base: Base, small: Path) -> None:
        listed = json.loads(base("hfreg", "list", "--registry", small, "--json").out)
        assert [(entry["name"], entry["version"]) for entry in listed] == [("relu", "1.0.0")]

    def test_it_is_verified(self, base: Base, small: Path) -> None:
        result = base("hfreg", "verify", "relu@1.0.0", "--registry", small)
        assert result.status == 0, str(result)

    def test_pages_are_written(self, base: Base, small: Path, tmp_path: Path) -> None:
        result = base("hfreg", "matrix", "pages", tmp_path / "pages", "--registry", small)
        assert result.status == 0, str(result)
        assert "relu" in (tmp_path / "pages/index.html").read_text()

    def test_a_native_kernel_is_called(self, base: Base, small: Path) -> None:
        code = (
            "import numpy as np, hfreg, sys\n"
            f"relu = hfreg.load('relu@^1', registry={str(small)!r})\n"
            "print(relu(np.array([-1, 0, 2.5], np.float32)).tolist())\n"
            f"assert not {HEAVY} & set(sys.modules)\n"
        )
        assert eval(python(base, code)) == np.array([0, 0, 2.5]).tolist()


def seconds(base: Base, code: str, times: int = 7) -> float:
    """The least time that a piece of code takes in a new interpreter: what the machine does besides only adds to it."""
    timed = f"import time; a = time.perf_counter(); {code}; print(time.perf_counter() - a)"
    return min(float(python(base, timed)) for _ in range(times))


def test_importing_takes_at_most_a_tenth_of_a_second(base: Base) -> None:
    assert seconds(base, "import hfreg") <= 0.10
