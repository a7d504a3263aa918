"""Standard output that cannot be written is a sentence, too."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from batchspec.errors import UsageError

__all__ = ["writing_to_stdout"]


@contextmanager
def writing_to_stdout() -> Iterator[None]:
    """Write to standard output inside; a reader that has gone away is no error, a full disk is one.

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
        raise UsageError(
            f"standard output cannot be written ({error.strerror or error}): the report is in the run directory"
        ) from error


def _give_up() -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not try to write it once more at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
