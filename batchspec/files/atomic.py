"""Files that are either there as a whole or not at all, also after a crash."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["is_written_through", "sync_directory", "whole_file", "write_whole"]


def is_written_through(path: Path) -> bool:
    """Whether a path is a link, a pipe or a device such as /dev/stdout, which no new file may take the place of."""
    return path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir())


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; when the block ends well it takes the place of ``path``.

    What is written through gets what was written there.
    """
    if is_written_through(path):
        with TemporaryDirectory() as directory:
            temporary = Path(directory) / path.name
            yield temporary
            with temporary.open("rb") as file, path.open("wb") as out:
                shutil.copyfileobj(file, out)
        return
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_whole(path: Path, data: bytes) -> None:
    """Write a small file atomically and durably."""
    with whole_file(path) as temporary:
        temporary.write_bytes(data)


def sync_directory(directory: Path) -> None:
    """Make renames and removals in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
