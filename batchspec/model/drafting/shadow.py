"""A sequence as the draft model sees it: its tokens so far, what is drafted behind them, and pages of its own."""

from dataclasses import dataclass, field, replace

import numpy as np

from batchspec.sequence import Sequence, Timing

__all__ = ["Shadow"]


@dataclass(kw_only=True, eq=False)
class Shadow:
    """Follows a sequence of the target.

    The draft model's own sequence has the same parameters, so that its tokens are chosen as the target's are; but it
    follows no grammar, tells no log probabilities and never ends.

    Attributes:
        sequence: of the target; it is only read.
        own: of the draft model: the same tokens, then the drafted ones.
        num_followed: tokens of ``sequence`` when it was last looked at.
        num_wanted: draft tokens still to be drafted.
        token_probs: of the tokens drafted so far.
        is_legible: whether the draft model has all of the sequence's tokens.
    """

    sequence: Sequence
    own: Sequence
    num_followed: int = 0
    num_wanted: int = 0
    token_probs: list[float] = field(default_factory=list)
    is_legible: bool = True

    @classmethod
    def of(cls, sequence: Sequence) -> "Shadow":
        """Return a shadow that has not looked at the sequence yet."""
        own = Sequence(
            tokens=np.zeros(0, dtype=np.int64),
            num_prompt_tokens=sequence.num_prompt_tokens,
            num_tokens=0,
            max_num_tokens=sequence.max_num_tokens,
            context_limit=sequence.context_limit,
            sampling=replace(sequence.sampling, logprobs=None, prompt_logprobs=None),
            stop_ids=sequence.stop_ids,
            timing=Timing(queued=0.0),
            sample_index=sequence.sample_index,
            bad_words=sequence.bad_words,
        )
        return cls(sequence=sequence, own=own)

    @property
    def num_tokens_with_pages(self) -> int:
        """Tokens that are computed for the draft that is wanted; the last one drafted is not."""
        return self.own.num_tokens + self.num_wanted - 1

    @property
    def drafted(self) -> list[int]:
        """The tokens drafted behind those of the sequence."""
        drafted: list[int] = self.own.tokens[self.num_followed : self.own.num_tokens].tolist()
        return drafted

    def follow(self, *, num_wanted: int, num_vocabulary: int) -> None:
        """Take over the sequence's tokens; what is computed stays valid up to where they differ from the drafted ones.

        The newest token counts as not computed, since the logits behind it are needed.

        Args:
            num_wanted: draft tokens to make room for.
            num_vocabulary: token ids that the draft model has are below this.
        """
        own, first, last = self.own, self.num_followed, self.sequence.num_tokens
        if last + num_wanted > len(own.tokens):
            own.tokens = np.concatenate([own.tokens, np.zeros(last + num_wanted, dtype=np.int64)])
        fresh = self.sequence.tokens[first:last]
        drafted = own.tokens[first : own.num_tokens][: len(fresh)]
        num_right = int(np.logical_and.accumulate(drafted == fresh[: len(drafted)]).sum())
        own.num_computed_tokens = min(own.num_computed_tokens, first + num_right, last - 1)
        own.tokens[first:last] = fresh
        own.num_tokens = self.num_followed = last
        self.num_wanted, self.token_probs = num_wanted, []
        self.is_legible = self.is_legible and bool((fresh < num_vocabulary).all())

    def append(self, token_id: int, *, prob: float) -> None:
        """Append a drafted token.

        Args:
            token_id: what the draft model chose.
            prob: how likely it took that, 0 to 1.
        """
        self.own.tokens[self.own.num_tokens] = token_id
        self.own.num_tokens += 1
        self.num_wanted -= 1
        self.token_probs.append(prob)

    def forget(self) -> None:
        """Take note that the pages are gone."""
        self.own.num_computed_tokens = self.own.num_labelled_blocks = 0
