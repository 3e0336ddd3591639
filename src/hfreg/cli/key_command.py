"""`hfreg key`: the public half of this machine's signing key."""

from __future__ import annotations

import click

from hfreg.cli.options import json_option, print_json


@click.command("key", help="Print this machine's public key (PEM). Who trusts it passes it to others with --key.")
@json_option
def command(as_json: bool) -> None:
    """Print the key; it is made where there is none yet."""
    from hfreg.passports.keys import load_or_create_signing_key, signing_key_path

    key, _ = load_or_create_signing_key(signing_key_path())
    pem = key.public.pem().decode()
    if as_json:
        print_json({"hint": key.public.hint, "pem": pem})
    else:
        click.echo(pem, nl=False)
