"""`hfreg test`: evaluate the kernels of op packages."""

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


@click.command("test", help="Run every kernel on golden cases and against the reference, each in a process of its own.")
@package_arguments
@target_option
@language_option
@jobs_option
@json_option
def command(paths: tuple[Path, ...], targets: tuple[str, ...], language: str | None, jobs: int, as_json: bool) -> None:
    """Evaluate, and say which kernels passed."""
    from hfreg.ci.examine import Finding, build, examine
    from hfreg.ci.plan import chosen_languages, chosen_targets, packages_in
    from hfreg.ops.package import load_package

    packages = packages_in([load_package(folder) for folder in package_folders(paths)], language)
    goals = chosen_targets(targets)
    found: list[Finding] = []
    for package in packages:
        languages = chosen_languages(package, language)
        built = build(package, goals, languages, jobs=jobs, progress=progress_of("building", package))
        found += examine(package, built, jobs=jobs, progress=progress_of("testing", package))
    if as_json:
        print_json([finding.as_json() for finding in found])
    else:
        _print(found)
    if not all(finding.is_good for finding in found):
        raise click.exceptions.Exit(1)


def progress_of(what: str, package: Any) -> Any:
    """Progress with the package's name."""
    from hfreg.progress import Progress

    return lambda total: Progress(f"{what} {package.manifest.reference}", total).step


def _print(found: list[Any]) -> None:
    rows = [
        [
            f.key.slug,
            f.verdict,
            str(f.cases),
            f"{f.max_ulp:.2f}",
            f"{f.max_error_ratio:.2f}",
            _reason(f).partition("\n")[0],
        ]
        for f in found
    ]
    print_table(rows, header=["kernel", "verdict", "cases", "max ULP", "error/bound", ""])
    for finding in found:
        if "\n" in finding.reason:
            click.echo(f"\n{finding.key.slug}: {_reason(finding)}", err=True)
        for failure in finding.failures:
            click.echo(f"\n{finding.key.slug}: {failure.case}: {failure.verdict}\n  {failure.detail}", err=True)


def _reason(finding: Any) -> str:
    """The reason without the kernel's name, which stands before it."""
    reason: str = finding.reason
    return reason.removeprefix(f"{finding.key.slug}: ")
