"""`hfreg new`: start an op package."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("new", help="Start an op package NAME that already passes `hfreg test`.")
@click.argument("name")
@click.option(
    "--in",
    "parent",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder to make it in.  [default: the current one]",
)
def command(name: str, parent: Path) -> None:
    """Write the package, and say what to do next."""
    from hfreg.ops.scaffold import new_package

    package = new_package(name, parent)
    folder = parent / name
    click.echo(f"{folder} is ready: {len(package.files)} files")
    click.echo(f"  1. write what it computes in {folder / 'semantics.py'}")
    click.echo(f"  2. write the oracle in {folder / 'reference.py'}, independently")
    click.echo(f"  3. describe both in {folder / 'op.toml'}")
    click.echo(f"  4. hfreg check {folder} && hfreg test {folder} && hfreg publish {folder}")
