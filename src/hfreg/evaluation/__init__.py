"""Evaluation: kernels against references, bounds and the clock."""
