"""Who overtook whom, told from outside: a second account of the order in which sequences are admitted."""

from collections.abc import Iterable

from batchspec.sequence import Sequence

__all__ = ["OvertakingAccount"]


class OvertakingAccount:
    """Follows the waiting sequences from step to step and asserts how often each is overtaken.

    Args:
        most: how often one may be overtaken that was not put back.
    """

    def __init__(self, *, most: int):
        self.most = most
        self.num_overtaken: dict[int, int] = {}
        self._line: list[Sequence] = []
        self._running: list[Sequence] = []

    def add(self, sequence: Sequence) -> None:
        """Take note of a sequence that came."""
        self._line.append(sequence)
        self.num_overtaken[id(sequence)] = 0

    def drop(self, sequence: Sequence) -> None:
        """Take note that a sequence was given up, wherever it was."""
        self._line = [other for other in self._line if other is not sequence]

    def observe(self, *, running: list[Sequence], waiting: Iterable[Sequence]) -> None:
        """Take note of where everyone is after a step was planned."""
        is_waiting = {id(sequence) for sequence in waiting}
        was_running = {id(sequence) for sequence in self._running}
        admitted = [sequence for sequence in running if id(sequence) not in was_running]
        put_back = [sequence for sequence in self._running if id(sequence) in is_waiting]
        assert not (admitted and put_back), "one came while another was put back"
        for sequence in admitted:
            self._leave(sequence)
        self._line[:0] = put_back
        self._running = list(running)

    def _leave(self, sequence: Sequence) -> None:
        index = next(i for i, other in enumerate(self._line) if other is sequence)
        for other in self._line[:index]:
            assert not other.num_preemptions, "one that was put back was overtaken"
            self.num_overtaken[id(other)] += 1
            assert self.num_overtaken[id(other)] <= self.most, "a sequence was overtaken too often"
        del self._line[index]
