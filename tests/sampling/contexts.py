"""Sequences with random contexts and drafts, and what transformers' own processors make of their logits."""

from collections.abc import Sequence as Many
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from batchspec.params import SamplingParams
from batchspec.sampling import process, rows_to_process, warp
from batchspec.sequence import Sequence
from batchspec.step import Chunk, TokenMasks

__all__ = ["VOCAB", "Context", "processed", "random_context", "random_logits", "reference", "split", "warped"]

VOCAB = 40


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a chunk continues, in plain lists."""

    prompt: list[int]
    output: list[int] = field(default_factory=list)
    draft: list[int] = field(default_factory=list)
    sampling: SamplingParams = field(default_factory=SamplingParams)
    bad_words: tuple[tuple[int, ...], ...] = ()
    stop_ids: frozenset[int] = frozenset()
    sample_index: int = 0
    is_recomputed: bool = False

    def chunk(self) -> Chunk:
        """The chunk that samples behind the output, drafted tokens last; a recomputed one starts at the prompt."""
        sequence = Sequence.start(
            prompt=self.prompt,
            max_num_tokens=len(self.prompt) + len(self.output) + 20,
            context_limit=1000,
            sampling=self.sampling,
            stop_ids=self.stop_ids,
            queued=0.0,
            sample_index=self.sample_index,
            bad_words=self.bad_words,
        )
        known = self.prompt + self.output
        sequence.tokens[len(self.prompt) : len(known)] = self.output
        sequence.tokens[len(known) :] = 7  # what lies behind the valid tokens must not matter
        sequence.num_tokens = len(known)
        start = 0 if self.is_recomputed else len(known) - 1
        sequence.num_computed_tokens = start
        token_ids = np.array(known[start:] + self.draft, dtype=np.int64)
        return Chunk(sequence=sequence, start=start, token_ids=token_ids, draft=self.draft, samples=True)

    def row(self, i: int) -> list[int]:
        """Every token before row i."""
        return self.prompt + self.output + self.draft[:i]


def split(context: Context) -> list[Context]:
    """The same rows without speculation: one context for each, whose output has the draft tokens before it."""
    return [
        replace(context, output=context.output + context.draft[:i], draft=[]) for i in range(len(context.draft) + 1)
    ]


def random_context(dice: np.random.Generator, **values: Any) -> Context:
    """Few different tokens, so that they repeat, and lengths down to a single prompt token."""

    def draw(least: int, most: int) -> list[int]:
        tokens: list[int] = dice.integers(0, 9, size=int(dice.integers(least, most + 1))).tolist()
        return tokens

    drawn: dict[str, Any] = {
        "prompt": draw(1, 8),
        "output": draw(0, 6),
        "draft": draw(0, 5),
        "is_recomputed": bool(dice.integers(2)),
    }
    return Context(**drawn | values)


def random_logits(dice: np.random.Generator, num_rows: int, vocabulary: int = VOCAB) -> torch.Tensor:
    """Float32, as models give them, both signs."""
    return torch.from_numpy(dice.normal(size=(num_rows, vocabulary)).astype(np.float32) * 2)


def processed(context: Context, logits: torch.Tensor, *, masks: TokenMasks | None = None) -> torch.Tensor:
    """Float64 (rows, vocabulary): our logits before temperature."""
    masked = set() if masks is None else set(masks.rows.tolist())
    rows = list(rows_to_process([context.chunk()], masked=masked))
    assert len(rows) == len(context.draft) + 1, "a plain row; give it a temperature"
    return process(rows, logits, masks=masks)


def warped(context: Context, logits: torch.Tensor) -> torch.Tensor:
    """Float64 (rows, vocabulary): our logits after temperature and truncation."""
    rows = list(rows_to_process([context.chunk()], masked=set()))
    return warp(rows, process(rows, logits))


def removal(context: Context) -> LogitsProcessorList:
    """transformers' processors for bad words and min_tokens."""
    processors = LogitsProcessorList()
    if context.bad_words:
        processors.append(NoBadWordsLogitsProcessor([list(word) for word in context.bad_words]))
    if context.sampling.min_tokens:
        ids = sorted(context.stop_ids | set(context.sampling.stop_token_ids))
        processors.append(MinNewTokensLengthLogitsProcessor(len(context.prompt), context.sampling.min_tokens, ids))
    return processors


def reference(context: Context, logits: torch.Tensor, *, has_temperature: bool = False) -> torch.Tensor:
    """What transformers makes of each row's logits, in our order; frequency and presence by their formula."""
    sampling = context.sampling
    before, after = removal(context), LogitsProcessorList()
    if sampling.logit_bias:
        before.append(SequenceBiasLogitsProcessor([[[token], bias] for token, bias in sampling.logit_bias]))
    if sampling.repetition_penalty != 1:
        before.append(RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    if has_temperature:
        after.append(TemperatureLogitsWarper(sampling.temperature))
        if sampling.top_k:
            after.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1:
            after.append(TopPLogitsWarper(sampling.top_p))
        if sampling.min_p:
            after.append(MinPLogitsWarper(sampling.min_p))
    rows = []
    for i, row in enumerate(logits.double()):
        ids = torch.tensor([context.row(i)])
        scores = before(ids, keep_allowed(row[None], sampling.allowed_token_ids))
        scores = scores - subtracted(context.row(i)[len(context.prompt) :], sampling, scores.shape[-1])
        rows.append(after(ids, scores))
    return torch.cat(rows)


def keep_allowed(scores: torch.Tensor, ids: Many[int] | None) -> torch.Tensor:
    """Minus infinity but for the allowed tokens."""
    if ids is None:
        return scores
    allowed = torch.tensor([token in ids for token in range(scores.shape[-1])])
    return scores.masked_fill(~allowed, -torch.inf)


def subtracted(output: list[int], sampling: SamplingParams, vocabulary: int) -> torch.Tensor:
    """OpenAI's formula, token by token: c * frequency_penalty + (c > 0) * presence_penalty."""
    counts = [output.count(token) for token in range(vocabulary)]
    return torch.tensor(
        [count * sampling.frequency_penalty + (count > 0) * sampling.presence_penalty for count in counts],
        dtype=torch.float64,
    )
