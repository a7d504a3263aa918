"""Where a grammar leaves no choice, its own tokens are the draft."""

from collections.abc import Sequence as Many

from batchspec.drafting.generations import Generations
from batchspec.drafting.interface import Drafter
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome

__all__ = ["ForcedDrafter"]


class ForcedDrafter:
    """Asks another drafter first; drafts the forced tokens of sequences for which that finds nothing allowed.

    The target may still spell forced text with other tokens, so these drafts are verified like any other.

    Args:
        inner: the drafter to ask first.
        num_spec_tokens: the most tokens in one draft (k), at least that of ``inner``.
    """

    def __init__(self, inner: Drafter, *, num_spec_tokens: int):
        self.inner = inner
        self.num_spec_tokens = num_spec_tokens

    @property
    def generations(self) -> Generations | None:
        """Those of the inner drafter."""
        return self.inner.generations

    def begin(self, sequence: Sequence) -> None:
        """Tell the inner drafter."""
        self.inner.begin(sequence)

    def is_ready(self, sequence: Sequence) -> bool:
        """Ask the inner drafter."""
        return self.inner.is_ready(sequence)

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        """Return the inner drafts, and forced tokens where the grammar allows none of them or there is none."""
        found = {id(draft.sequence): draft for draft in self.inner.propose(decoding)}
        drafts = []
        for sequence in decoding:
            draft, grammar = found.get(id(sequence)), sequence.grammar
            if grammar is not None and not (draft and grammar.num_valid(draft.token_ids[:1])):
                token_ids = grammar.forced()[: min(self.num_spec_tokens, sequence.num_draft_slots)]
                draft = Draft(sequence=sequence, token_ids=token_ids, source="forced")
            if draft and draft.token_ids:
                drafts.append(draft)
        return drafts

    def observe(self, outcomes: Many[Outcome], *, num_rows: int) -> None:
        """Tell the inner drafter."""
        self.inner.observe(outcomes, num_rows=num_rows)

    def end(self, sequence: Sequence) -> None:
        """Tell the inner drafter."""
        self.inner.end(sequence)
