"""SuffixDecoding: the likeliest continuation of what was just written, in this text or in earlier outputs of the job.

After Oliaro et al., "SuffixDecoding" (arXiv 2411.04975), with the option names of vLLM's ``suffix`` method. What a
request sees of the others' outputs is told in ``generations.py``, and in ``arrivals.py`` for lengths by measured cost.
"""

from collections.abc import Sequence as Many
from dataclasses import dataclass, field

from batchspec.drafting.arrivals import Arrivals
from batchspec.drafting.generations import Generations
from batchspec.drafting.none import NoDrafter
from batchspec.drafting.shared import LatestOutputs, SharedOutputs
from batchspec.drafting.trie import NOTHING, Continuation, Reader, SuffixTrie
from batchspec.sequence import Sequence
from batchspec.step import Draft

__all__ = ["SuffixDrafter"]


@dataclass(kw_only=True)
class _Progress:
    """How far a sequence's text was read."""

    own: SuffixTrie
    reader: Reader | None = None
    num_read: int = field(default=0)


class SuffixDrafter(NoDrafter):
    """Proposes what followed the longest suffix that occurred before, as often as that came.

    Args:
        num_spec_tokens: the most tokens in one draft (k), at least 1.
        max_depth: tokens of a suffix and what follows it, at least 2.
        factor: draft tokens, at most, for each token that was matched.
        min_prob: a draft ends before a token that is reached less likely than this.
        most_outputs: of earlier requests, kept to look in; -1 for all, 0 for none.
        generation_size: requests that are taken together; see ``generations.py``. None where all outputs that have
            ended are seen, whichever those are, and nobody waits; see ``arrivals.py``.
    """

    def __init__(
        self,
        *,
        num_spec_tokens: int,
        max_depth: int,
        factor: float,
        min_prob: float,
        most_outputs: int,
        generation_size: int | None,
    ):
        self.num_spec_tokens = num_spec_tokens
        self.max_depth = max_depth
        self.factor = factor
        self.min_prob = min_prob
        self._generations: Generations
        self.shared: SharedOutputs | LatestOutputs
        if generation_size is None:
            self._generations = arrivals = Arrivals(context=max_depth, most=most_outputs)
            self.shared = LatestOutputs(arrivals, max_depth=max_depth, most_outputs=most_outputs)
        else:
            self._generations = Generations(size=generation_size, context=max_depth)
            self.shared = SharedOutputs(self._generations, max_depth=max_depth, most_outputs=most_outputs)
        self._progress: dict[int, _Progress] = {}

    @property
    def generations(self) -> Generations:
        """The outputs of earlier requests."""
        return self._generations

    def begin(self, sequence: Sequence) -> None:
        """Note the sequence; its text is read once it drafts."""
        self.generations.begin(sequence)

    def is_ready(self, sequence: Sequence) -> bool:
        """Whether the outputs that the sequence may learn from are there."""
        return not self.shared.most_outputs or self.generations.is_ready(sequence)

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        """Return a draft for every sequence whose suffix occurred before."""
        drafts = [self._draft(sequence) for sequence in decoding]
        return [draft for draft in drafts if draft is not None]

    def end(self, sequence: Sequence) -> None:
        """Forget what was read; what it wrote may be seen by later requests."""
        self._progress.pop(id(sequence), None)
        self.generations.end(sequence)

    def _draft(self, sequence: Sequence) -> Draft | None:
        progress = self._read(sequence)
        own = self._continuation(progress.own, sequence)
        shared = NOTHING if progress.reader is None else self._continuation(progress.reader, sequence)
        best, source = (shared, "suffix_global") if shared.expected > own.expected else (own, "suffix_local")
        return _draft_of(best, sequence, source=source)

    def _continuation(self, source: SuffixTrie | Reader, sequence: Sequence) -> Continuation:
        return source.continuation(
            sequence.tokens[: sequence.num_tokens],
            num_tokens=min(self.num_spec_tokens, sequence.num_draft_slots),
            factor=self.factor,
            min_prob=self.min_prob,
        )

    def _read(self, sequence: Sequence) -> _Progress:
        """Return the sequence's progress, caught up with its text."""
        progress = self._progress.get(id(sequence))
        if progress is None:
            progress = self._progress[id(sequence)] = _Progress(own=SuffixTrie(max_depth=self.max_depth))
        fresh = sequence.tokens[progress.num_read : sequence.num_tokens]
        progress.own.append(fresh)
        trie = self.shared.trie_for(sequence)
        if trie is None:
            progress.reader = None
        elif progress.reader is None or progress.reader.trie is not trie or progress.reader.is_stale:
            progress.reader = Reader(trie)
            progress.reader.read(sequence.tokens[: sequence.num_tokens])
        else:
            progress.reader.read(fresh)
        progress.num_read = sequence.num_tokens
        return progress


def _draft_of(found: Continuation, sequence: Sequence, *, source: str) -> Draft | None:
    if not found.token_ids:
        return None
    return Draft(
        sequence=sequence,
        token_ids=found.token_ids,
        source=source,
        token_probs=found.token_probs,
        match_length=found.match_length,
    )
