"""Unit tests of `hfreg.passports`."""
