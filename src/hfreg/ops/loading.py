"""Import a Python file of an op package. Only child processes call this."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from hfreg.errors import UsageError


def load_module(path: Path, name: str) -> ModuleType:
    """Import a file under a name of its own.

    Raises:
        UsageError: there is no such file.
    """
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None or not path.is_file():
        raise UsageError("there is no such Python file", where=str(path))
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module
