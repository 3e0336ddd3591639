"""Unit tests of `hfreg.evaluation.datasets`."""
