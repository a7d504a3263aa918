"""Telling whether a file is still the one a run began with, without reading all of it."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

__all__ = ["EDGE_BYTES", "fingerprint_of_edges", "sha256_of", "sha256_of_file", "together"]

EDGE_BYTES = 2**20


def fingerprint_of_edges(size: int, between: Callable[[int, int], bytes]) -> str:
    """Return the SHA-256, in hexadecimal, of the size, the first MiB and the last MiB of a file.

    Args:
        size: of the file, in bytes.
        between: returns its bytes from one offset up to another.
    """
    digest = hashlib.sha256(f"{size}:".encode())
    if size:
        digest.update(between(0, min(size, EDGE_BYTES)))
        digest.update(between(max(0, size - EDGE_BYTES), size))
    return digest.hexdigest()


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of the whole file in hexadecimal."""
    with Path(path).open("rb") as file:
        return sha256_of_file(file)


def sha256_of_file(file: BinaryIO) -> str:
    """Return the SHA-256 of what is left to read of a file in hexadecimal."""
    digest = hashlib.sha256()
    while data := file.read(2**20):
        digest.update(data)
    return digest.hexdigest()


def together(digests: list[str | None]) -> str | None:
    """Return the hash of several hashes, and of one that one; None if one is not known."""
    if len(digests) == 1 or None in digests:
        return None if None in digests else digests[0]
    return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()
