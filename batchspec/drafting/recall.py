"""Drafts from an earlier run's answers: that to the same request first, then whatever follows in any of them.

For running a job again after a change of checkpoint, quantisation, temperature or wording: most answers begin as they
did, and many go on as they did behind a difference.
"""

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchspec.compiled import compiled
from batchspec.drafting.none import NoDrafter
from batchspec.drafting.trie import NOTHING, Reader, SuffixTrie
from batchspec.sequence import Sequence
from batchspec.step import Draft

__all__ = ["RecallDrafter", "trie_over"]

_LEAST_MATCH = 2  # tokens, to go on in the old answer behind a difference

Answer = NDArray[np.int64]


@compiled()
def _resume(answer: Answer, output: Answer, expected: int, most: int) -> tuple[int, int]:
    """Return where the answer goes on behind the longest suffix of the output that is in it, and that suffix's length.

    Of several places as good, the one nearest to ``expected``; of suffixes only ``most`` tokens are compared.
    """
    best_length, best_end = 0, 0
    for end in range(1, len(answer) + 1):
        length = 0
        while length < min(end, len(output), most) and answer[end - 1 - length] == output[len(output) - 1 - length]:
            length += 1
        is_nearer = abs(end - expected) < abs(best_end - expected)
        if length > best_length or (length == best_length and is_nearer):
            best_length, best_end = length, end
    return best_end, best_length


@dataclass(kw_only=True)
class _Memory:
    """How far a sequence has come in the old answer.

    Attributes:
        answer: the old one; empty where there is none.
        place: where in it the output's end is.
        matched: tokens before it that agree.
        num_read: tokens of the sequence that were compared.
        reader: of all old answers.
    """

    answer: Answer
    num_read: int
    reader: Reader
    place: int = 0
    matched: int = 0
    is_lost: bool = False


class RecallDrafter(NoDrafter):
    """Proposes what an earlier answer said.

    Args:
        num_spec_tokens: the most tokens in one draft (k), at least 1.
        answer_to: from ``custom_id`` and sample index to an earlier answer, int64 (n,); None where there is none.
        trie: of all earlier answers, for requests that had none and for answers that left theirs.
        factor: draft tokens, at most, for each token that was matched in the trie.
        min_prob: a draft from the trie ends before a token that is reached less likely than this.
    """

    def __init__(
        self,
        *,
        num_spec_tokens: int,
        answer_to: Callable[[str, int], Answer | None],
        trie: SuffixTrie,
        factor: float,
        min_prob: float,
    ):
        self.num_spec_tokens = num_spec_tokens
        self.answer_to = answer_to
        self.trie = trie
        self.factor = factor
        self.min_prob = min_prob
        self._memories: dict[int, _Memory] = {}

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        """Return a draft for every sequence whose earlier answer goes on, or whose suffix is in any."""
        drafts = [self._draft(sequence) for sequence in decoding]
        return [draft for draft in drafts if draft.token_ids]

    def end(self, sequence: Sequence) -> None:
        """Forget how far the sequence came."""
        self._memories.pop(id(sequence), None)

    def _draft(self, sequence: Sequence) -> Draft:
        memory = self._read(sequence)
        num_tokens = min(self.num_spec_tokens, sequence.num_draft_slots)
        if not memory.is_lost:
            token_ids = memory.answer[memory.place : memory.place + num_tokens].tolist()
            if token_ids:
                return Draft(sequence=sequence, token_ids=token_ids, source="recall", match_length=memory.matched)
        tokens = sequence.tokens[: sequence.num_tokens]
        found = NOTHING
        if num_tokens:
            found = memory.reader.continuation(
                tokens, num_tokens=num_tokens, factor=self.factor, min_prob=self.min_prob
            )
        return Draft(
            sequence=sequence,
            token_ids=found.token_ids,
            source="recall_global",
            token_probs=found.token_probs,
            match_length=found.match_length,
        )

    def _read(self, sequence: Sequence) -> _Memory:
        """Return the sequence's memory, caught up with its text."""
        start, end = sequence.num_prompt_tokens, sequence.num_tokens
        memory = self._memories.get(id(sequence))
        if memory is None:
            answer = self.answer_to(sequence.custom_id, sequence.sample_index)
            memory = _Memory(
                answer=np.zeros(0, dtype=np.int64) if answer is None else answer,
                num_read=start,
                reader=Reader(self.trie),
                is_lost=answer is None,
            )
            memory.reader.read(sequence.tokens[:start])
            self._memories[id(sequence)] = memory
        fresh = sequence.tokens[memory.num_read : end]
        memory.reader.read(fresh)
        memory.num_read = end
        self._follow(memory, fresh, sequence.tokens[start:end])
        return memory

    def _follow(self, memory: _Memory, fresh: Answer, output: Answer) -> None:
        """Go on in the old answer with the new tokens, or find the place where it says what was just said."""
        expected = memory.place + len(fresh)
        if not memory.is_lost and np.array_equal(memory.answer[memory.place : expected], fresh):
            memory.place, memory.matched = expected, memory.matched + len(fresh)
            return
        place, matched = _resume(memory.answer, output, expected, self.trie.max_depth)
        memory.is_lost = matched < _LEAST_MATCH
        memory.place, memory.matched = (expected, 0) if memory.is_lost else (place, matched)


def trie_over(answers: Iterable[Answer], *, max_depth: int) -> SuffixTrie:
    """Return a trie of answers."""
    trie = SuffixTrie(max_depth=max_depth)
    for answer in answers:
        trie.append(answer)
        trie.close()
    return trie
