"""Hashing a file while it is read, so that a second pass is not needed."""

import hashlib
import io
from typing import BinaryIO

__all__ = ["HashingFile"]


class HashingFile(io.BufferedIOBase):
    """A readable binary file that hashes and counts what is read from it; the file itself stays open when it is closed.

    Attributes:
        digest: of the bytes read so far.
        num_bytes: how many they are.
    """

    def __init__(self, file: BinaryIO):
        self._file = file
        self._read_some = getattr(file, "read1", file.read)
        self.digest = hashlib.sha256()
        self.num_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most ``size`` bytes; from a slow pipe what it holds already, not waiting for more."""
        data: bytes = self._file.read() if size is None or size < 0 else self._read_some(size)
        self.digest.update(data)
        self.num_bytes += len(data)
        return data

    def readable(self) -> bool:
        """Return True."""
        return True
