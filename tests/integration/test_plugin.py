"""An op package is a test suite: `pytest ops/relu` collects, chooses, runs and measures its kernels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.surface import PACKAGES, host

pytestmark = pytest.mark.build

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs pytest on a package, as its author would: without this repository's configuration."""

    def run(folder: Path, *options: str) -> tuple[int, str]:
        command = [
            sys.executable,
            "-m",
            "pytest",
            str(folder),
            "--rootdir",
            str(folder),
            "-c",
            str(tmp_path / "none.ini"),
        ]
        (tmp_path / "none.ini").write_text("[pytest]\n")
        choice = ("--hfreg-target", host(), "--hfreg-types", "float32", "-p", "no:cacheprovider")
        user = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        ended = subprocess.run([*command, *choice, *options], env=user, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    return run


def collected(output: str) -> set[str]:
    return set(re.findall(r"op\.toml::\S+::(\S+)$", output, re.MULTILINE))


def test_golden_cases_and_data_sets_are_collected(run: Run) -> None:
    status, output = run(PACKAGES / "relu", "--collect-only", "-q")
    golden = {
        f"D0/{case.name}/{number}"
        for case in (PACKAGES / "relu/golden").iterdir()
        for number, _ in enumerate(case.glob("test_data_set_*"))
        if "float16" not in case.name
    }
    assert status == 0, output
    names = collected(output)
    assert {"D1", "D2", "D5"} <= names
    assert len(names) == len(golden) + 3, output


def test_a_right_package_passes_and_can_be_chosen_from(run: Run) -> None:
    status, output = run(PACKAGES / "relu", "-k", "D2 or D5", "-n", "2")
    assert status == 0, output
    assert "2 passed" in output


def test_a_wrong_kernel_fails_with_its_verdict(run: Run, faulty_package: Path) -> None:
    status, output = run(faulty_package, "-k", "D5 and (segfault or unwritten)")
    assert status == 1, output
    assert re.search(r"D5/\S+: crashed: ", output), output
    assert re.search(r"D5/\S+: unwritten_output: ", output), output
    assert "Traceback" not in output


def test_a_broken_manifest_is_an_error_of_collecting(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/op.toml").write_text("name = 1\n")
    status, output = run(tmp_path / "broken")
    assert status == 2, output
    assert re.search(r"op\.toml:1: name: ", output), output


def test_workloads_are_measured(run: Run) -> None:
    options = ("--hfreg-bench", "--hfreg-threads", "1", "--hfreg-budget", "0.05", "-q")
    status, output = run(PACKAGES / "relu", *options)
    assert status == 0, output
    assert re.search(r"^\d+ passed", output, re.MULTILINE), output


def test_workloads_are_skipped_where_benchmarks_are_disabled(run: Run) -> None:
    status, output = run(PACKAGES / "relu", "--hfreg-bench", "--benchmark-disable", "-q", "-rs")
    assert status == 0, output
    assert "pytest-benchmark is disabled" in output
