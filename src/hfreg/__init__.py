"""hfreg: an operator registry with signed evidence of what every kernel is worth.

import hfreg as hf

softmax = hf.load("softmax@^1")     # resolves, verifies, loads
y = softmax(x, axis=-1)             # NumPy arrays and DLPack tensors
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hfreg.errors import HfregError
    from hfreg.loading import LoadedOperator, load
    from hfreg.matrix.matrix import Matrix

__all__ = ["HfregError", "LoadedOperator", "Matrix", "load"]

_HOMES = {
    "HfregError": "hfreg.errors",
    "LoadedOperator": "hfreg.loading",
    "Matrix": "hfreg.matrix.matrix",
    "load": "hfreg.loading",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is used: `import hfreg` alone costs next to nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("hfreg")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'hfreg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
