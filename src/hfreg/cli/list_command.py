"""`hfreg list`: what is published."""

from __future__ import annotations

from pathlib import Path

import click

from hfreg.cli.options import json_option, print_json, print_table, registry_option


@click.command(
    "list",
    help="List the published op versions with their kernels' targets, as the registry has them: unverified.",
)
@registry_option
@json_option
def command(registry: Path | None, as_json: bool) -> None:
    """Print a line for each version."""
    from hfreg.registry.registry import Registry

    versions = Registry.open(registry).all_versions()
    report = [
        {
            "name": version.config.name,
            "version": version.config.version,
            "digest": version.entry.digest,
            "summary": version.op_manifest.summary,
            "targets": sorted({entry.key.target for entry in version.config.kernels}),
            "kernels": len(version.config.kernels),
        }
        for version in versions
    ]
    if as_json:
        print_json(report)
    elif not report:
        click.echo("nothing is published here; `hfreg publish PATH` adds to the registry", err=True)
    else:
        rows = [
            [f"{e['name']}@{e['version']}", str(e["kernels"]), " ".join(e["targets"]), str(e["summary"])]  # type: ignore[arg-type]
            for e in report
        ]
        print_table(rows, header=["operator", "kernels", "targets", "summary"])
