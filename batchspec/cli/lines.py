"""Lines of JSON on standard output or in a file, remarks on standard error."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from batchspec.cli.output import writing_to_stdout
from batchspec.errors import UsageError
from batchspec.plain_text import printable

__all__ = ["remark", "telling_new_directory", "write_lines"]


def remark(text: str) -> None:
    """Print one sentence on standard error."""
    print(f"batchspec: {printable(text)}", file=sys.stderr)


@contextmanager
def telling_new_directory(output: Path) -> Iterator[None]:
    """Write the output inside; a directory that was made for it is told of, since a misspelt one would be, too."""
    was_there = output.parent.exists()
    yield
    if not was_there:
        remark(f"the directory {output.parent} was made for {output.name}")


def write_lines(lines: Iterable[Mapping[str, Any]], output: Path | None) -> bool:
    """Write objects as lines of JSON, into a file as a whole or not at all.

    Returns:
        Whether all were written: a reader of standard output may go away before.

    Raises:
        UsageError: they cannot be written; or whatever the lines themselves raise.
    """
    import orjson

    is_whole = output is not None
    if output is None:
        with writing_to_stdout(remedy="free some room or write elsewhere"):
            for line in lines:
                sys.stdout.buffer.write(orjson.dumps(line) + b"\n")
            sys.stdout.flush()
            is_whole = True
    else:
        _write_file(lines, output)
    return is_whole


def _write_file(lines: Iterable[Mapping[str, Any]], output: Path) -> None:
    import orjson

    from batchspec.files.atomic import whole_file

    try:
        with telling_new_directory(output):
            output.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(output) as path, path.open("wb") as file:
            for line in lines:
                file.write(orjson.dumps(line) + b"\n")
    except OSError as error:
        raise UsageError(f"output {output} cannot be written ({error.strerror or error}): choose another") from error
