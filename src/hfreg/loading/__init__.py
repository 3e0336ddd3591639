"""Loading: verified kernels as Python callables."""

from hfreg.loading.loader import load
from hfreg.loading.operator import LoadedOperator

__all__ = ["LoadedOperator", "load"]
