"""The matrix as a static site: readable without JavaScript, every claim linked to its evidence.

index.html                               the matrix
operators/<name>.html                    one page for each operator
passports/<name>@<version>-<target>.html one page for each passport, with its bundles beside it
matrix.json                              the same as data
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from hfreg.files import write_atomic
from hfreg.kernels.targets import Target
from hfreg.matrix.cells import Cell, VersionEvidence, summarize
from hfreg.matrix.export import export_matrix, newest_evidence
from hfreg.matrix.matrix import Matrix
from hfreg.matrix.passport_view import passport_stem, passport_view
from hfreg.ops.manifest import Attribute, Manifest, Tensor
from hfreg.passports.predicates.verification import KernelRecord
from hfreg.resources import root_folder
from hfreg.versions import Version


@dataclass(frozen=True)
class Site:
    """Everything that goes into the pages, as content by relative path."""

    files: dict[str, bytes]

    def write(self, folder: Path) -> None:
        """Write the site into a folder. Pages of versions that are gone stay where they are."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content, sync=False)


def render_site(matrix: Matrix) -> Site:
    """Render all pages; the same matrix gives the same bytes."""
    environment = _environment()
    about = {"hfreg": installed_version("hfreg"), "newest": newest_evidence(matrix)}

    def page(template: str, root: str, **values: Any) -> bytes:
        return environment.get_template(template).render(root=root, site=about, **values).encode()

    files: dict[str, bytes] = {
        "matrix.json": json.dumps(export_matrix(matrix), indent=1).encode(),
        "index.html": page(
            "index.html.j2",
            "",
            rows=_index_rows(matrix),
            targets=_columns(matrix),
            left_out=sorted(matrix.left_out.items()),
        ),
    }
    for asset in sorted((root_folder("matrix") / "assets").iterdir()):
        files[f"assets/{asset.name}"] = asset.read_bytes()
    for name, versions in _by_name(matrix).items():
        operator = _operator_view(matrix, name, versions)
        files[f"operators/{name}.html"] = page("operator.html.j2", "../", operator=operator, targets=_columns(matrix))
    for version in matrix.versions:
        for passport in version.passports.values():
            stem = passport_stem(passport)
            files[f"passports/{stem}.html"] = page("passport.html.j2", "../", passport=passport_view(passport))
            for kind, statement in zip(("provenance", "verification"), passport.statements, strict=True):
                files[f"passports/{stem}.{kind}.sigstore.json"] = statement.bundle
    return Site(files)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(root_folder("matrix") / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["state"] = _state
    environment.globals["state_link"] = _state_link
    return environment


def _state(state: str) -> Markup:
    return Markup('<span class="state {0}">{0}</span>').format(state)


def _state_link(state: str, href: str) -> Markup:
    if not href:
        return _state(state)
    return Markup('<a class="state {0}" href="{1}">{0}</a>').format(escape(state), href)


def _columns(matrix: Matrix) -> list[Target]:
    """The targets in the order of the pages: what there is before what is planned, the best first."""
    return sorted(matrix.targets, key=lambda target: (not target.is_available, -target.order, target.name))


def _by_name(matrix: Matrix) -> dict[str, list[VersionEvidence]]:
    """The versions of each operator, the best one first."""
    found: dict[str, list[VersionEvidence]] = {}
    for version in matrix.versions:
        found.setdefault(version.manifest.name, []).append(version)
    for versions in found.values():
        versions.sort(key=lambda version: Version(version.manifest.version).rank, reverse=True)
    return dict(sorted(found.items()))


def _index_rows(matrix: Matrix) -> list[dict[str, Any]]:
    """A row for each operator, about its best version."""
    rows = []
    for name, versions in _by_name(matrix).items():
        newest = versions[0]
        rows.append(
            {
                "name": name,
                "version": newest.manifest.version,
                "onnx": _onnx_name(newest.manifest),
                "cells": [_index_cell(matrix, newest, target) for target in _columns(matrix)],
            }
        )
    return rows


def _index_cell(matrix: Matrix, version: VersionEvidence, target: Target) -> dict[str, str]:
    cells = [cell for cell in _cells_of(matrix, version) if cell.target == target.name]
    verified = sum(cell.state == "verified" for cell in cells)
    passport = version.passports.get(target.name)
    return {
        "state": summarize(cells),
        "href": f"passports/{passport_stem(passport)}.html" if passport else "",
        "count": f"{verified}/{len(cells)}" if passport else "",
    }


def _cells_of(matrix: Matrix, version: VersionEvidence) -> list[Cell]:
    manifest = version.manifest
    return [c for c in matrix.cells if (c.operator, c.version) == (manifest.name, manifest.version)]


def _onnx_name(manifest: Manifest) -> str:
    operator = manifest.operator
    return f"{operator.domain}::{operator.name}" if operator.domain else operator.name


def _operator_view(matrix: Matrix, name: str, versions: Sequence[VersionEvidence]) -> dict[str, Any]:
    return {
        "name": name,
        "summary": versions[0].manifest.summary,
        "versions": [_version_view(matrix, version) for version in versions],
    }


def _version_view(matrix: Matrix, version: VersionEvidence) -> dict[str, Any]:
    manifest = version.manifest
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in _cells_of(matrix, version):
        types = ", ".join(type_name for _, type_name in cell.types)
        rows.setdefault((types, cell.attribute_class), {})[cell.target] = cell
    return {
        "number": manifest.version,
        "onnx": _onnx_name(manifest),
        "since_versions": manifest.operator.since_versions,
        "inputs": [_tensor_text(key, tensor) for key, tensor in manifest.inputs.items()],
        "outputs": [_tensor_text(key, tensor) for key, tensor in manifest.outputs.items()],
        "attributes": [_attribute_text(key, attribute) for key, attribute in manifest.attributes.items()],
        "bound": manifest.accuracy.bound,
        "grade": manifest.determinism.grade,
        "license": manifest.license,
        "rows": [
            {
                "types": types,
                "attribute_class": attribute_class,
                "cells": [_cell_view(version, cells[target.name]) for target in _columns(matrix)],
            }
            for (types, attribute_class), cells in rows.items()
        ],
    }


def _tensor_text(name: str, tensor: Tensor) -> str:
    return f"{name}{'?' if tensor.optional else ''}: {tensor.type}[{tensor.shape}]"


def _attribute_text(name: str, attribute: Attribute) -> str:
    return f"{name}: {attribute.type}" + ("" if attribute.default is None else f" = {attribute.default}")


def _cell_view(version: VersionEvidence, cell: Cell) -> dict[str, str]:
    passport = version.passports.get(cell.target)
    kernel = cell.kernels[0] if cell.kernels else None
    record = passport.kernel(kernel.name) if passport and kernel else None
    anchor = f"#{kernel.name}" if kernel else ""
    return {
        "state": cell.state,
        "href": f"../passports/{passport_stem(passport)}.html{anchor}" if passport else "",
        "reason": cell.reason,
        "kernel": kernel.language if kernel and cell.state == "verified" else "",
        "error": _worst_ratio(record),
        "speedup": _best_speedup(record),
    }


def _worst_ratio(record: KernelRecord | None) -> str:
    ratios = [d.max_error_ratio for d in record.data_sets if d.max_error_ratio is not None] if record else []
    return f"{max(ratios):.2f}" if ratios else ""


def _best_speedup(record: KernelRecord | None) -> str:
    """The geometric mean over the workloads on one thread."""
    measured = record.performance if record else []
    ratios = [entry.speedup for entry in measured if entry.speedup and entry.speedup > 0 and entry.threads == 1]
    return f"{statistics.geometric_mean(ratios):.2f}" if ratios else ""
