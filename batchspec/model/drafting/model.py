"""Drafts by a model: one packed pass brings all sequences up to date, one more for every further token.

A token is chosen as the target would choose it from the draft model's logits (``sampling.decide``): at temperature 0
the likeliest; else by Gumbel-max with the target's own noise, which is keyed by seed, sample, position and vocabulary
id. With p the target's distribution, q the draft model's, both then choose the same token with the probability

    sum over i of 1 / (sum over j of max(p_j / p_i, q_j / q_i)),

since i wins both if, among exponential clocks, that of i rings before all others relative to either (Daliri, Musco and
Suresh, "Coupling without Communication and Drafter-Invariant Speculative Decoding", arXiv 2408.07978).
"""

from collections.abc import Iterator
from collections.abc import Sequence as Many
from typing import Protocol

import numpy as np
import torch

from batchspec.model.drafting.pages import DraftPages
from batchspec.model.drafting.shadow import Shadow
from batchspec.sampling import decide
from batchspec.sampling.moving import beside
from batchspec.sequence import Sequence
from batchspec.step import Chunk, Draft, StepPlan

__all__ = ["PagedDraftModel"]

_LEAST_TEMPERATURE = 1e-6  # below it all probability is on one token, and the division might overflow


class _Runner(Protocol):
    """What is asked of the network, as the engine asks the target's."""

    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the logits (rows, vocabulary) of the plan's sampled chunks; the next pass may overwrite them."""


class PagedDraftModel:
    """Drafts for all sequences at once, over pages of its own.

    A draft depends on its sequence's tokens and parameters alone: whoever is behind, as with a long prompt, is brought
    up to date first, in as many passes as that takes.

    Args:
        runner: computes the logits of the small model.
        pages: its pages.
        num_vocabulary: token ids that both models have are below this.
        context_length: the most tokens that the small model can read; the pages may hold fewer.
        max_num_batched_tokens: the most tokens in one pass.
    """

    def __init__(
        self,
        *,
        runner: _Runner,
        pages: DraftPages,
        num_vocabulary: int,
        context_length: int,
        max_num_batched_tokens: int,
    ):
        self.runner = runner
        self.pages = pages
        self.num_vocabulary = num_vocabulary
        self.context_length = min(context_length, pages.pool.num_blocks * pages.pool.block_size)
        self.max_num_batched_tokens = max_num_batched_tokens

    def propose(self, decoding: Many[Sequence], *, num_tokens: int) -> list[Draft]:
        """Return drafts of up to ``num_tokens`` tokens, within the context of both models, of those that have room."""
        drafting = []
        for sequence in decoding:
            num_wanted = min(num_tokens, sequence.num_draft_slots, self.context_length + 1 - sequence.num_tokens)
            if num_wanted > 0:
                shadow = self.pages.shadow_of(sequence)
                shadow.follow(num_wanted=num_wanted, num_vocabulary=self.num_vocabulary)
                self.pages.keep(shadow)
                drafting.append(shadow)
        drafting = [shadow for shadow in drafting if shadow.is_legible]
        for group in self.pages.groups(drafting):
            self._draft(group)
        return [
            Draft(
                sequence=shadow.sequence,
                token_ids=shadow.drafted,
                source="draft_model",
                token_probs=list(shadow.token_probs),
            )
            for shadow in drafting
            if shadow.token_probs
        ]

    def end(self, sequence: Sequence) -> None:
        """Give back the pages of a sequence that has ended."""
        self.pages.end(sequence)

    def _draft(self, shadows: list[Shadow]) -> None:
        """Draft what the shadows want, a token of each at a time."""
        try:
            self._draft_by_passes(shadows)
        except (RuntimeError, MemoryError):
            for shadow in shadows:
                shadow.forget()  # nobody knows what of it was computed
            raise

    def _draft_by_passes(self, shadows: list[Shadow]) -> None:
        while shadows:
            shadow_of = {shadow.own: shadow for shadow in shadows}
            for plan in self._plans(shadows):
                logits = self.runner.forward(plan)
                if plan.sampled:
                    self._append([shadow_of[chunk.sequence] for chunk in plan.sampled], plan.sampled, logits)
            shadows = [shadow for shadow in shadows if shadow.num_wanted]

    def _plans(self, shadows: Many[Shadow]) -> Iterator[StepPlan]:
        """Yield the passes that compute all tokens of the shadows that are not computed yet."""
        chunks: list[Chunk] = []
        room = self.max_num_batched_tokens
        for shadow in shadows:
            own = shadow.own
            last = own.num_tokens
            while own.num_computed_tokens < last:
                start = own.num_computed_tokens
                end = min(last, start + room)
                chunks.append(
                    Chunk(sequence=own, start=start, token_ids=own.tokens[start:end], draft=[], samples=end == last)
                )
                own.num_computed_tokens = end
                room -= end - start
                if not room:
                    yield StepPlan(chunks=chunks)
                    chunks, room = [], self.max_num_batched_tokens
        if chunks:
            yield StepPlan(chunks=chunks)

    def _append(self, shadows: Many[Shadow], chunks: Many[Chunk], logits: torch.Tensor) -> None:
        """Append a token to each of the shadows; one whose logits choose none wants no more.

        Args:
            shadows: that got logits.
            chunks: theirs.
            logits: (shadows, vocabulary).
        """
        logits = logits[:, : self.num_vocabulary].contiguous()
        choices = decide(chunks, logits)
        probs = _probs_of(choices.target_ids, chunks, logits)
        together = torch.stack((choices.target_ids.double(), choices.has_target.double(), probs)).cpu()
        for shadow, token_id, has_target, prob in zip(shadows, *together.tolist(), strict=True):
            if has_target:
                shadow.append(int(token_id), prob=prob)
            else:
                shadow.num_wanted = 0


def _probs_of(token_ids: torch.Tensor, chunks: Many[Chunk], logits: torch.Tensor) -> torch.Tensor:
    """Return float64 (rows,): how likely the draft model takes its tokens, at the request's temperature, 1 if greedy.

    That is what is known about their being accepted; penalties and truncation are left out.

    Args:
        token_ids: int64 (rows,), what it chose.
        chunks: of the rows.
        logits: (rows, vocabulary).
    """
    temperature = np.array([[chunk.sequence.sampling.temperature or 1.0] for chunk in chunks], dtype=np.float32)
    scaled = logits / beside(logits, np.maximum(temperature, _LEAST_TEMPERATURE))
    return scaled.log_softmax(dim=-1).gather(-1, token_ids[:, None]).squeeze(-1).double().exp()
