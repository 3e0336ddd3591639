"""`hfreg coverage`: how much of a model a target covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hfreg.cli.options import json_option, key_option, print_json, print_table, registry_option, target_option


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
    from hfreg.matrix.matrix import Matrix
    from hfreg.matrix.model import load_model, model_nodes
    from hfreg.passports.keys import trusted_keys

    nodes = list(model_nodes(load_model(model)))
    matrix = Matrix.open(registry, trusted=trusted_keys(keys))
    chosen = targets or tuple(target.name for target in matrix.targets)
    found = [cover(matrix, nodes, model=model.name, target=name) for name in chosen]
    if as_json:
        print_json([coverage.as_json() for coverage in found])
        return
    for coverage in found:
        _print(coverage)


def _print(coverage: Any) -> None:
    types, nodes = coverage.types, coverage.nodes
    click.echo(f"{coverage.model} on {coverage.target}")
    for what, ratio in (("operator types", types), ("nodes", nodes)):
        click.echo(f"  {what}: C = ({ratio.support} + {ratio.custom}) / {ratio.total} = {ratio.value:.1%}")
    if coverage.served:
        click.echo("  served by " + ", ".join(f"{name} ({count})" for name, count in coverage.served.items()))
    rows = [[f"  {gap.type_name}", str(gap.nodes), gap.code, gap.detail] for gap in coverage.gaps]
    if rows:
        print_table(rows, header=["  missing", "nodes", "reason", ""])
    click.echo()
