"""Telling whether a file is still the one a run began with, without reading all of it."""

import hashlib
import os
from pathlib import Path

__all__ = ["fingerprint", "sha256_of"]

_EDGE_BYTES = 2**20


def fingerprint(path: str | Path) -> str:
    """Return the SHA-256, in hexadecimal, of the size, the first MiB and the last MiB of a regular file."""
    size = os.path.getsize(path)
    digest = hashlib.sha256(f"{size}:".encode())
    with Path(path).open("rb") as file:
        digest.update(file.read(_EDGE_BYTES))
        file.seek(max(0, size - _EDGE_BYTES))
        digest.update(file.read(_EDGE_BYTES))
    return digest.hexdigest()


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of the whole file in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
