from __future__ import annotations

import json
from pathlib import Path

import pytest

from hfreg.matrix.cells import VersionEvidence
from hfreg.matrix.export import export_matrix
from hfreg.matrix.matrix import Matrix
from hfreg.matrix.pages import render_site
from hfreg.passports.passport import verify_passport
from hfreg.registry.registry import PassportBundles, Registry
from unit import publishing, samples, signing
from unit.matrix.made import V3, matrix, operator

ARTIFACT = publishing.artifact_of(publishing.load())
PASSPORTS = publishing.passports_of(ARTIFACT)


@pytest.mark.parametrize("order", [1, -1], ids=["as written", "backwards"])
def test_each_passport_has_a_page_with_its_own_bundles_beside_it(tmp_path: Path, order: int) -> None:
    provenance, verification = PASSPORTS[0].bundles
    stored = PassportBundles(V3, PASSPORTS[0].bundles[::order])
    Registry(tmp_path / "registry").publish(ARTIFACT, [stored])
    found = Matrix.open(tmp_path / "registry", trusted=signing.TRUSTED)
    site = render_site(found)
    stem = f"passports/sample@1.0.0-{V3}"
    assert site.files[f"{stem}.provenance.sigstore.json"] == provenance
    assert site.files[f"{stem}.verification.sigstore.json"] == verification
    assert b"sample@1.0.0" in site.files[f"{stem}.html"]
    assert json.loads(site.files["matrix.json"]) == export_matrix(found)
    site.write(tmp_path / "site")
    assert (tmp_path / "site" / f"{stem}.html").read_bytes() == site.files[f"{stem}.html"]
    assert render_site(found) == site


def test_a_row_is_about_the_best_version() -> None:
    found = matrix(operator(samples.UNARY, version="1.0.0"), operator(samples.UNARY, version="2.0.0-rc.1"))
    index = render_site(found).files["index.html"].decode()
    assert "1.0.0" in index and "2.0.0-rc.1" not in index


HOSTILE = "<script>alert('&')</script>"


def test_what_a_passport_says_is_text_and_nothing_else() -> None:
    name = f"sample.float32.general.{V3}.halide"
    artifacts = {name: "sha256:" + "1" * 64, "source.tar": "sha256:" + "3" * 64}
    record = signing.kernel_record(
        name, artifacts[name], verdict="crashed", detail=HOSTILE, notes={"schedule": HOSTILE}
    )
    passport = verify_passport(
        signing.passport(artifacts, [record], reason=HOSTILE),
        signing.TRUSTED, reference="sample@1.0.0", target=V3, package=signing.PACKAGE, artifacts=artifacts,
    )  # fmt: skip
    evidence = VersionEvidence(samples.manifest(samples.UNARY), {V3: passport})
    pages = [content for path, content in render_site(matrix(evidence)).files.items() if path.endswith(".html")]
    assert any(b"&lt;script&gt;" in page for page in pages)
    assert not any(b"<script>alert" in page for page in pages)


@pytest.mark.parametrize(("speedups", "shown"), [([2.0, 0.5], "1.00"), ([-1.0, 1.5], "1.50"), ([0.0, None], None)])
def test_the_speedup_of_a_cell_is_a_geometric_mean_of_figures_that_can_be(
    speedups: list[float | None], shown: str | None
) -> None:
    name = f"sample.float32.general.{V3}.halide"
    artifacts = {name: "sha256:" + "1" * 64, "source.tar": "sha256:" + "3" * 64}
    measured = [
        {"workload": "w", "shapes": {}, "threads": 1, "rounds": 3, "medianNs": 7.0, "p10Ns": 6.0, "p90Ns": 8.0}
        | {"madNs": 1.0, "bytes": 1.0, "bandwidthGbS": 1.0, "peakBandwidthGbS": 1.0, "bandwidthUse": 1.0}
        | {"speedup": speedup}
        for speedup in speedups
    ]
    passport = verify_passport(
        signing.passport(artifacts, [signing.kernel_record(name, artifacts[name], performance=measured)]),
        signing.TRUSTED, reference="sample@1.0.0", target=V3, package=signing.PACKAGE, artifacts=artifacts,
    )  # fmt: skip
    page = render_site(matrix(VersionEvidence(samples.manifest(samples.UNARY), {V3: passport})))
    text = page.files["operators/sample.html"].decode()
    assert shown is None or shown in text
