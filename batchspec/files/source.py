"""Where requests are read from: a path checked before anything is written, opened as a stream when it is iterated."""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa

from batchspec.errors import DamagedInputError, RequestError, UsageError
from batchspec.files.fingerprint import fingerprint, sha256_of
from batchspec.files.hashing import HashingFile
from batchspec.files.lines import Line, split_lines
from batchspec.files.parquet_in import check_parquet, parquet_rows

__all__ = ["InputSource", "Row", "open_source"]

_CHUNK_BYTES = 2**18
_COMPRESSIONS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}
_SIGNATURES = {
    b"PAR1": (".parquet", "Parquet"),
    b"\x1f\x8b\x08": (".gz", "gzip"),
    b"\x28\xb5\x2f\xfd": (".zst", "zstd"),
}

Row = tuple[int, bytes | dict[str, Any] | RequestError | None]
"""Line number, and the line's bytes, a Parquet row, what is wrong with that row, or None for an over-long line."""


class InputSource:
    """An input that exists and can be opened; made by ``open_source``.

    Attributes:
        path: as the user gave it; ``-`` is standard input.
        name: how messages name it.
        unit: "line", or "row" for Parquet.
        num_rows: how many rows it holds. Parquet says it; of other files it is an estimate, blank lines included, from
            the part that was read so far. None as long as there is none, and for streams.
    """

    def __init__(self, *, path: str, num_rows: int | None = None):
        self.path = path
        self.num_rows = num_rows
        self.name = "standard input" if path == "-" else Path(path).name
        self.suffix = Path(path).suffix.lower()
        self.is_parquet = self.suffix == ".parquet"
        self.unit = "row" if self.is_parquet else "line"
        self.is_regular = path != "-" and Path(path).is_file()
        self._digest: str | None = None

    def rows(self, split: Callable[[Iterable[bytes]], Iterator[Line]] = split_lines) -> Iterator[Row]:
        """Yield (number, content) of every row that is not blank, in constant memory; ``split`` finds them in text.

        Raises:
            DamagedInputError: the file is truncated or corrupt; raised where that shows.
        """
        try:
            if self.is_parquet:
                yield from parquet_rows(self.path)
            else:
                yield from ((line.number, line.data) for line in split(self._chunks()))
        except (OSError, pa.ArrowException) as error:
            raise DamagedInputError(
                f"{self.path} cannot be read further ({_reason(error)}): it is truncated or corrupt; make it again"
            ) from error

    def _chunks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes, while the bytes of the file itself go through the hash."""
        with HashingFile(
            cast(BufferedReader, sys.stdin.buffer) if self.path == "-" else Path(self.path).open("rb")
        ) as file:
            compression = _COMPRESSIONS.get(self.suffix)
            size = os.path.getsize(self.path) if self.is_regular else None
            # An empty file is no gzip or zstd stream, yet the decompressor takes it for one of no bytes.
            if compression and size == 0:
                raise OSError("the file is empty")
            stream = pa.input_stream(file, compression=compression) if compression else file
            num_ends = 0
            while chunk := stream.read(_CHUNK_BYTES):
                num_ends += chunk.count(b"\n")
                if size is not None:
                    num_lines = num_ends + (not chunk.endswith(b"\n"))
                    self.num_rows = round(num_lines * size / file.num_bytes)
                yield chunk
            self._digest = file.digest.hexdigest()

    def sha256(self) -> str | None:
        """Return the hash of the whole input in hexadecimal; None unless ``rows`` came to its end (Parquet: always)."""
        return sha256_of(self.path) if self.is_parquet else self._digest

    def dataset(self) -> dict[str, Any]:
        """Return path, size in bytes and fingerprint for the manifest; the latter two are None for a stream."""
        if not self.is_regular:
            return {"path": self.path, "size": None, "fingerprint": None}
        return {"path": self.path, "size": os.path.getsize(self.path), "fingerprint": fingerprint(self.path)}


def open_source(path: str | Path) -> InputSource:
    """Check that the path can be read and return it as a source; ``-`` is JSONL on standard input.

    Raises:
        UsageError: the path is missing, is a directory, cannot be read, or is not what its extension says.
    """
    path = str(path)
    if path == "-":
        return InputSource(path=path)
    if not path:
        raise UsageError('the input path is empty: give a .jsonl, .jsonl.gz, .jsonl.zst or .parquet file, or "-"')
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise UsageError(f"input {path} is a directory: give a file in it")
        if Path(path).is_file():
            with Path(path).open("rb") as file:
                _check_signature(path, file.read(4))
    except (OSError, ValueError) as error:
        raise UsageError(f"input {path} cannot be read ({_reason(error)}): check the path") from error
    is_parquet = Path(path).suffix.lower() == ".parquet"
    return InputSource(path=path, num_rows=check_parquet(path) if is_parquet else None)


def _check_signature(path: str, head: bytes) -> None:
    """Raise UsageError when a file starts as one format and is named as another."""
    suffix = Path(path).suffix.lower()
    for signature, (expected, kind) in _SIGNATURES.items():
        if head.startswith(signature) and suffix != expected:
            raise UsageError(f"input {path} holds {kind} data: give its name the extension {expected}")


def _reason(error: Exception) -> str:
    """Return the operating system's or pyarrow's reason in a few words, on one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__
