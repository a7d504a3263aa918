"""The draft model's pages: which sequences have some, and who gives back when they are short."""

from collections.abc import Iterator
from collections.abc import Sequence as Many
from itertools import chain

from batchspec.blocks import BlockPool, num_blocks_for
from batchspec.model.drafting.shadow import Shadow
from batchspec.prefix import PrefixCache
from batchspec.sequence import Sequence

__all__ = ["DraftPages"]


class DraftPages:
    """Keeps the shadows of all sequences that have drafted and not ended, and hands them pages.

    A sequence that has no pages any more is computed again when it drafts next. So pages decide about time only.

    Args:
        pool: the cache's blocks; must hold the longest sequence and its draft.
        prefix_caching: compute beginnings that several sequences share once.
    """

    def __init__(self, pool: BlockPool, *, prefix_caching: bool):
        self.pool = pool
        self._prefixes = PrefixCache(pool) if prefix_caching else None
        self._shadows: dict[Sequence, Shadow] = {}

    @property
    def shadows(self) -> list[Shadow]:
        """All of them, in the order in which they drafted last."""
        return list(self._shadows.values())

    def shadow_of(self, sequence: Sequence) -> Shadow:
        """Return the sequence's shadow, which counts as the last to have drafted; a new one has no pages."""
        shadow = self._shadows.pop(sequence, None) or Shadow.of(sequence)
        self._shadows[sequence] = shadow
        return shadow

    def keep(self, shadow: Shadow) -> None:
        """Let others find what is computed of a sequence; its shadow must just have followed it."""
        if self._prefixes is not None:
            self._prefixes.keep(shadow.own)

    def groups(self, drafting: Many[Shadow]) -> Iterator[list[Shadow]]:
        """Yield the shadows in groups that have pages for what they draft; almost always it is one group.

        The pages of a group may be gone when the next is asked for.

        Args:
            drafting: all that draft in this step, each of which wants a token at least.
        """
        first = 0
        while first < len(drafting):
            last, num_blocks = first, 0
            while last < len(drafting) and num_blocks + self._num_blocks(drafting[last]) <= self.pool.num_blocks:
                num_blocks += self._num_blocks(drafting[last])
                last += 1
            self._make_room(drafting, first, last)
            yield list(drafting[first:last])
            first = last

    def end(self, sequence: Sequence) -> None:
        """Give back the pages of a sequence that has ended, if it has a shadow."""
        shadow = self._shadows.pop(sequence, None)
        if shadow is not None:
            self._give_back(shadow)

    def _num_blocks(self, shadow: Shadow) -> int:
        return num_blocks_for(shadow.num_tokens_with_pages, block_size=self.pool.block_size)

    def _make_room(self, drafting: Many[Shadow], first: int, last: int) -> None:
        """Hand pages to ``drafting[first:last]``, taking them from others as long as they are short.

        Who does not draft in this step gives back first, the one that drafted longest ago before all. Of the others,
        those are spared that come next: as all of them come again in the same order, it is the last before the group,
        then the last behind it.
        """
        group = drafting[first:last]
        for shadow in group:
            self.pool.shrink(shadow.own.blocks, num_tokens=shadow.num_tokens_with_pages)
            if self._prefixes is not None and not shadow.own.blocks:
                self._prefixes.admit(shadow.own, self._prefixes.find(shadow.own))
        num_lacking = sum(self._num_blocks(shadow) - len(shadow.own.blocks) for shadow in group)
        busy = {shadow.sequence for shadow in drafting}
        idle = [shadow for sequence, shadow in self._shadows.items() if sequence not in busy]
        for victim in chain(idle, reversed(drafting[:first]), reversed(drafting[last:])):
            if self.pool.num_free >= num_lacking:
                break
            self._give_back(victim)
        for shadow in group:
            self.pool.grow(shadow.own.blocks, num_tokens=shadow.num_tokens_with_pages)

    def _give_back(self, shadow: Shadow) -> None:
        self.pool.shrink(shadow.own.blocks, num_tokens=0)
        shadow.forget()
