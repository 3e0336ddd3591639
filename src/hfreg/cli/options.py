"""Options and output that several commands share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hfreg.errors import UsageError

if TYPE_CHECKING:
    from hfreg.matrix.matrix import Matrix

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """`--json`: the whole result as one JSON document on standard output."""
    return click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")(function)


def registry_option(function: F) -> F:
    """`--registry`: the folder of the registry."""
    return click.option(
        "--registry",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="HFREG_REGISTRY",
        help="The registry's folder.  [default: $HFREG_REGISTRY or ~/.local/share/hfreg]",
    )(function)


def key_option(function: F) -> F:
    """`--key`: a further public key to trust."""
    return click.option(
        "--key",
        "keys",
        multiple=True,
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="A public key (PEM) to trust beside those in the configuration folder.",
    )(function)


def open_matrix(registry: Path | None, keys: Sequence[Path]) -> Matrix:
    """The matrix of a registry; what is left out of it is said on standard error."""
    from hfreg.matrix.matrix import Matrix
    from hfreg.passports.keys import trusted_keys

    matrix = Matrix.open(registry, trusted=trusted_keys(keys))
    for reference, reason in sorted(matrix.left_out.items()):
        click.echo(f"warning: left out {reference}: {reason}", err=True)
    return matrix


def target_option(function: F) -> F:
    """`--target`: one or more targets."""
    help_text = "A target; may be given more than once.  [default: all]"
    return click.option("--target", "targets", multiple=True, help=help_text)(function)


def jobs_option(function: F) -> F:
    """`--jobs`: how many kernels at a time."""
    return click.option(
        "--jobs", "-j", type=click.IntRange(1, 256), default=available_cpus, help="Kernels at a time.  [default: CPUs]"
    )(function)


def package_arguments(function: F) -> F:
    """PATH...: folders of op packages, or folders of such."""
    folder = click.Path(path_type=Path, exists=True, file_okay=False)
    return click.argument("paths", nargs=-1, required=True, type=folder)(function)


def available_cpus() -> int:
    """The CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def package_folders(paths: Sequence[Path]) -> list[Path]:
    """The op packages that the paths name.

    Raises:
        UsageError: a path holds none.
    """
    from hfreg.ops.package import find_packages

    found: list[Path] = []
    for path in paths:
        packages = find_packages(path)
        if not packages:
            raise UsageError("holds no op package", where=str(path), hint="a package is a folder with an op.toml")
        found.extend(packages)
    return list(dict.fromkeys(found))


def print_json(value: Any) -> None:
    """Print a value as JSON, for other programs."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def print_table(rows: Sequence[Sequence[str]], *, header: Sequence[str] = ()) -> None:
    """Print aligned columns; numbers to the right."""
    lines = [list(header), *map(list, rows)] if header else [list(row) for row in rows]
    if not lines:
        return
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        cells = [cell.rjust(w) if _is_number(cell) else cell.ljust(w) for cell, w in zip(line, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


def _is_number(text: str) -> bool:
    return bool(text) and text[0].isdigit() and text.replace(".", "").replace(",", "").rstrip("%×x").isdigit()


def language_option(function: F) -> F:
    """`--language`: kernels in one kernel language."""
    return click.option("--language", help="Only kernels in this language.  [default: all]")(function)
