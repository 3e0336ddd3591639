"""The pipeline: from a package to its passports in the registry."""
