"""`hfreg schema`: print JSON Schemas."""

from __future__ import annotations

import click

from hfreg.cli.options import print_json


@click.command("schema", help="Print the JSON Schema of op.toml (op) or of the verification predicate (verification).")
@click.argument("name", type=click.Choice(["op", "verification"]))
def command(name: str) -> None:
    """Print one schema."""
    if name == "op":
        from hfreg.ops.manifest import json_schema as op_schema

        print_json(op_schema())
    else:
        from hfreg.passports.predicates.verification import json_schema as verification_schema

        print_json(verification_schema())
