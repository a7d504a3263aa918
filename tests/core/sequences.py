"""Sequences in a known state, without an engine."""

import numpy as np

from batchspec.acceptance import DetailedRecorder
from batchspec.request import SamplingParams
from batchspec.sequence import Sequence
from batchspec.step import Chunk, StepPlan, Verdicts

__all__ = ["decoding", "sampled_chunk", "verdicts_for", "waiting"]


def waiting(
    prompt: list[int],
    *,
    max_tokens: int = 8,
    context_limit: int = 64,
    sampling: SamplingParams | None = None,
    k: int = 3,
) -> Sequence:
    """A sequence of which nothing is computed."""
    return Sequence.start(
        prompt=prompt,
        max_num_tokens=len(prompt) + max_tokens,
        context_limit=context_limit,
        sampling=SamplingParams(temperature=0.0) if sampling is None else sampling,
        stop_ids=frozenset(),
        queued=0.0,
        recorder=DetailedRecorder(num_spec_tokens=k),
    )


def decoding(
    tokens: list[int], *, context_limit: int = 1 << 20, sampling: SamplingParams | None = None, sample_index: int = 0
) -> Sequence:
    """A sequence whose last token is its first output, computed up to there."""
    sequence = Sequence.start(
        prompt=tokens[:-1],
        max_num_tokens=len(tokens) + 64,
        context_limit=context_limit,
        sampling=SamplingParams() if sampling is None else sampling,
        stop_ids=frozenset(),
        queued=0.0,
        sample_index=sample_index,
    )
    sequence.append(tokens[-1:])
    sequence.num_computed_tokens = sequence.num_tokens - 1
    return sequence


def sampled_chunk(sequence: Sequence, draft: list[int] | None = None) -> Chunk:
    """The chunk that computes the sequence's newest token and a draft behind it."""
    draft = [] if draft is None else draft
    start = sequence.num_computed_tokens
    known = sequence.tokens[start : sequence.num_tokens]
    token_ids = np.concatenate([known, np.array(draft, dtype=np.int64)])
    return Chunk(sequence=sequence, start=start, token_ids=token_ids, draft=draft, samples=True)


def verdicts_for(plan: StepPlan, targets: list[int]) -> Verdicts:
    """Verdicts with these target tokens, for tests of the commit; the mask is left empty."""
    return Verdicts(
        target_ids=np.array(targets, dtype=np.int64),
        has_target=np.ones(len(targets), dtype=np.bool_),
        is_starved=np.zeros(len(targets), dtype=np.bool_),
        num_drafted=np.zeros(0, dtype=np.int64),
        accepted=np.zeros((0, 0), dtype=np.bool_),
    )
