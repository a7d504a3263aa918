"""Continuous batching: which tokens of which sequences the next forward pass computes, and what its result does.

The oldest running sequence is never put back, the pool holds at least one sequence of full length, a sequence that is
put back waits before all others, and nobody is overtaken without end; so everything finishes.
"""

import math
from collections.abc import Callable
from collections.abc import Sequence as Many

import numpy as np
from numpy.typing import NDArray

from batchspec.blocks import BlockPool, num_blocks_for
from batchspec.prefix import PrefixCache
from batchspec.sequence import Sequence
from batchspec.step import Chunk, Draft, Outcome, StepPlan, Verdicts
from batchspec.waiting import WaitingLine

__all__ = ["Scheduler"]

_MOST_PROMPT_ROWS = 256  # in one step, since the logits of each take vocabulary x 4 bytes


class Scheduler:
    """Holds the waiting and the running sequences and the blocks they own.

    Args:
        pool: the cache's blocks; must hold the longest sequence that will be added.
        max_num_seqs: the most sequences in the running batch.
        max_num_batched_tokens: the most tokens in one forward pass.
        prefix_caching: compute beginnings that several sequences share once.
        is_ready: whether a sequence may start to run; the oldest must always be allowed to.
    """

    def __init__(
        self,
        *,
        pool: BlockPool,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        prefix_caching: bool = False,
        is_ready: Callable[[Sequence], bool] = lambda _: True,
    ):
        self.pool = pool
        self.prefixes = PrefixCache(pool) if prefix_caching else None
        self.max_num_seqs = max_num_seqs
        self.max_num_batched_tokens = max_num_batched_tokens
        self.waiting = WaitingLine(pool, self.prefixes, most_overtaken=2 * max_num_seqs, is_ready=is_ready)
        self.running: list[Sequence] = []
        self.num_preemptions = 0

    @property
    def num_unfinished(self) -> int:
        """Sequences that still have tokens to generate."""
        return len(self.waiting) + len(self.running)

    @property
    def decoding(self) -> list[Sequence]:
        """Running sequences that a draft can follow."""
        return [sequence for sequence in self.running if sequence.is_decoding]

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence."""
        self.waiting.add(sequence)

    def plan(self, drafts: Many[Draft], *, now: float) -> StepPlan:
        """Choose the next forward pass; may put sequences back, cut drafts to the pages left, admit new sequences.

        Args:
            drafts: at most one for each sequence; those for sequences that are not decoding are dropped.
            now: the clock's reading, in seconds.
        """
        if self.prefixes is not None:
            self.prefixes.begin_step()
        self.waiting.begin_step()
        proposals = {id(draft.sequence): draft for draft in drafts if draft.sequence.is_decoding}
        num_preemptions = self.num_preemptions
        chunks: list[Chunk] = []
        budget, prompt_rows = self.max_num_batched_tokens, _MOST_PROMPT_ROWS
        ordinal = 0
        while budget and (ordinal < len(self.running) or self._admit(num_preemptions, now=now)):
            sequence = self.running[ordinal]
            most = min(budget, prompt_rows) if sequence.num_missing_prompt_logprobs else budget
            chunk = self._chunk(sequence, proposal=proposals.get(id(sequence)), budget=most)
            if chunk is not None:
                chunks.append(chunk)
                budget -= len(chunk.token_ids)
                prompt_rows -= chunk.num_prompt_rows
                if self.prefixes is not None and not sequence.num_output_tokens:
                    self.prefixes.promise(sequence, num_tokens=chunk.start + len(chunk.token_ids))
            ordinal += 1
        return StepPlan(chunks=chunks)

    def _admit(self, num_preemptions: int, *, now: float) -> bool:
        """Move the next in turn into the batch if its tokens fit; not in a step that had to put one back."""
        if self.num_preemptions > num_preemptions:
            return False
        sequence = self.waiting.admit(num_slots=self.max_num_seqs - len(self.running))
        if sequence is None:
            return False
        if sequence.timing.scheduled is None:
            sequence.timing.scheduled = max(now, sequence.timing.queued)
        self.running.append(sequence)
        return True

    def _chunk(self, sequence: Sequence, *, proposal: Draft | None, budget: int) -> Chunk | None:
        """Return the tokens to compute for one sequence; None when it has to wait or was put back."""
        if not budget:
            return None
        start = sequence.num_computed_tokens
        known = sequence.num_tokens - start
        draft = [] if proposal is None else self._cut(sequence, proposal.token_ids)
        if draft and known + len(draft) > budget:
            return None
        num_tokens = self._make_room(sequence, min(known + len(draft), budget))
        if not num_tokens:
            return None
        token_ids = sequence.tokens[start : start + min(known, num_tokens)]
        draft = draft[: max(0, num_tokens - known)]
        if draft:
            token_ids = np.concatenate([token_ids, np.array(draft, dtype=np.int64)])
        return Chunk(
            sequence=sequence,
            start=start,
            token_ids=token_ids,
            draft=draft,
            samples=num_tokens >= known,
            num_prompt_rows=_num_prompt_rows(sequence, start=start, num_tokens=num_tokens),
            source=proposal.source if proposal is not None and draft else "",
        )

    def _cut(self, sequence: Sequence, draft: list[int]) -> list[int]:
        """Cut a draft to the context, a step's budget, its grammar, and the pages nobody else needs for its next token.

        What is cut here was never proposed: it is not counted.
        """
        draft = draft[: min(sequence.num_draft_slots, self.max_num_batched_tokens - 1)]
        if draft and sequence.grammar is not None:
            draft = draft[: sequence.grammar.num_valid(draft)]
        if draft and self.pool.num_free < len(self.running) + len(draft):
            size = self.pool.block_size
            num_lacking = sum(other.num_computed_tokens >= len(other.blocks) * size for other in self.running)
            own = max(len(sequence.blocks), num_blocks_for(sequence.num_tokens, block_size=size))
            num_blocks = own + max(0, self.pool.num_free - num_lacking)
            draft = draft[: num_blocks * size - sequence.num_tokens]
        return draft

    def _make_room(self, sequence: Sequence, num_wanted: int) -> int:
        """Find pages for up to ``num_wanted`` further tokens, putting the youngest back if need be; 0 if it was itself.

        Short of pages, fewer tokens are computed before anyone is put back.
        """
        start = sequence.num_computed_tokens
        while True:
            room = (len(sequence.blocks) + self.pool.num_free) * self.pool.block_size - start
            if room > 0:
                num_tokens = min(num_wanted, room)
                self.pool.grow(sequence.blocks, num_tokens=start + num_tokens)
                return num_tokens
            youngest = self.running.pop()
            self._put_back(youngest)
            if youngest is sequence:
                return 0

    def _put_back(self, sequence: Sequence) -> None:
        """Preempt by recomputation: keep the tokens, drop the cache, wait before all others."""
        self.pool.shrink(sequence.blocks, num_tokens=0)
        sequence.num_computed_tokens = 0
        sequence.num_preemptions += 1
        self.num_preemptions += 1
        self.waiting.put_back(sequence)

    def commit(self, plan: StepPlan, verdicts: Verdicts, *, now: float) -> list[Outcome]:
        """Append what the target chose, cut at the stop, give back unused pages, record; one outcome per sampled chunk.

        Acceptance is counted here from each sequence's own tokens, apart from the verifier's batch-level mask.
        """
        outcomes = []
        row = 0
        for chunk in plan.chunks:
            sequence = chunk.sequence
            sequence.num_computed_tokens = chunk.start + len(chunk.token_ids)
            if chunk.samples:
                rows = slice(row, row + chunk.num_rows)
                targets = _targets(verdicts.target_ids[rows], verdicts.has_target[rows])
                is_starved = len(targets) < chunk.num_rows and verdicts.is_starved[row + len(targets)]
                outcome = self._commit_chunk(chunk, targets, now=now)
                sequence.is_starved = sequence.finish_reason == "error" and bool(is_starved)
                if sequence.sampling.logprobs is not None:
                    sequence.logprobs += [verdicts.logprobs[row + i] for i in range(len(outcome.token_ids))]
                row += chunk.num_rows
                outcomes.append(outcome)
            if self.prefixes is not None and sequence.finish_reason != "error":
                self.prefixes.keep(sequence)
        for index, chunk in enumerate(plan.scored):
            scores = verdicts.prompt_logprobs[index]
            chunk.sequence.add_prompt_logprobs(scores, start=chunk.start)
            if any(math.isnan(score.logprob) for score in scores):
                chunk.sequence.finish_reason = "error"
        return outcomes

    def _commit_chunk(self, chunk: Chunk, targets: list[int], *, now: float) -> Outcome:
        sequence, draft = chunk.sequence, chunk.draft
        num_accepted = 0
        while num_accepted < min(len(draft), len(targets)) and draft[num_accepted] == targets[num_accepted]:
            num_accepted += 1
        position = sequence.num_output_tokens
        num_emitted = sequence.append(targets[: num_accepted + 1])
        if num_accepted == len(targets) and sequence.finish_reason is None:
            sequence.finish_reason = "error"
        sequence.num_computed_tokens -= len(draft) - num_accepted
        self.pool.shrink(sequence.blocks, num_tokens=sequence.num_tokens)
        if position and sequence.recorder is not None:
            sequence.recorder.record(
                num_drafted=len(draft), num_accepted=num_accepted, num_emitted=num_emitted, position=position
            )
            sequence.cut_ids = targets[num_emitted : num_accepted + 1]
        return Outcome(
            sequence=sequence,
            token_ids=targets[:num_emitted],
            num_drafted=len(draft),
            num_accepted=num_accepted,
            seconds=sequence.timing.advance(now) if num_emitted else None,
            source=chunk.source,
        )

    def reap(self) -> list[Sequence]:
        """Remove and return the sequences that have ended, their pages given back."""
        finished = [sequence for sequence in self.running if sequence.finish_reason is not None]
        if finished:
            self.running = [sequence for sequence in self.running if sequence.finish_reason is None]
            for sequence in finished:
                self.pool.shrink(sequence.blocks, num_tokens=0)
        return finished

    def drop(self, sequence: Sequence) -> bool:
        """Remove a sequence that cannot go on, its pages given back; return whether it was here."""
        if not any(other is sequence for other in (*self.running, *self.waiting)):
            return False
        self.pool.shrink(sequence.blocks, num_tokens=0)
        self.running = [other for other in self.running if other is not sequence]
        self.waiting.drop(sequence)
        return True


def _targets(target_ids: NDArray[np.int64], has_target: NDArray[np.bool_]) -> list[int]:
    """Return a chunk's targets up to the first row that has none; behind it nothing can be known."""
    targets: list[int] = target_ids[: np.logical_and.accumulate(has_target).sum()].tolist()
    return targets


def _num_prompt_rows(sequence: Sequence, *, start: int, num_tokens: int) -> int:
    """Return how many leading tokens of a chunk stand before a prompt token whose log probability is still missing."""
    if not sequence.num_missing_prompt_logprobs:
        return 0
    return max(0, min(start + num_tokens, sequence.num_prompt_tokens - 1) - start)
