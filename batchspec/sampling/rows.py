"""Logit rows that need more than the largest raw logit, each with the context that it continues."""

from collections.abc import Iterator, Set
from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchspec.params import SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Chunk

__all__ = ["Row", "is_plain", "is_simple", "rows_to_process"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One logit row: it continues the sequence's tokens and the draft tokens that stand before it.

    Attributes:
        number: which logit row it is.
        sequence: the sequence as it was when the step was planned.
        drafted: the leading draft tokens that the row stands behind.
        is_masked: whether a grammar removes tokens from it.
    """

    number: int
    sequence: Sequence
    drafted: list[int]
    is_masked: bool

    @property
    def is_simple(self) -> bool:
        """Whether a token is drawn from the raw logits, divided by the temperature and nothing else."""
        return not self.is_masked and is_simple(self.sequence)

    @property
    def is_raw(self) -> bool:
        """Whether a token is drawn from raw logits, divided by the temperature and truncated, and nothing is told."""
        return self.sampling.temperature > 0 and not self.is_masked and _is_unprocessed(self.sequence)

    @property
    def is_truncated(self) -> bool:
        """Whether top-k, top-p or min-p may remove tokens."""
        return _is_truncated(self.sampling)

    @property
    def sampling(self) -> SamplingParams:
        """The request's parameters."""
        return self.sequence.sampling

    @property
    def position(self) -> int:
        """Absolute position of the token that the row chooses."""
        return self.sequence.num_tokens + len(self.drafted)

    @property
    def num_output_tokens(self) -> int:
        """Output tokens before that position, drafted ones included."""
        return self.position - self.sequence.num_prompt_tokens

    @property
    def output(self) -> NDArray[np.int64]:
        """Those tokens: int64 (num_output_tokens,)."""
        sequence = self.sequence
        output = sequence.tokens[sequence.num_prompt_tokens : sequence.num_tokens]
        return np.concatenate([output, np.array(self.drafted, dtype=np.int64)]) if self.drafted else output

    def tail(self, length: int) -> tuple[int, ...]:
        """Return up to ``length`` tokens before that position, prompt included."""
        stop = self.sequence.num_tokens
        start = max(0, stop + len(self.drafted) - length)
        known = self.sequence.tokens[start:stop].tolist()
        return (*known, *self.drafted[max(0, start - stop) :])


def _is_unprocessed(sequence: Sequence) -> bool:
    """Whether nothing is removed from the logits of the sequence's rows nor added to them, unless a grammar does."""
    sampling = sequence.sampling
    return (
        sampling.logprobs is None
        and sampling.repetition_penalty == 1
        and sampling.frequency_penalty == 0
        and sampling.presence_penalty == 0
        and not sampling.logit_bias
        and not sequence.bad_words
        and sampling.allowed_token_ids is None
        and sampling.min_tokens <= sequence.num_output_tokens
    )


def _is_truncated(sampling: SamplingParams) -> bool:
    return bool(sampling.top_k or sampling.top_p < 1 or sampling.min_p)


def is_plain(sequence: Sequence) -> bool:
    """Whether the largest raw logit is all that the sequence's rows need from now on, unless a grammar masks them."""
    return sequence.sampling.temperature == 0 and _is_unprocessed(sequence)


def is_simple(sequence: Sequence) -> bool:
    """Whether the sequence's rows draw from raw logits over a temperature from now on, unless a grammar masks them."""
    sampling = sequence.sampling
    return sampling.temperature > 0 and not _is_truncated(sampling) and _is_unprocessed(sequence)


def rows_to_process(chunks: Many[Chunk], *, masked: Set[int]) -> Iterator[Row]:
    """Yield the rows that are not plain.

    Args:
        chunks: the sampled chunks, in the order of their rows.
        masked: numbers of the rows that have a grammar's mask.
    """
    first = 0
    for chunk in chunks:
        plain = is_plain(chunk.sequence)
        if masked or not plain:
            for i in range(chunk.num_rows):
                is_masked = first + i in masked
                if not plain or is_masked:
                    yield Row(number=first + i, sequence=chunk.sequence, drafted=chunk.draft[:i], is_masked=is_masked)
        first += chunk.num_rows
