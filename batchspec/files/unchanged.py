"""Whether the part of an input that an interrupted run has read is still what it was."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from batchspec.errors import UsageError
from batchspec.files.fingerprint import EDGE_BYTES
from batchspec.files.parts import Part
from batchspec.files.source import InputSource

__all__ = ["check_unchanged", "read_so_far"]


def read_so_far(source: InputSource) -> list[dict[str, Any]]:
    """Return, for a checkpoint, how many bytes of each file were read and their hash.

    Files whose fingerprint covers all of them are left out, and so are streams and files behind URLs.
    """
    found = []
    for number, file in source.hashed:
        part = source.parts[number]
        if type(part) is Part and (part.size or 0) > 2 * EDGE_BYTES:
            found.append({"part": number, "num_bytes": file.num_bytes, "sha256": file.digest.copy().hexdigest()})
    return found


def check_unchanged(source: InputSource, stated: Iterable[Mapping[str, Any]]) -> None:
    """Raise UsageError if a file no longer begins with what ``read_so_far`` has stated."""
    for entry in stated:
        part = source.parts[entry["part"]]
        if _hash_of_beginning(part, entry["num_bytes"]) != entry["sha256"]:
            raise UsageError(
                f"input {part.path} has changed since the run read it: restore it, or use --overwrite to start afresh"
            )


def _hash_of_beginning(part: Part, num_bytes: int) -> str:
    digest = hashlib.sha256()
    with part.open() as file:
        while num_bytes and (data := file.read(min(2**20, num_bytes))):
            digest.update(data)
            num_bytes -= len(data)
    return digest.hexdigest()
