"""Passports: signed statements about what was built and measured."""
