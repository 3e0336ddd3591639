"""`hfreg publish`: take op packages through the pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hfreg.cli.options import (
    jobs_option,
    json_option,
    package_arguments,
    package_folders,
    print_json,
    registry_option,
    target_option,
)


@click.command("publish", help="Build, test, measure, sign and publish op packages. A published version never changes.")
@package_arguments
@registry_option
@target_option
@click.option(
    "--measure",
    type=click.Choice(["full", "quick", "none"]),
    default="full",
    show_default=True,
    help="What to measure: everything; the first element type on the best target, briefly; or nothing.",
)
@jobs_option
@json_option
def command(
    paths: tuple[Path, ...],
    registry: Path | None,
    targets: tuple[str, ...],
    measure: str,
    jobs: int,
    as_json: bool,
) -> None:
    """Publish each package; the first one that is refused ends the run."""
    from hfreg.ci.bench import EFFORTS
    from hfreg.ci.pipeline import Pipeline, Publication
    from hfreg.ci.plan import chosen_targets
    from hfreg.ops.package import load_package
    from hfreg.passports.issue import LocalSigner
    from hfreg.passports.keys import load_or_create_signing_key, signing_key_path
    from hfreg.progress import Progress
    from hfreg.registry.registry import Registry, default_registry

    packages = [load_package(folder) for folder in package_folders(paths)]
    goals = chosen_targets(targets)
    key, is_new = load_or_create_signing_key(signing_key_path())
    if is_new:
        click.echo(f"made a signing key: {signing_key_path()} (`hfreg key` prints its public half)", err=True)
    pipeline = Pipeline(
        registry=Registry(registry or default_registry()),
        signer=LocalSigner(key),
        jobs=jobs,
        effort=EFFORTS[measure],
        start_progress=lambda title: lambda total: Progress(title, total).step,
    )
    done: list[Publication] = []
    for package in packages:
        publication = pipeline.publish(package, goals)
        done.append(publication)
        if not as_json:
            _print(publication)
    if as_json:
        print_json([_as_json(publication) for publication in done])
    if not all(publication.is_good for publication in done):
        raise click.exceptions.Exit(1)


def _print(publication: Any) -> None:
    reference = publication.package.manifest.reference
    if publication.status == "already there":
        click.echo(f"{reference} is published with the same content: nothing to do")
        return
    passed = sum(finding.verdict == "passed" for finding in publication.findings)
    click.echo(f"{reference} published: {passed} of {len(publication.findings)} kernels passed")
    for finding in publication.findings:
        if finding.verdict != "passed":
            click.echo(f"  {finding.key.slug}: {finding.verdict} {finding.reason}")


def _as_json(publication: Any) -> dict[str, Any]:
    return {
        "package": publication.package.manifest.reference,
        "status": publication.status,
        "digest": publication.digest,
        "kernels": [{"name": f.key.slug, "verdict": f.verdict, "reason": f.reason} for f in publication.findings],
    }
