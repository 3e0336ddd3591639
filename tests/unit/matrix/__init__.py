"""Unit tests of `hfreg.matrix`."""
