"""The records so far as Parquet, for an output that is made as a whole only at the end: readable whatever happens."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from batchspec.errors import UsageError
from batchspec.files.atomic import sync_directory
from batchspec.files.lock import LOCK_NAME, take_lock
from batchspec.files.parquet_out import GROUP_BYTES, responses_to_parquet

__all__ = ["ResponseParts", "parts_directory", "remove_parts"]

_NAME = re.compile(r"part-([0-9]{15})-([0-9]{15})\.parquet")
_HASH = b"batchspec.journal"
_SHARE = 8  # a part is written once it holds an eighth of what the others hold


def parts_directory(output: Path) -> Path:
    """Return where the parts of an output stand."""
    return output.with_name(f"{output.name}.parts")


class ResponseParts:
    """A directory of Parquet files that hold the records of a journal, each once; a context manager.

    A part is named after the bytes of the journal that it holds, and closed before it gets that name. It is written as
    soon as it holds a row group, or an eighth of what stands in the parts before it, so that there are few of them.

    Args:
        output: the Parquet file that the run will write at its end; the parts stand beside it.
        journal: the records, as JSONL.
        num_bytes: of the journal, which hold whole records; parts that hold anything else are removed.

    Raises:
        UsageError: another run writes the same parts, or a file cannot be written.
    """

    def __init__(self, output: Path, *, journal: Path, num_bytes: int):
        self.directory = parts_directory(output)
        self._journal = journal
        self._end = 0
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = take_lock(self.directory, flag="--output")
            _remove_torn(self.directory)
            for start, end, path in list(_parts(self.directory)):
                if start == self._end and end <= num_bytes and self._is_current(path, start=start, end=end):
                    self._end = end
                else:
                    path.unlink()
        except OSError as error:
            raise self._refusal(error) from error

    def extend(self, num_bytes: int) -> None:
        """Write a part if there is enough for one.

        Args:
            num_bytes: of the journal, which hold whole records and will not change again.

        Raises:
            UsageError: the part cannot be written.
        """
        if num_bytes - self._end < max(1, min(GROUP_BYTES, self._end // _SHARE)):
            return
        start, end = self._end, num_bytes
        path = self.directory / f"part-{start:015d}-{end:015d}.parquet"
        metadata = {_HASH: self._hash(start, end)}
        responses_to_parquet(jsonl_path=self._journal, parquet_path=path, start=start, end=end, metadata=metadata)
        self._end = end

    def __enter__(self) -> "ResponseParts":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def _is_current(self, path: Path, *, start: int, end: int) -> bool:
        """Whether a part holds what the journal holds now."""
        try:
            stated = (pq.read_schema(path).metadata or {}).get(_HASH)
        except (OSError, ValueError):
            return False
        return stated == self._hash(start, end)

    def _hash(self, start: int, end: int) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        with self._journal.open("rb") as file:
            file.seek(start)
            while start < end and (data := file.read(min(2**20, end - start))):
                digest.update(data)
                start += len(data)
        return digest.hexdigest().encode()

    def _refusal(self, error: OSError) -> UsageError:
        return UsageError(f"{self.directory} cannot be written ({error.strerror or error}): choose another --output")


def remove_parts(output: Path) -> None:
    """Remove the parts of an output that is there as a whole; OSError if they cannot be."""
    directory = parts_directory(output)
    if not directory.is_dir():
        return
    _remove_torn(directory)
    for _, _, path in list(_parts(directory)):
        path.unlink(missing_ok=True)
    (directory / LOCK_NAME).unlink(missing_ok=True)
    if not any(directory.iterdir()):
        directory.rmdir()
        sync_directory(directory.parent)


def _remove_torn(directory: Path) -> None:
    """Remove what a part was written to when a crash came."""
    for path in directory.glob(".part-*.parquet.tmp"):
        path.unlink()


def _parts(directory: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield first byte, end and path of every part, in the order of the journal."""
    for path in sorted(directory.iterdir()):
        match = _NAME.fullmatch(path.name)
        if match:
            yield int(match[1]), int(match[2]), path
