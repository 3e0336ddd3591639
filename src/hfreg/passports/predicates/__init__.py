"""The predicates of a passport: where kernels come from, and what they are worth."""

from hfreg.passports.predicates.provenance import PROVENANCE_TYPE, Provenance
from hfreg.passports.predicates.verification import VERIFICATION_TYPE, Verification

__all__ = ["PROVENANCE_TYPE", "VERIFICATION_TYPE", "Provenance", "Verification"]
