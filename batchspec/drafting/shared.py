"""Tries over the outputs of the job so far, one for each of the two generations that may be running."""

from collections import deque

from batchspec.drafting.generations import Generations, Output
from batchspec.drafting.trie import SuffixTrie
from batchspec.sequence import Sequence

__all__ = ["SharedOutputs"]

_MOST_NODES = 4_000_000  # of a trie, about 150 MB


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
                outputs.add(output)
                if self.most_outputs < len(outputs.kept) and self.most_outputs >= 0:
                    outputs.keep_newest(self.most_outputs // 2)
                if outputs.trie.num_nodes > self.most_nodes:
                    outputs.keep_newest(len(outputs.kept) // 2)
            outputs.num_generations += 1
        for seen in [each for each in generations.visible if each < min(one.num_generations for one in self._tries)]:
            del generations.visible[seen]
        return outputs.trie


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

    def keep_newest(self, number: int) -> None:
        """Begin anew with the newest outputs."""
        newest = list(self.kept)[len(self.kept) - number :]
        self.trie = SuffixTrie(max_depth=self.trie.max_depth)
        self.kept.clear()
        for output in newest:
            self.add(output)
