"""Unit tests of `hfreg.passports.predicates`."""
