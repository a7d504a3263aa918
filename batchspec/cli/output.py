"""Standard output: tables or one JSON document; what cannot be written is a sentence, too."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from batchspec.errors import UsageError
from batchspec.plain_text import escaped_json

if TYPE_CHECKING:
    from batchspec.report.layout import Part

__all__ = ["print_document", "print_result", "writing_to_stdout"]

_WIDTH_OF_FILES = 100
_IN_RUN_DIR = "the report is in the run directory"


def print_result(document: Mapping[str, Any], parts: Iterable["Part"], *, as_json: bool) -> None:
    """Print a command's result: its parts as text and tables, or the document that they were made of."""
    from rich.console import Console

    from batchspec.report.render import parts_renderable

    with writing_to_stdout(remedy="free some room or write elsewhere"):
        if as_json:
            print_document(document)
        else:
            console = Console()
            console.width = console.width if console.is_terminal else _WIDTH_OF_FILES
            console.print(parts_renderable(parts))


def print_document(document: Mapping[str, Any]) -> None:
    """Print a document as JSON in which no character steers a terminal."""
    print(escaped_json(json.dumps(document, indent=2, ensure_ascii=False)))


@contextmanager
def writing_to_stdout(*, remedy: str = _IN_RUN_DIR) -> Iterator[None]:
    """Write to standard output inside; a reader that has gone away is no error, a full disk is one.

    Args:
        remedy: what the user can do when the output could not be written.

    Raises:
        UsageError: the output could not be written.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up()
    except OSError as error:
        _give_up()
        raise UsageError(f"standard output cannot be written ({error.strerror or error}): {remedy}") from error


def _give_up() -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not try to write it once more at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
