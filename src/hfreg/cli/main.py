"""The entry point of the command line.

Commands live in modules of their own and are imported when they run, so that `hfreg --help` is quick.

Exit status: 0 success, 1 a failed verdict, 2 wrong use, 3 a fault of the environment.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import NoReturn

import click

from hfreg.errors import HfregError, MachineError

_COMMANDS = {
    "new": "Start an op package that already passes its tests.",
    "check": "Check op packages: manifest, files, golden tests.",
    "build": "Build kernels, twice, and compare the bytes.",
    "test": "Run kernels on golden cases and against the reference.",
    "bench": "Measure kernels against onnxruntime and the roofline.",
    "publish": "Build, test, measure, sign and publish op packages.",
    "list": "List what is published.",
    "show": "Show a published op version.",
    "key": "Print this machine's public key, for those who are to trust it.",
    "verify": "Verify passports, or a bundle in a file.",
    "matrix": "Export the compatibility matrix, or write its pages.",
    "coverage": "How much of an ONNX model a target covers, and what is missing.",
    "schema": "Print the JSON Schema of op.toml or of a predicate.",
}


class _LazyGroup(click.Group):
    """A group whose commands are modules of `hfreg.cli`, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"hfreg.cli.{cmd_name}_command").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hfreg", message="%(prog)s %(version)s")
def cli() -> None:
    """Operator registry with signed evidence: every kernel built, tested and measured before anyone believes it."""


def main() -> None:
    """Run the command line; errors that hfreg or the system raises become a message and an exit status."""
    try:
        sys.exit(cli.main(standalone_mode=False))  # the status of a command that ended with click's Exit
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except HfregError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_status)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        _stop(MachineError(error.strerror or str(error), where=str(error.filename or "")))
    except MemoryError:
        _stop(MachineError("out of memory"))


def _stop(error: MachineError) -> NoReturn:
    click.echo(f"error: {error}", err=True)
    try:
        sys.stdout.flush()
    except OSError:  # a full disk: the interpreter shall not try again
        with contextlib.suppress(OSError):
            sys.stdout.close()
    sys.exit(error.exit_status)


if __name__ == "__main__":
    main()
