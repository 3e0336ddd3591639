"""Unit tests of `hfreg.ops`."""
