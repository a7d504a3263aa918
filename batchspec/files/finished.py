"""Which lines of the input have a record already: a count while records are in order, a sparse bitmap for the rest."""

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["FinishedIndices", "record_index"]

_BLOCK_BITS = 2**16
_RECORD_ID = re.compile(r"batch_req_([0-9]{8,18})")


def record_index(record: Mapping[str, Any]) -> int | None:
    """Return the 0-based index of the input line that a record answers; None if its ``id`` is not one of ours."""
    name = record.get("id")
    match = _RECORD_ID.fullmatch(name) if isinstance(name, str) else None
    return int(match[1]) if match else None


class FinishedIndices:
    """A set of indices; it holds ``range(n)`` in constant memory, and other indices in a bit each."""

    def __init__(self) -> None:
        self._prefix = 0
        self._blocks: dict[int, bytearray] = {}
        self._num_beyond = 0

    def add(self, index: int) -> None:
        """Add an index; adding it again changes nothing."""
        if index in self:
            return
        if index == self._prefix:
            self._prefix += 1
            self._absorb()
            return
        block = self._blocks.setdefault(index // _BLOCK_BITS, bytearray(_BLOCK_BITS // 8))
        block[index % _BLOCK_BITS // 8] |= 1 << index % 8
        self._num_beyond += 1

    def _absorb(self) -> None:
        """Move the indices that follow the prefix into it, and drop the blocks that it has passed."""
        while self._has_bit(self._prefix):
            self._num_beyond -= 1
            self._prefix += 1
        for number in [number for number in self._blocks if (number + 1) * _BLOCK_BITS <= self._prefix]:
            del self._blocks[number]

    def _has_bit(self, index: int) -> bool:
        block = self._blocks.get(index // _BLOCK_BITS)
        return block is not None and bool(block[index % _BLOCK_BITS // 8] >> index % 8 & 1)

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and (0 <= index < self._prefix or self._has_bit(index))

    def __len__(self) -> int:
        return self._prefix + self._num_beyond
