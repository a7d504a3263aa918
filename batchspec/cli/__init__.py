"""The command line: one file per command, no logic.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

import sys

import typer
from click.exceptions import Abort, ClickException, UsageError

from batchspec.cli.run import run
from batchspec.errors import BatchspecError

__all__ = ["app", "main"]

app = typer.Typer(
    name="batchspec",
    help="Offline batch inference with speculative decoding, exact acceptance metrics and reconciled totals.",
    epilog="Example: batchspec run prompts.jsonl --level detailed",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from batchspec import __version__

        typer.echo(__version__)
        raise typer.Exit


app.command("run")(run)


def main() -> None:
    """Run the command line; a mistake of the user's is one sentence on stderr, never a traceback."""
    try:
        status = app(standalone_mode=False)
    except UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "batchspec"
        _fail(f"{error.format_message().rstrip('.')} (see {command} --help)", status=2)
    except ClickException as error:
        _fail(error.format_message(), status=error.exit_code)
    except BatchspecError as error:
        _fail(str(error), status=2)
    except (Abort, KeyboardInterrupt):
        _fail("interrupted", status=130)
    else:
        sys.exit(status if isinstance(status, int) else 0)


def _fail(sentence: str, *, status: int) -> None:
    print(f"batchspec: {sentence}", file=sys.stderr)
    sys.exit(status)
