"""Unit tests of `hfreg.registry`."""
