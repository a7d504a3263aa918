"""The pool: every block is free or owned by one, whatever is taken and given back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from batchspec.blocks import BlockPool, num_blocks_for


class PoolMachine(RuleBasedStateMachine):
    """Three owners grow and shrink at random; a plain count of blocks is the model."""

    @initialize(num_blocks=st.integers(1, 12), block_size=st.integers(1, 5))
    def build(self, num_blocks: int, block_size: int) -> None:
        self.pool = BlockPool(num_blocks=num_blocks, block_size=block_size)
        self.owners: list[list[int]] = [[], [], []]

    @rule(owner=st.integers(0, 2), num_tokens=st.integers(0, 40))
    def grow(self, owner: int, num_tokens: int) -> None:
        blocks = self.owners[owner]
        before, num_free = list(blocks), self.pool.num_free
        wanted = num_blocks_for(num_tokens, block_size=self.pool.block_size)
        fits = wanted <= len(before) + num_free
        assert self.pool.grow(blocks, num_tokens=num_tokens) is fits
        assert blocks[: len(before)] == before, "owned blocks moved"
        assert len(blocks) == (max(len(before), wanted) if fits else len(before))

    @rule(owner=st.integers(0, 2), place=st.integers(0, 40), label=st.binary(min_size=1, max_size=1))
    def label(self, owner: int, place: int, label: bytes) -> None:
        blocks = self.owners[owner]
        if place < len(blocks):
            before = self.pool.find([label])
            self.pool.label(blocks[place], label)
            assert not before or self.pool.find([label]) == before, "a label moved"

    @rule(owner=st.integers(0, 2), labels=st.lists(st.binary(min_size=1, max_size=1), max_size=3))
    def share(self, owner: int, labels: list[bytes]) -> None:
        found = self.pool.find(labels)
        blocks = self.owners[owner]
        if not set(found) & set(blocks) and len(found) == len(set(found)):
            num_free, num_unowned = self.pool.num_free, self.pool.num_unowned(found)
            self.pool.share(found, blocks)
            assert self.pool.find(labels) == found
            assert self.pool.num_free == num_free - num_unowned

    @rule(owner=st.integers(0, 2), num_tokens=st.integers(0, 40))
    def shrink(self, owner: int, num_tokens: int) -> None:
        blocks = self.owners[owner]
        before = list(blocks)
        self.pool.shrink(blocks, num_tokens=num_tokens)
        wanted = num_blocks_for(num_tokens, block_size=self.pool.block_size)
        assert blocks == before[:wanted]

    @invariant()
    def nothing_is_lost(self) -> None:
        if hasattr(self, "pool"):
            self.pool.check(self.owners)
            owned = {block for blocks in self.owners for block in blocks}
            assert self.pool.num_free == self.pool.num_blocks - len(owned)
            assert all(0 <= block < self.pool.num_blocks for blocks in self.owners for block in blocks)
            assert self.pool.usage == pytest.approx(len(owned) / self.pool.num_blocks)


PoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
test_pool = PoolMachine.TestCase


@given(num_tokens=st.integers(0, 1000), block_size=st.integers(1, 64))
def test_blocks_hold_the_tokens_and_no_block_is_idle(num_tokens: int, block_size: int) -> None:
    num_blocks = num_blocks_for(num_tokens, block_size=block_size)
    assert num_blocks * block_size >= num_tokens > (num_blocks - 1) * block_size or num_blocks == num_tokens == 0


def test_last_freed_is_first_handed_out() -> None:
    pool = BlockPool(num_blocks=8, block_size=2)
    first: list[int] = []
    pool.grow(first, num_tokens=6)
    assert first == [0, 1, 2]
    pool.shrink(first, num_tokens=2)
    second: list[int] = []
    pool.grow(second, num_tokens=4)
    assert second == [1, 2]


def test_a_block_cannot_be_freed_twice() -> None:
    pool = BlockPool(num_blocks=2, block_size=1)
    blocks: list[int] = []
    pool.grow(blocks, num_tokens=1)
    copy = list(blocks)
    pool.shrink(blocks, num_tokens=0)
    with pytest.raises(ValueError, match="block 0 was freed twice"):
        pool.shrink(copy, num_tokens=0)


def test_a_labelled_block_is_found_until_its_room_is_needed() -> None:
    pool = BlockPool(num_blocks=3, block_size=1)
    first: list[int] = []
    pool.grow(first, num_tokens=2)
    pool.label(first[0], b"one")
    pool.label(first[1], b"two")
    blocks = list(first)
    pool.shrink(first, num_tokens=0)
    assert (pool.num_free, pool.find([b"one", b"two", b"three"])) == (3, blocks)
    second: list[int] = []
    pool.grow(second, num_tokens=2)  # the third block, then the one that was given back first: the end of the prefix
    assert pool.find([b"one", b"two"]) == blocks[:1]
    third: list[int] = []
    pool.share(pool.find([b"one"]), third)
    assert pool.num_free == 0
    assert not pool.grow([], num_tokens=1)


def test_the_check_sees_every_breach() -> None:
    pool = BlockPool(num_blocks=3, block_size=1)
    blocks: list[int] = []
    pool.grow(blocks, num_tokens=2)
    pool.check([blocks])
    with pytest.raises(AssertionError, match="two owners"):
        pool.check([blocks, blocks[:1]])
    with pytest.raises(AssertionError, match="owned and free"):
        pool.check([[*blocks, 2]])
    with pytest.raises(AssertionError, match="no owner"):
        pool.check([blocks[:1]])
    pool.label(blocks[0], b"label")
    with pytest.raises(AssertionError, match="other owners"):
        pool.check([blocks, blocks[:1]])


@pytest.mark.parametrize(("num_blocks", "block_size"), [(0, 1), (1, 0)])
def test_an_empty_pool_is_refused(num_blocks: int, block_size: int) -> None:
    with pytest.raises(ValueError, match="at least one block"):
        BlockPool(num_blocks=num_blocks, block_size=block_size)
