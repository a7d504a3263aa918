"""The pool of KV cache blocks: who owns which, and which of the others still hold something worth keeping."""

from collections import Counter, OrderedDict
from collections.abc import Iterable

__all__ = ["BlockPool", "num_blocks_for"]


def num_blocks_for(num_tokens: int, *, block_size: int) -> int:
    """Return how many blocks hold ``num_tokens`` tokens."""
    return -(-num_tokens // block_size)


class BlockPool:
    """Hands out block numbers in the half-open range ``[0, num_blocks)``.

    A block may be labelled with what stands in it and can then have several owners. Without an owner it keeps its
    label, as a cached block, until the room is needed: blocks without a label are handed out first, the last freed of
    them before all others, so that a run touches no more memory than it needs at once; then the cached, the longest
    unused first.

    Args:
        num_blocks: size of the pool.
        block_size: tokens that one block holds.
    """

    def __init__(self, *, num_blocks: int, block_size: int):
        if num_blocks < 1 or block_size < 1:
            raise ValueError(f"a pool needs at least one block of one token, not {num_blocks} of {block_size}")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._free = list(range(num_blocks - 1, -1, -1))
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._num_owners = [0] * num_blocks
        self._label_of: dict[int, bytes] = {}
        self._block_with: dict[bytes, int] = {}

    @property
    def num_free(self) -> int:
        """Blocks that can be handed out now, cached ones included."""
        return len(self._free) + len(self._cached)

    @property
    def usage(self) -> float:
        """Fraction of the pool that is owned, 0 to 1."""
        return 1 - self.num_free / self.num_blocks

    def grow(self, blocks: list[int], *, num_tokens: int) -> bool:
        """Extend ``blocks`` in place until it holds ``num_tokens`` tokens; on False nothing has changed."""
        num_missing = num_blocks_for(num_tokens, block_size=self.block_size) - len(blocks)
        if num_missing > self.num_free:
            return False
        for _ in range(num_missing):
            block = self._free.pop() if self._free else self._evict()
            self._num_owners[block] = 1
            blocks.append(block)
        return True

    def shrink(self, blocks: list[int], *, num_tokens: int) -> None:
        """Give back the blocks at the end of ``blocks`` that ``num_tokens`` tokens do not need."""
        while len(blocks) > num_blocks_for(num_tokens, block_size=self.block_size):
            block = blocks.pop()
            if not self._num_owners[block]:
                raise ValueError(f"block {block} was freed twice")
            self._num_owners[block] -= 1
            if self._num_owners[block]:
                continue
            if block in self._label_of:
                self._cached[block] = None
            else:
                self._free.append(block)

    def label(self, block: int, label: bytes) -> None:
        """Note what stands in an owned block from now on; the first block with a label is the one that is found."""
        if label not in self._block_with and block not in self._label_of:
            self._label_of[block] = label
            self._block_with[label] = block

    def find(self, labels: Iterable[bytes]) -> list[int]:
        """Return the blocks with the leading labels, up to the first that no block has."""
        found = []
        for label in labels:
            block = self._block_with.get(label)
            if block is None:
                break
            found.append(block)
        return found

    def num_unowned(self, blocks: list[int]) -> int:
        """Return how many of the blocks count as free."""
        return sum(not self._num_owners[block] for block in blocks)

    def share(self, found: list[int], blocks: list[int]) -> None:
        """Append blocks that ``find`` returned to ``blocks``, whose owner becomes one of theirs."""
        for block in found:
            self._cached.pop(block, None)
            self._num_owners[block] += 1
            blocks.append(block)

    def _evict(self) -> int:
        block, _ = self._cached.popitem(last=False)
        del self._block_with[self._label_of.pop(block)]
        return block

    def check(self, owners: list[list[int]]) -> None:
        """Raise AssertionError unless free + owned + cached = total and every block has the owners it says."""
        owned = Counter(block for blocks in owners for block in blocks)
        idle = [*self._free, *self._cached]
        assert len(idle) == len(set(idle)), "a block is free twice"
        assert not any(block in owned for block in idle), "a block is owned and free"
        assert len(owned) + len(idle) == self.num_blocks, "a block has no owner and is not free"
        for block, num_owners in owned.items():
            assert num_owners == 1 or block in self._label_of, "a block has two owners and no label"
            assert num_owners == self._num_owners[block], "a block has other owners than it counts"
        assert all(block in self._label_of for block in self._cached), "a cached block has no label"
        assert {block: label for label, block in self._block_with.items()} == self._label_of, "labels do not match"
