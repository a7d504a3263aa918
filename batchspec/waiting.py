"""Who waits to be admitted, and whose turn it is: what the cache holds is used before it is forgotten.

Those go first of whose beginning most is cached, then those that begin alike, so that they run together wherever in the
input they stand. The idea is that of SGLang's cache-aware scheduling; here, nobody waits for ever.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from batchspec.blocks import BlockPool, num_blocks_for
from batchspec.prefix import PrefixCache
from batchspec.sequence import Sequence

__all__ = ["WaitingLine"]


@dataclass(kw_only=True, eq=False)
class _Place:
    sequence: Sequence
    num_overtaken: int = 0


class WaitingLine:
    """The waiting sequences in the order in which they came; those that were put back stand before all others.

    Whoever stands further back has been overtaken at most as often. So it is enough to look at the head: once it has
    been overtaken as often as may be, nobody else has a turn.

    Args:
        pool: where there must be room for a sequence.
        prefixes: what is cached; None lets everyone come in the order of the line.
        most_overtaken: how many that came later may go before a sequence; none may go before one that was put back.
        is_ready: whether a sequence may start to run at all; those that may not are passed over.
    """

    def __init__(
        self,
        pool: BlockPool,
        prefixes: PrefixCache | None,
        *,
        most_overtaken: int,
        is_ready: Callable[[Sequence], bool] = lambda _: True,
    ):
        self.pool = pool
        self.prefixes = prefixes
        self.most_overtaken = most_overtaken
        self.is_ready = is_ready
        self._places: list[_Place] = []
        self.begin_step()

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Sequence]:
        return (place.sequence for place in self._places)

    def add(self, sequence: Sequence) -> None:
        """Let a sequence wait behind all others."""
        self._places.append(_Place(sequence=sequence))

    def put_back(self, sequence: Sequence) -> None:
        """Let a sequence wait before all others."""
        self._places.insert(0, _Place(sequence=sequence, num_overtaken=self.most_overtaken))

    def drop(self, sequence: Sequence) -> None:
        """Remove a sequence that is given up, if it is here."""
        self._places = [place for place in self._places if place.sequence is not sequence]

    def begin_step(self) -> None:
        """Ask again whose turn it is."""
        self._turns = self._in_turn()
        self._num_held = 0
        self._num_reserved = 0

    def admit(self, *, num_slots: int) -> Sequence | None:
        """Remove and return the next in turn if there is room for it; it then owns the blocks that it shares.

        One whose next block is being computed in this step is passed over, but others leave it a slot and its room: it
        comes a step later, and cheaper.
        """
        while self._num_held < num_slots and (place := next(self._turns, None)) is not None:
            if not self.is_ready(place.sequence) or self._is_held(place.sequence):
                continue
            if not self._begin(place.sequence):
                return None
            self._leave(place)
            return place.sequence
        return None

    def _in_turn(self) -> Iterator[_Place]:
        """Yield the places in the order in which they may leave in this step; those yielded need not leave."""
        for place in self._ranked():
            while self._places and (head := self._places[0]).num_overtaken >= self.most_overtaken:
                yield head
                if self._places and self._places[0] is head:
                    return
            if place in self._places:
                yield place

    def _ranked(self) -> list[_Place]:
        """Return all places, the most blocks cached first; of as many, where the first waits with that next block."""
        if self.prefixes is None:
            return list(self._places)
        first_with: dict[bytes, int] = {}
        ranks: dict[_Place, tuple[int, int]] = {}
        for number, place in enumerate(self._places):
            num_cached, label = self.prefixes.outlook(place.sequence)
            first = number if label is None else first_with.setdefault(label, number)
            ranks[place] = (-num_cached, first)
        return sorted(self._places, key=ranks.__getitem__)

    def _is_held(self, sequence: Sequence) -> bool:
        """Whether more of the sequence's beginning is there after this step; then room is reserved for the rest."""
        num_coming = 0 if self.prefixes is None else self.prefixes.num_coming(sequence)
        if num_coming:
            self._num_held += 1
            self._num_reserved += self._num_blocks(sequence) - num_coming
        return num_coming > 0

    def _begin(self, sequence: Sequence) -> bool:
        """Whether there is room for the sequence now; it then owns the blocks that it shares with earlier ones."""
        found = [] if self.prefixes is None else self.prefixes.find(sequence)
        num_free = self.pool.num_free - self.pool.num_unowned(found) - self._num_reserved
        if self._num_blocks(sequence) - len(found) > num_free:
            return False
        if self.prefixes is not None:
            self.prefixes.admit(sequence, found)
        return True

    def _num_blocks(self, sequence: Sequence) -> int:
        """Return how many blocks hold the sequence and a further token."""
        return num_blocks_for(sequence.num_tokens + 1, block_size=self.pool.block_size)

    def _leave(self, place: _Place) -> None:
        index = self._places.index(place)
        for other in self._places[:index]:
            other.num_overtaken += 1
        del self._places[index]
