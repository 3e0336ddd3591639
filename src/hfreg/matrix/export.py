"""The matrix as one JSON document: the same passports give the same bytes."""

from __future__ import annotations

from typing import Any

from hfreg.matrix.matrix import Matrix

FORMAT = "https://hfreg.dev/matrix/v1"


def export_matrix(matrix: Matrix) -> dict[str, Any]:
    """Targets, op versions, those left out, and cells, each in one order."""
    return {
        "format": FORMAT,
        "newestEvidence": newest_evidence(matrix),
        "targets": [
            {"name": target.name, "summary": target.summary, "maturity": target.maturity} for target in matrix.targets
        ],
        "operators": [
            {
                "name": version.manifest.name,
                "version": version.manifest.version,
                "domain": version.manifest.operator.domain,
                "operator": version.manifest.operator.name,
                "sinceVersions": version.manifest.operator.since_versions,
                "summary": version.manifest.summary,
            }
            for version in matrix.versions
        ],
        "leftOut": [{"reference": name, "reason": reason} for name, reason in sorted(matrix.left_out.items())],
        "cells": [cell.as_json() for cell in matrix.cells],
    }


def newest_evidence(matrix: Matrix) -> str:
    """When the newest evidence was complete; empty where there is none."""
    return max((cell.measured_on for cell in matrix.cells), default="")
