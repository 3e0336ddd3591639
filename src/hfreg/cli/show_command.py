"""`hfreg show`: one published op version."""

from __future__ import annotations

from pathlib import Path

import click

from hfreg.cli.options import json_option, key_option, print_json, print_table, registry_option


@click.command("show", help="Show a published op version: its signature, its kernels and their states.")
@click.argument("reference", metavar="REF")
@registry_option
@key_option
@json_option
def command(reference: str, registry: Path | None, keys: tuple[Path, ...], as_json: bool) -> None:
    """Print the version."""
    from hfreg.kernels.targets import targets
    from hfreg.matrix.cells import VersionEvidence, derive
    from hfreg.passports.keys import trusted_keys
    from hfreg.registry.registry import Registry
    from hfreg.versions import Reference

    version = Registry.open(registry).resolve(Reference.parse(reference))
    evidence = VersionEvidence.of(version, trusted_keys(keys))
    manifest, cells = evidence.manifest, derive([evidence], list(targets().values()))
    if as_json:
        print_json(
            {
                "name": manifest.name,
                "version": manifest.version,
                "digest": version.entry.digest,
                "package": version.config.package,
                "manifest": manifest.model_dump(mode="json", by_alias=True),
                "layers": [layer.as_json() for layer in version.manifest.layers],
                "cells": [cell.as_json() for cell in cells],
            }
        )
        return
    click.echo(f"{manifest.reference}: {manifest.summary}")
    since = ", ".join(map(str, manifest.operator.since_versions))
    click.echo(
        f"  ONNX       {manifest.operator.domain or 'ai.onnx'}::{manifest.operator.name}, since-versions {since}"
    )
    for side, tensors in (("input", manifest.inputs), ("output", manifest.outputs)):
        for name, tensor in tensors.items():
            click.echo(f"  {side:10} {name}{'?' if tensor.optional else ''}: {tensor.type}[{tensor.shape}]")
    for name, attribute in manifest.attributes.items():
        default = "" if attribute.default is None else f" = {attribute.default}"
        click.echo(f"  attribute  {name}: {attribute.type}{default}")
    click.echo(f"  package    {version.config.package}\n  artifact   {version.entry.digest}\n")
    rows = [
        [
            ", ".join(name for _, name in cell.types),
            cell.attribute_class,
            cell.target,
            cell.state,
            cell.kernels[0].language if cell.serving else cell.reason,
        ]
        for cell in cells
        if cell.state != "planned"
    ]
    print_table(rows, header=["types", "class", "target", "state", ""])
