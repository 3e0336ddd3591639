"""The one locator of the root folders (ops, kernels, passports, registry, matrix), installed or in a checkout."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Literal

from hfreg.errors import MachineError

RootFolder = Literal["ops", "kernels", "passports", "registry", "matrix"]

_PACKAGE = Path(__file__).resolve().parent


@cache
def root_folder(name: RootFolder) -> Path:
    """Where a root folder is: beside `src/` in a checkout, inside the package in an installed wheel.

    Raises:
        MachineError: it is in neither place.
    """
    candidates = (_PACKAGE / "_root" / name, _PACKAGE.parents[1] / name)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise MachineError(
        f"the data folder {name}/ is missing",
        where=str(candidates[0]),
        hint="install hfreg again: the wheel carries it",
    )


def data_home() -> Path:
    """Where hfreg keeps what must last: `$XDG_DATA_HOME/hfreg`, by default `~/.local/share/hfreg`."""
    return _folder("XDG_DATA_HOME") or Path.home() / ".local" / "share" / "hfreg"


def config_home() -> Path:
    """Where hfreg keeps keys: `$XDG_CONFIG_HOME/hfreg`, by default `~/.config/hfreg`."""
    return _folder("XDG_CONFIG_HOME") or Path.home() / ".config" / "hfreg"


def cache_home() -> Path:
    """Where hfreg keeps what it can make again: `$HFREG_CACHE`, `$XDG_CACHE_HOME/hfreg`, or `~/.cache/hfreg`."""
    explicit = os.environ.get("HFREG_CACHE")
    return Path(explicit).absolute() if explicit else _folder("XDG_CACHE_HOME") or Path.home() / ".cache" / "hfreg"


def _folder(variable: str) -> Path | None:
    """hfreg's folder in the one that a variable names; absolute, for child processes work in folders of their own."""
    value = os.environ.get(variable)
    return Path(value).absolute() / "hfreg" if value else None
