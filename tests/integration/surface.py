"""The command line, as users have it: in a process of its own, or in this one where a test needs many calls."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from hfreg.cli.main import main
from hfreg.kernels.targets import host_targets

REPOSITORY = Path(__file__).parents[2]
PACKAGES = REPOSITORY / "ops"
UNMEASURED = ("--measure", "none")
"""Publishing without times."""


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"exit status {self.status}\n{self.out}\n{self.err}"


def command(*arguments: str | Path) -> list[str]:
    """The command line of `hfreg ...` in this interpreter."""
    return [sys.executable, "-m", "hfreg.cli.main", *map(str, arguments)]


def hfreg(*arguments: str | Path, env: Mapping[str, str] | None = None, **options: Any) -> Result:
    """Run `hfreg ...` in a process of its own."""
    ended = subprocess.run(
        command(*arguments), env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False, **options
    )
    return Result(ended.returncode, ended.stdout, ended.stderr)


def hfreg_here(*arguments: str | Path) -> Result:
    """Run `hfreg ...` in this process: the same `main`, without the start of an interpreter."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with (
        mock.patch.object(sys, "argv", ["hfreg", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            status = int(stop.code or 0)
    return Result(status, out.getvalue(), err.getvalue())


def host() -> str:
    """The best target of this machine."""
    return host_targets()[0].name
