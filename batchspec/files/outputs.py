"""Whether a path can be written to, asked before anything is."""

import os
from collections.abc import Iterable
from pathlib import Path

from batchspec.errors import UsageError
from batchspec.files.urls import filesystem, is_url, local_form, refuse_url

__all__ = ["check_destination", "check_not_input", "check_output", "check_writable"]


def check_not_input(path: Path, *, input_path: str) -> None:
    """Raise UsageError if writing ``path`` would overwrite the input, be it through a link or another spelling."""
    if input_path == "-" or is_url(input_path):
        return
    source = Path(input_path)
    is_same = path.resolve() == source.resolve()
    if not is_same and path.exists() and source.exists():
        is_same = path.samefile(source)
    if is_same:
        raise UsageError(f"{path} is the input as well as an output: choose another name for the output")


def check_destination(output: str | Path, *, inputs: Iterable[str]) -> None:
    """Check where the user wants the records, a path or a URL.

    Args:
        output: as the user gave it.
        inputs: paths of the files of the input.

    Raises:
        UsageError: it is a file of the input, a directory, or stands where nothing can be written; or the package that
            speaks the URL's protocol is not installed.
    """
    place = local_form(str(output))
    if is_url(place):
        filesystem(place)
        if place in inputs:
            raise UsageError(f"{place} is the input as well as an output: choose another name for the output")
        return
    for path in inputs:
        check_not_input(Path(place), input_path=path)
    check_output(Path(place), input_path="-")


def check_output(path: Path, *, input_path: str) -> None:
    """Check a file that is written on this machine.

    Raises:
        UsageError: it is the input, a directory, a URL, or stands where nothing can be written.
    """
    if path.is_dir():
        raise UsageError(f"output {path} is a directory: name a .jsonl or .parquet file in it")
    check_not_input(path, input_path=input_path)
    check_writable(path.parent)


def check_writable(directory: Path) -> None:
    """Raise UsageError unless the directory can be written to, or made; nothing is made."""
    refuse_url(directory, why="give a path on this machine")
    existing = directory
    try:
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
    except OSError as error:
        raise UsageError(f"{directory} cannot be used ({error.strerror}): choose another path") from error
    if not existing.is_dir():
        raise UsageError(f"{existing} is not a directory, so that {directory} cannot be used: choose another path")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"{existing} cannot be written to: choose another path or change its permissions")
