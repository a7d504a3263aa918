"""The pool of KV cache blocks: who owns which, and nothing about what stands in them."""

__all__ = ["BlockPool", "num_blocks_for"]


def num_blocks_for(num_tokens: int, *, block_size: int) -> int:
    """Return how many blocks hold ``num_tokens`` tokens."""
    return -(-num_tokens // block_size)


class BlockPool:
    """Hands out block numbers in the half-open range ``[0, num_blocks)``.

    The last block freed is the first handed out again, so that a run touches no more memory than it needs at once.

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
        self._is_free = [True] * num_blocks

    @property
    def num_free(self) -> int:
        """Blocks that can be handed out now."""
        return len(self._free)

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
            block = self._free.pop()
            self._is_free[block] = False
            blocks.append(block)
        return True

    def shrink(self, blocks: list[int], *, num_tokens: int) -> None:
        """Give back the blocks at the end of ``blocks`` that ``num_tokens`` tokens do not need."""
        while len(blocks) > num_blocks_for(num_tokens, block_size=self.block_size):
            block = blocks.pop()
            if self._is_free[block]:
                raise ValueError(f"block {block} was freed twice")
            self._is_free[block] = True
            self._free.append(block)

    def check(self, owners: list[list[int]]) -> None:
        """Raise AssertionError unless free + owned = total and no block has two owners."""
        owned = [block for blocks in owners for block in blocks]
        assert len(owned) == len(set(owned)), "a block has two owners"
        assert not any(self._is_free[block] for block in owned), "a block is owned and free"
        assert len(owned) + self.num_free == self.num_blocks, "a block has no owner and is not free"
