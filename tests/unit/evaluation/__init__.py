"""Unit tests of `hfreg.evaluation`."""
