"""Tries over the outputs of the job so far: those of earlier generations, or all that have ended."""

from collections import deque

from batchspec.drafting.arrivals import Arrivals
from batchspec.drafting.generations import Generations, Output
from batchspec.drafting.trie import SuffixTrie
from batchspec.sequence import Sequence

__all__ = ["LatestOutputs", "SharedOutputs"]

_MOST_NODES = 4_000_000  # of a trie, about 150 MB
_AT_ONCE = 8  # outputs that are added together: whoever reads along must begin anew behind every change


class SharedOutputs:
    """What the outputs of earlier generations teach.

    Two tries are enough: when a generation begins, nobody of two generations before sees anything any more.

    Args:
        generations: says which outputs are visible.
        max_depth: of the tries.
        most_outputs: kept in a trie; when there are more, the older half is forgotten. -1 for no bound of their number.
        most_nodes: of a trie; beyond it, too, the older half is forgotten.
    """

    def __init__(self, generations: Generations, *, max_depth: int, most_outputs: int, most_nodes: int = _MOST_NODES):
        self.generations = generations
        self.most_outputs = most_outputs
        self.most_nodes = most_nodes
        self.max_depth = max_depth
        self._num_restarts = -1
        self._tries: list[_Outputs] = []

    def trie_for(self, sequence: Sequence) -> SuffixTrie | None:
        """Return the trie of all that a sequence may see; None where that is nothing."""
        generations = self.generations
        generation = generations.of(sequence)
        if not self.most_outputs or generation < 2 or not generations.is_within(sequence):
            return None
        if generations.num_settled < generation - 1:
            return None
        if self._num_restarts != generations.num_restarts:
            self._num_restarts = generations.num_restarts
            self._tries = [_Outputs(self.max_depth), _Outputs(self.max_depth)]
        outputs = self._tries[generation % 2]
        while outputs.num_generations < generation - 1:
            for output in generations.visible[outputs.num_generations]:
                outputs.add_within(output, self.most_outputs, self.most_nodes)
            outputs.num_generations += 1
        for seen in [each for each in generations.visible if each < min(one.num_generations for one in self._tries)]:
            del generations.visible[seen]
        return outputs.trie


class LatestOutputs:
    """What all outputs teach that have ended.

    Args:
        arrivals: hands them over.
        max_depth: of the trie.
        most_outputs: as in ``SharedOutputs``.
        most_nodes: the same.
    """

    def __init__(self, arrivals: Arrivals, *, max_depth: int, most_outputs: int, most_nodes: int = _MOST_NODES):
        self.arrivals = arrivals
        self.most_outputs = most_outputs
        self.most_nodes = most_nodes
        self.max_depth = max_depth
        self._num_restarts = -1
        self._outputs = _Outputs(max_depth)

    def trie_for(self, sequence: Sequence) -> SuffixTrie | None:  # noqa: ARG002
        """Return the trie of what has ended by now, some of the latest left out; None where that is nothing."""
        if not self.most_outputs:
            return None
        if self._num_restarts != self.arrivals.num_restarts:
            self._num_restarts = self.arrivals.num_restarts
            self._outputs = _Outputs(self.max_depth)
        pending = self.arrivals.pending
        if len(pending) >= _AT_ONCE or (pending and not self._outputs.kept):
            for output in pending:
                self._outputs.add_within(output, self.most_outputs, self.most_nodes)
            pending.clear()
        return self._outputs.trie if self._outputs.kept else None


class _Outputs:
    """A trie, the outputs in it, and of how many generations they are."""

    def __init__(self, max_depth: int):
        self.trie = SuffixTrie(max_depth=max_depth)
        self.kept: deque[Output] = deque()
        self.num_generations = 0

    def add(self, output: Output) -> None:
        self.kept.append(output)
        self.trie.append(output[output >= 0])
        self.trie.close()

    def add_within(self, output: Output, most_outputs: int, most_nodes: int) -> None:
        """Add an output; forget the older half when there are too many or they take too much."""
        self.add(output)
        if 0 <= most_outputs < len(self.kept):
            self.keep_newest(most_outputs // 2)
        if self.trie.num_nodes > most_nodes:
            self.keep_newest(len(self.kept) // 2)

    def keep_newest(self, number: int) -> None:
        """Begin anew with the newest outputs."""
        newest = list(self.kept)[len(self.kept) - number :]
        self.trie = SuffixTrie(max_depth=self.trie.max_depth)
        self.kept.clear()
        for output in newest:
            self.add(output)
