"""`hfreg coverage`: how much of a model a target covers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hfreg.cli.options import (
    json_option,
    key_option,
    open_matrix,
    print_json,
    print_table,
    registry_option,
    target_option,
)


@click.command("coverage", help="How much of a model a target covers with verified kernels, and why not the rest.")
@click.argument("model", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@target_option
@registry_option
@key_option
@json_option
def command(
    model: Path, targets: tuple[str, ...], registry: Path | None, keys: tuple[Path, ...], as_json: bool
) -> None:
    """Walk the model, subgraphs included, and ask the matrix about every node."""
    from hfreg.matrix.coverage import cover
    from hfreg.matrix.model import load_model, model_nodes

    nodes = list(model_nodes(load_model(model)))
    matrix = open_matrix(registry, keys)
    chosen = targets or tuple(target.name for target in matrix.targets)
    found = [cover(matrix, nodes, model=model.name, target=name) for name in chosen]
    if as_json:
        print_json([coverage.as_json() for coverage in found])
        return
    for coverage in found:
        _print_figures(coverage)
    _print_gaps(found)


def _print_figures(coverage: Any) -> None:
    types, nodes = coverage.types, coverage.nodes
    click.echo(f"{coverage.model} on {coverage.target}")
    for what, ratio in (("operator types", types), ("nodes", nodes)):
        click.echo(f"  {what}: C = ({ratio.support} + {ratio.custom}) / {ratio.total} = {ratio.value:.1%}")
    if coverage.served:
        click.echo("  served by " + ", ".join(f"{name} ({count})" for name, count in coverage.served.items()))


def _print_gaps(found: Sequence[Any]) -> None:
    """Each reason once, with the targets that it holds for."""
    targets: dict[tuple[str, int, str, str], list[str]] = {}
    for coverage in found:
        for gap in coverage.gaps:
            targets.setdefault((gap.type_name, gap.nodes, gap.code, gap.detail), []).append(coverage.target)
    rows = [
        [type_name, str(nodes), "all" if len(names) == len(found) else " ".join(names), f"{code}: {detail}"]
        for (type_name, nodes, code, detail), names in sorted(targets.items(), key=lambda entry: -entry[0][1])
    ]
    if rows:
        click.echo()
        print_table(rows, header=["not served", "nodes", "targets", "reason"])
