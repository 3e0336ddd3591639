"""`hfreg check`: validate op packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hfreg.cli.options import json_option, package_arguments, package_folders, print_json
from hfreg.errors import ManifestError


@click.command("check", help="Check op packages: manifest, files, golden tests. All problems are reported at once.")
@package_arguments
@json_option
def command(paths: tuple[Path, ...], as_json: bool) -> None:
    """Load every package and read its golden tests."""
    from hfreg.ops.check import check_package
    from hfreg.ops.package import read_package

    report: list[dict[str, Any]] = []
    for folder in package_folders(paths):
        try:
            package = read_package(folder)
            cases = check_package(package)
        except ManifestError as error:
            problems = [{"where": p.where, "message": p.message} for p in error.problems]
            report.append({"path": str(folder), "valid": False, "problems": problems})
            if not as_json:
                click.echo(f"{folder}: {error}", err=True)
            continue
        report.append(
            {
                "path": str(folder),
                "valid": True,
                "package": package.manifest.reference,
                "goldenCases": cases,
                "digest": package.digest,
            }
        )
        if not as_json:
            click.echo(f"{folder}: {package.manifest.reference} is valid, {cases} golden cases")
    if as_json:
        print_json(report)
    if not all(entry["valid"] for entry in report):
        raise click.exceptions.Exit(1)
