"""One file of an input, on this machine or behind a URL."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import pyarrow as pa

from batchspec.files.fingerprint import fingerprint_of_edges

__all__ = ["Part", "RemotePart"]

_COMPRESSIONS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}


class Part:
    """A file on this machine, or standard input.

    Args:
        path: where it is; ``-`` is standard input.
        name: how messages name it; by default its file name.

    Attributes:
        path: as given.
        name: how messages name it.
        suffix: the last extension of its name, in lower case.
        is_parquet: whether that says Parquet.
        unit: "line", or "row" for Parquet.
    """

    def __init__(self, path: str, *, name: str | None = None):
        self.path = path
        self.name = name or ("standard input" if path == "-" else Path(path).name)
        self.suffix = Path(path).suffix.lower()
        self.is_parquet = self.suffix == ".parquet"
        self.unit = "row" if self.is_parquet else "line"

    @property
    def size(self) -> int | None:
        """Its bytes; None for a stream."""
        return os.path.getsize(self.path) if self.path != "-" and Path(self.path).is_file() else None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Give the file as it is, compressed or not; standard input stays open behind it.

        Raises:
            OSError: it cannot be read.
        """
        if self.path == "-":
            yield cast(BinaryIO, sys.stdin.buffer)
            return
        with Path(self.path).open("rb") as file:
            yield file

    def between(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` up to ``end`` of a file that is no stream."""
        with Path(self.path).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def fingerprint(self) -> str | None:
        """Return the SHA-256 of size, first and last MiB in hexadecimal; None for a stream."""
        size = self.size
        return None if size is None else fingerprint_of_edges(size, self.between)

    def decompressed(self, file: Any) -> Any:
        """Return a stream of what its file holds, decompressed by its extension.

        Raises:
            OSError: it is empty, though its extension names a compression: that is no gzip or zstd stream.
        """
        compression = _COMPRESSIONS.get(self.suffix)
        if compression and self.size == 0:
            raise OSError("the file is empty")
        return pa.input_stream(file, compression=compression) if compression else file


class RemotePart(Part):
    """A file behind a URL; whatever goes wrong with it is an OSError.

    Args:
        url: as messages name it.
        name: how messages name it within an input of several files.
        files: fsspec's file system.
        key: the path in it.
        num_bytes: its size, where the file system tells.
    """

    def __init__(self, url: str, *, name: str | None, files: Any, key: str, num_bytes: int | None):
        super().__init__(url, name=name or Path(key).name)
        self._files = files
        self._key = key
        self._num_bytes = num_bytes

    @property
    def size(self) -> int | None:
        """Its bytes, as they were when it was found."""
        return self._num_bytes

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Give the file; it is fetched piece by piece as it is read."""
        with _as_oserror():
            file = self._files.open(self._key, "rb")
        try:
            yield cast(BinaryIO, _Guarded(file))
        finally:
            file.close()

    def between(self, start: int, end: int) -> bytes:
        """Return some of its bytes, and fetch no others."""
        with _as_oserror():
            return bytes(self._files.cat_file(self._key, start=start, end=end))


class _Guarded:
    """A file whose reads raise nothing but OSError."""

    def __init__(self, file: Any):
        self._file = file

    def read(self, size: int | None = -1) -> bytes:
        with _as_oserror():
            data: bytes = self._file.read(-1 if size is None else size)
            return data

    def read1(self, size: int = -1) -> bytes:
        return self.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def _as_oserror() -> Iterator[None]:
    """Turn what a package raises about a remote file into an OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(" ".join(str(error).split()) or type(error).__name__) from error
