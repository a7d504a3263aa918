"""The command line: one file per command, no logic.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import typer

from batchspec.cli.bench import bench
from batchspec.cli.compare import compare
from batchspec.cli.convert import convert
from batchspec.cli.merge import merge
from batchspec.cli.reconcile import reconcile
from batchspec.cli.replay import replay
from batchspec.cli.report import report
from batchspec.cli.run import run
from batchspec.cli.signals import end_by_signals, status_of
from batchspec.cli.sweep import grid_hint, sweep
from batchspec.errors import BatchspecError, UsageError
from batchspec.plain_text import is_text, printable

__all__ = ["app", "main"]

# typer brings the exceptions of click along under a private name in newer versions; its public ones lead to them.
_UsageError = cast(type[Exception], typer.BadParameter.__bases__[0])

app = typer.Typer(
    name="batchspec",
    help="Offline batch inference with speculative decoding, exact acceptance metrics and reconciled totals.",
    epilog="Example: batchspec run prompts.jsonl --level detailed",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and exit.")
) -> None:
    if version:
        from batchspec import __version__

        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _interruptible(command: Callable[..., int]) -> Callable[..., int]:
    """Return the command, which says so when it is interrupted before it has anything to finish."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> int:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt as signal_error:
            print("batchspec: interrupted: run the same command again", file=sys.stderr)
            return status_of(signal_error)

    return guarded


app.command("run")(_interruptible(run))
app.command("merge")(_interruptible(merge))
app.command("bench")(_interruptible(bench))
app.command("report")(_interruptible(report))
app.command("reconcile")(_interruptible(reconcile))
app.command("convert")(_interruptible(convert))
app.command("replay")(_interruptible(replay))
app.command("sweep")(_interruptible(sweep))
app.command("compare")(_interruptible(compare))


def main() -> None:
    """Run the command line; a mistake of the user's is one sentence on stderr, never a traceback."""
    end_by_signals()
    try:
        _check_arguments()
        status = app(standalone_mode=False)
    except _UsageError as error:
        _fail(_sentence(error), status=2)
    except BatchspecError as error:
        _fail(str(error), status=2)
    except MemoryError:
        _fail("out of memory: give the machine more, or a smaller --max-num-seqs or --kv-cache-memory", status=2)
    except typer.Abort:
        _fail("interrupted", status=130)
    except KeyboardInterrupt as signal_error:
        _fail("interrupted", status=status_of(signal_error))
    else:
        sys.exit(status if isinstance(status, int) else 0)


def _check_arguments() -> None:
    """Raise UsageError for an argument that is not text, which no report or manifest could name."""
    for argument in sys.argv[1:]:
        if not is_text(argument):
            raise UsageError(f"argument {printable(argument)} is not UTF-8: rename the file")


def _sentence(error: Any) -> str:
    """Return what is wrong with the command line and where its help is."""
    command = error.ctx.command_path if error.ctx is not None else "batchspec"
    if command.endswith(" sweep") and (hint := grid_hint(getattr(error, "option_name", ""), sys.argv[1:])):
        return hint
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message[:1].lower()}{message[1:]} (see {command} --help)"


def _fail(sentence: str, *, status: int) -> None:
    print(f"batchspec: {printable(sentence)}", file=sys.stderr)
    sys.exit(status)
