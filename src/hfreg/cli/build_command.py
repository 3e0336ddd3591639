"""`hfreg build`: build the kernels of op packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hfreg.cli.options import (
    jobs_option,
    json_option,
    language_option,
    package_arguments,
    package_folders,
    print_json,
    print_table,
    target_option,
)


@click.command("build", help="Build every kernel twice, each in a fresh process, and compare the bytes.")
@package_arguments
@target_option
@language_option
@click.option("--output", "-o", type=click.Path(path_type=Path, file_okay=False), help="A folder to write kernels to.")
@jobs_option
@json_option
def command(
    paths: tuple[Path, ...],
    targets: tuple[str, ...],
    language: str | None,
    output: Path | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Build, and say what came of it."""
    from hfreg.ci.plan import chosen_languages, chosen_targets, packages_in, plan
    from hfreg.kernels.build import build_all
    from hfreg.ops.package import load_package
    from hfreg.progress import Progress

    packages = packages_in([load_package(folder) for folder in package_folders(paths)], language)
    goals = chosen_targets(targets)
    report: list[dict[str, Any]] = []
    for package in packages:
        keys = plan(package, goals, chosen_languages(package, language))
        step = Progress(f"building {package.manifest.reference}", len(keys)).step
        report += [_entry(built, output) for built in build_all(package, keys, jobs=jobs, progress=step)]
    if as_json:
        print_json(report)
    else:
        _print(report)
    if any("error" in entry for entry in report):
        raise click.exceptions.Exit(1)


def _entry(built: Any, output: Path | None) -> dict[str, Any]:
    from hfreg.kernels.artifact import Kernel
    from hfreg.kernels.targets import target

    here = target(built.key.target).why_not_here()
    entry: dict[str, Any] = {"name": built.key.slug, **built.key.as_json(), "unsupportedHere": here}
    if not isinstance(built, Kernel):
        return entry | {"error": str(built.error)}
    if output:
        output.mkdir(parents=True, exist_ok=True)
        suffix = "wasm" if built.content.startswith(b"\0asm") else "so"
        (output / f"{built.key.slug}.{suffix}").write_bytes(built.content)
    return entry | {"digest": built.digest, "bytes": len(built.content), "notes": built.notes}


def _print(report: list[dict[str, Any]]) -> None:
    rows = [
        [
            entry["name"],
            entry["digest"].removeprefix("sha256:")[:12] if "digest" in entry else "FAILED",
            str(entry.get("bytes", "")),
            entry.get("notes", {}).get("schedule", ""),
            f"unsupported here: {entry['unsupportedHere']}" if entry["unsupportedHere"] else "",
        ]
        for entry in report
    ]
    print_table(rows, header=["kernel", "digest", "bytes", "schedule", ""])
    for entry in report:
        if "error" in entry:
            click.echo(f"\n{entry['error']}", err=True)
