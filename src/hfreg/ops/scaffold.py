"""Start a new op package from the template in `ops/_template/`. It is valid and passes its tests as it is."""

from __future__ import annotations

import getpass
import json
import keyword
from pathlib import Path
from string import Template

import numpy as np

from hfreg.dtypes import DTYPES
from hfreg.errors import UsageError
from hfreg.ops.golden import write_golden
from hfreg.ops.package import MANIFEST, OpPackage, load_manifest, load_package
from hfreg.resources import root_folder
from hfreg.versions import NAME

INPUT = (0.5, -2.0, 3.0, 0.0)
OUTPUT = (0.25, 4.0, 9.0, 0.0)
"""Squares, worked out by hand and exact in every type."""


def new_package(name: str, parent: Path) -> OpPackage:
    """Write a package `parent/name`.

    Raises:
        UsageError: the name is not one, or the folder exists.
    """
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} is no name", hint="small letters, digits, single underscores, no Python keyword")
    folder = parent / name
    if folder.exists():
        raise UsageError("exists already", where=str(folder), hint="choose another name, or another folder with --in")
    operator = "".join(part.capitalize() for part in name.split("_"))
    values = {"name": name, "operator": operator, "maintainer": json.dumps(_user())}  # a string of JSON is one of TOML
    for source in sorted((root_folder("ops") / "_template").iterdir()):
        target = folder / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Template(source.read_text()).substitute(values))
    manifest = load_manifest((folder / MANIFEST).read_text(), str(folder / MANIFEST))
    for type_name in manifest.types["T"]:
        x, y = (np.array(values, dtype=DTYPES[type_name].numpy) for values in (INPUT, OUTPUT))
        source_text = "worked out by hand: 0.5 * 0.5 = 0.25, (-2) * (-2) = 4, 3 * 3 = 9"
        write_golden(folder / "golden" / f"squares_{type_name}", manifest, [x], [y], attributes={}, source=source_text)
    return load_package(folder)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "me"
