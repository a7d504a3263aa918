"""Which files an input path names: one, those that a pattern matches, or the part files of a directory."""

import glob
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from batchspec.errors import UsageError
from batchspec.files.parts import Part, RemotePart
from batchspec.files.urls import filesystem, is_url, local_form
from batchspec.files.wording import listed
from batchspec.plain_text import is_text, printable

__all__ = ["find_parts", "may_be_several"]

_MAGIC = frozenset("*?[")
_PART_FILES = (".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".ndjson.zst", ".parquet")
_NOT_DATA = (".", "_")  # how names begin that tools put beside part files, such as _SUCCESS
_ENDINGS = ".jsonl, .jsonl.gz, .jsonl.zst or .parquet"


def find_parts(path: str) -> tuple[Part, ...]:
    """Return the files, at least one, in the order of their paths.

    Args:
        path: a file, ``-``, a directory, a pattern with ``*``, ``?``, ``[…]`` or ``**``, or a URL of any of these.

    Raises:
        UsageError: there is none, it cannot be read, or a directory holds something else than part files.
    """
    path = local_form(path)
    if path == "-":
        return (Part("-"),)
    if not is_text(path):
        raise UsageError(f"input {printable(path)} has a name that is not UTF-8: rename the file")
    if not path:
        raise UsageError('the input path is empty: give a .jsonl, .jsonl.gz, .jsonl.zst or .parquet file, or "-"')
    return _remote(path) if is_url(path) else _local(path)


def may_be_several(path: str) -> bool:
    """Whether a path is anything but that of a single file on this machine: a URL, a directory or a pattern."""
    return is_url(path) or Path(path).is_dir() or not (_MAGIC.isdisjoint(path) or os.path.lexists(path))


def _local(path: str) -> tuple[Part, ...]:
    try:
        if not _MAGIC.isdisjoint(path) and not os.path.lexists(path):
            found = [name for name in glob.glob(path, recursive=True) if not Path(name).is_dir()]
            return tuple(Part(name, name=short) for name, short in _named(_some(found, path)))
        if not stat.S_ISDIR(os.stat(path).st_mode):
            return (Part(path),)
        entries = [(entry.path, entry.is_dir()) for entry in os.scandir(path)]
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"input {path} cannot be read ({reason}): check the path") from error
    return tuple(Part(name, name=short) for name, short in _named(_part_files(entries, path)))


def _remote(url: str) -> tuple[Part, ...]:
    files, key = filesystem(url)
    head = url.removesuffix(key) if url.endswith(key) else f"{url.partition('://')[0]}://"
    try:
        is_pattern = not _MAGIC.isdisjoint(key) and not url.startswith(("http://", "https://"))
        if is_pattern and not files.exists(key):
            found = {name: one for name, one in files.glob(key, detail=True).items() if one["type"] == "file"}
            names = _some(list(found), url)
        elif files.isdir(key):
            found = {one["name"]: one for one in files.ls(key, detail=True) if one["name"].strip("/") != key.strip("/")}
            names = _part_files([(name, one["type"] == "directory") for name, one in found.items()], url)
        else:
            found, names = {key: files.info(key)}, [key]
    except UsageError:
        raise
    except Exception as error:  # of whatever package speaks the protocol
        reason = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, FileNotFoundError) and reason.strip("/") == key.strip("/"):
            reason = "there is no such file"
        raise UsageError(f"input {url} cannot be read ({reason}): check the URL and the credentials") from error
    return tuple(_part(head + name, short, files, name, found[name]) for name, short in _named(names))


def _part(url: str, short: str, files: Any, key: str, info: dict[str, Any]) -> Part:
    size = info.get("size")
    return RemotePart(url, name=short, files=files, key=key, num_bytes=size if isinstance(size, int) else None)


def _some(names: Sequence[str], pattern: str) -> list[str]:
    """Return what a pattern matched, in order."""
    if not names:
        raise UsageError(f"input {pattern} matches no file: check the pattern")
    return sorted(names)


def _part_files(entries: Sequence[tuple[str, bool]], directory: str) -> list[str]:
    """Return the part files among (path, is_directory); what could be meant as data and is none is refused."""
    data = [(name, is_dir) for name, is_dir in entries if not Path(name).name.startswith(_NOT_DATA)]
    others = sorted(Path(name).name for name, is_dir in data if is_dir or not name.lower().endswith(_PART_FILES))
    if others:
        raise UsageError(
            f"input {directory} is a directory that holds more than part files ({listed(others, limit=3)}): "
            f"give a pattern in quotes, such as '{directory.rstrip('/')}/*.jsonl'"
        )
    if not data:
        raise UsageError(f"input {directory} is a directory without files: give one that holds {_ENDINGS} files")
    return sorted(name for name, _ in data)


def _named(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Return every path with how messages name it: by its file name where no other has the same."""
    odd = next((path for path in paths if not is_text(path)), None)
    if odd is not None:
        raise UsageError(f"input {printable(odd)} has a name that is not UTF-8: rename the file")
    names = [Path(path).name for path in paths]
    are_told_apart = len(set(names)) == len(names)
    return [(path, name if are_told_apart else path) for path, name in zip(paths, names, strict=True)]
