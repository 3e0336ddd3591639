"""`hfreg matrix`: the compatibility matrix, as data and as pages."""

from __future__ import annotations

from pathlib import Path

import click

from hfreg.cli.options import key_option, open_matrix, print_json, registry_option


@click.group("matrix", help="The compatibility matrix: export it, or write its pages.")
def command() -> None:
    """Group of the matrix commands."""


@command.command("export", help="Print the matrix as JSON: targets, op versions, cells.")
@registry_option
@key_option
def export(registry: Path | None, keys: tuple[Path, ...]) -> None:
    """Print the document."""
    from hfreg.matrix.export import export_matrix

    print_json(export_matrix(open_matrix(registry, keys)))


@command.command("pages", help="Write the matrix, its operators and passports as a static site.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@registry_option
@key_option
def pages(folder: Path, registry: Path | None, keys: tuple[Path, ...]) -> None:
    """Write the site."""
    from hfreg.matrix.pages import render_site

    site = render_site(open_matrix(registry, keys))
    site.write(folder)
    click.echo(f"{len(site.files)} files written; start at {folder / 'index.html'}")
