"""A matrix of op versions that do not exist, with passports that verify."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfreg.kernels.artifact import type_tuples
from hfreg.kernels.targets import Target
from hfreg.matrix.cells import VersionEvidence
from hfreg.matrix.matrix import Matrix, Request
from hfreg.ops.manifest import Manifest
from hfreg.ops.package import load_manifest
from hfreg.passports.passport import Passport, verify_passport
from unit import samples, signing

V3 = "x86_64-v3"
TARGETS = [
    Target(name=V3, summary="", maturity="available"),
    Target(name="x86_64-v4", summary="", maturity="available"),
    Target(name="aether", summary="", maturity="planned"),
]


def passport(manifest: Manifest, verdicts: Mapping[str, str] | str = "passed", *, target: str = V3) -> Passport:
    """A passport with a kernel for each combination of types and class; `verdicts` by the types' slug."""
    records = []
    for types in type_tuples(manifest):
        slug = "-".join(kind for _, kind in types) or "any"
        verdict = verdicts if isinstance(verdicts, str) else verdicts.get(slug)
        for entry in manifest.classes if verdict else ():
            name = f"{manifest.name}.{slug}.{entry.name}.{target}.halide"
            records.append(
                signing.kernel_record(
                    name,
                    signing.digest(name.encode()),
                    verdict=verdict or "",
                    types=dict(types),
                    attributeClass=entry.name,
                )
            )
    artifacts = {record["name"]: record["digest"] for record in records} | {"source.tar": "sha256:" + "3" * 64}
    about: dict[str, Any] = {"reference": manifest.reference, "target": target}
    return verify_passport(
        signing.passport(artifacts, records, **about),
        signing.TRUSTED,
        package=signing.PACKAGE,
        artifacts=artifacts,
        **about,
    )


def operator(
    body: str,
    verdicts: Mapping[str, str] | str = "passed",
    *,
    name: str = "sample",
    version: str = "1.0.0",
    onnx: str = "Sample",
    domain: str = "",
    since_versions: tuple[int, ...] = (1, 13),
) -> VersionEvidence:
    """An op version with a passport for x86_64-v3."""
    text = samples.manifest_text(body, name=name, version=version, operator=onnx, since_versions=since_versions)
    if domain:
        text = text.replace("[operator]\n", f'[operator]\ndomain = "{domain}"\n')
    manifest = load_manifest(text, "op.toml")
    return VersionEvidence(manifest, {V3: passport(manifest, verdicts)})


def matrix(*versions: VersionEvidence) -> Matrix:
    return Matrix(versions, TARGETS)


def request(**changes: Any) -> Request:
    """A node of the unary sample operator, or a change of it."""
    fields: dict[str, Any] = {
        "domain": "",
        "operator": "Sample",
        "since_version": 13,
        "attributes": {},
        "types": ("float32",),
        "shapes": ((2, 3),),
    }
    return Request(**(fields | changes))
