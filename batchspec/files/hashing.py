"""Hashing a file while it is read, so that a second pass is not needed."""

import hashlib
import io
import sys
from io import BufferedReader

__all__ = ["HashingFile"]


class HashingFile(io.BufferedIOBase):
    """A readable binary file that hashes and counts what is read from it; standard input stays open when it is closed.

    Attributes:
        digest: of the bytes read so far.
        num_bytes: how many they are.
    """

    def __init__(self, file: BufferedReader):
        self._file = file
        self.digest = hashlib.sha256()
        self.num_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most ``size`` bytes; from a slow pipe what it holds already, not waiting for more."""
        data = self._file.read() if size is None or size < 0 else self._file.read1(size)
        self.digest.update(data)
        self.num_bytes += len(data)
        return data

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self._file is not sys.stdin.buffer:
            self._file.close()
        super().close()
