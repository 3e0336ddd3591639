"""Data sets: what kernels are tried on. Each is built to expose one kind of fault; one module each."""

from hfreg.evaluation.datasets.distributions import distribution_cases
from hfreg.evaluation.datasets.golden import golden_cases
from hfreg.evaluation.datasets.shapes import shape_cases
from hfreg.evaluation.datasets.special_values import special_value_cases
from hfreg.evaluation.datasets.variants import variant_cases
from hfreg.evaluation.datasets.workloads import workload_cases

__all__ = [
    "distribution_cases",
    "golden_cases",
    "shape_cases",
    "special_value_cases",
    "variant_cases",
    "workload_cases",
]
