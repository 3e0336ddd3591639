"""`hfreg verify`: verify the passports of an op version, or one bundle in a file."""

from __future__ import annotations

from pathlib import Path

import click

from hfreg.cli.options import json_option, key_option, print_json, registry_option


@click.command(
    "verify",
    help="Verify the passports of REF (name@version), offline: every blob, signature, claim and digest. "
    "With a FILE: one Sigstore bundle.",
)
@click.argument("reference", metavar="REF|FILE")
@registry_option
@key_option
@json_option
def command(reference: str, registry: Path | None, keys: tuple[Path, ...], as_json: bool) -> None:
    """Verify, and print a readable passport. Exit status 1 where something does not hold or a kernel failed."""
    from hfreg.errors import VerificationError
    from hfreg.files import kind_of, read_plain
    from hfreg.passports.bundle import MAX_BUNDLE_BYTES
    from hfreg.passports.keys import trusted_keys
    from hfreg.passports.text import format_passport, format_statement
    from hfreg.passports.verifier import verify_bundle
    from hfreg.registry.passports import verify_version
    from hfreg.registry.registry import Registry
    from hfreg.versions import Reference

    trusted = trusted_keys(keys)
    if kind_of(Path(reference)) == "file":
        try:
            content = read_plain(Path(reference), limit=MAX_BUNDLE_BYTES)
        except OSError as error:
            raise VerificationError(f"cannot be read: {error.strerror}", where=reference) from error
        verified = verify_bundle(content, trusted, where=reference)
        if as_json:
            print_json(verified.as_json())
        else:
            click.echo(format_statement(verified))
        return
    version = Registry.open(registry).resolve(Reference.parse(reference))
    passports = verify_version(version, trusted)
    if as_json:
        print_json(
            {
                "operator": version.reference,
                "artifact": version.entry.digest,
                "package": version.config.package,
                "passports": [[statement.as_json() for statement in p.statements] for p in passports],
            }
        )
    else:
        click.echo(f"{version.reference}: every blob, signature and digest holds (artifact {version.entry.digest})\n")
        for passport in passports:
            click.echo(format_passport(passport))
    if any(passport.verification.verdict == "failed" for passport in passports):
        raise click.exceptions.Exit(1)
