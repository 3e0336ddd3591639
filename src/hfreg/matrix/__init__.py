"""The compatibility matrix: what verified passports say, and nothing else."""
