"""The frozen values that pass between the stations of one engine step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from batchspec.sequence import Sequence, TokenLogprobs

__all__ = ["Chunk", "Draft", "Outcome", "StepPlan", "TokenMasks", "Verdicts"]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a drafter proposes to follow a sequence's tokens; empty when it has nothing.

    Attributes:
        sequence: whose tokens it follows.
        token_ids: the proposal.
        source: which drafter it is from, where there are several.
        token_probs: how likely the drafter takes each token to be accepted if all before it are; None where it has no
            idea.
        match_length: tokens of the context that led to the proposal.
    """

    sequence: Sequence
    token_ids: list[int]
    source: str = ""
    token_probs: list[float] | None = None
    match_length: int = 0


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """The tokens of one sequence that one forward pass computes.

    Attributes:
        sequence: whose tokens they are.
        start: position of the first of them; positions are ``[start, start + len(token_ids))``.
        token_ids: int64, known tokens first, then the draft.
        draft: the drafted token ids at the end of ``token_ids``.
        samples: whether the chunk reaches the sequence's newest token, so that a token is sampled after it.
        num_prompt_rows: leading tokens of the chunk after which logits are needed, too, to tell the log probability
            of the prompt token that follows.
        source: of the draft.
    """

    sequence: Sequence
    start: int
    token_ids: NDArray[np.int64]
    draft: list[int]
    samples: bool
    num_prompt_rows: int = 0
    source: str = ""

    @property
    def num_rows(self) -> int:
        """Logit rows the chunk needs: one after the newest token, one after each draft token; none if not sampled."""
        return 1 + len(self.draft) if self.samples else 0


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """Everything that one packed forward pass computes, chunk after chunk."""

    chunks: list[Chunk]

    @cached_property
    def sampled(self) -> list[Chunk]:
        """The chunks that need logits, in the order of the logit rows."""
        return [chunk for chunk in self.chunks if chunk.samples]

    @cached_property
    def scored(self) -> list[Chunk]:
        """The chunks with prompt rows; their logit rows stand behind those of all sampled chunks."""
        return [chunk for chunk in self.chunks if chunk.num_prompt_rows]

    @cached_property
    def num_tokens(self) -> int:
        """Tokens of the packed batch."""
        return sum(len(chunk.token_ids) for chunk in self.chunks)

    @cached_property
    def num_sampled_rows(self) -> int:
        """Logit rows of the sampled chunks, which come first."""
        return sum(chunk.num_rows for chunk in self.sampled)


@dataclass(frozen=True, kw_only=True)
class TokenMasks:
    """Which tokens the grammars allow.

    Attributes:
        rows: int64 (masked rows,), numbers of the logit rows that have a mask, ascending.
        bits: int32 (masked rows, ceil(vocabulary / 32)); bit v % 32 of word v // 32 says whether token v is allowed.
    """

    rows: NDArray[np.int64]
    bits: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """What the verifier found, for the whole batch at once.

    Attributes:
        target_ids: int64 (rows,), the target's own token for every logit row, chunk after chunk of ``plan.sampled``.
        has_target: bool (rows,), whether the row's logits choose a token; if not, its ``target_ids`` means nothing.
        is_starved: bool (rows,), whether a row has no target although its logits are finite: nothing is allowed there.
        num_drafted: int64 (drafting chunks,), draft length of each sampled chunk that had a draft.
        accepted: bool (drafting chunks, longest draft), whether draft token i and all before it match the target's.
        logprobs: by logit row, what was asked for about the row's target.
        prompt_logprobs: by position in ``plan.scored``, what was asked for about the prompt tokens behind the chunk's
            prompt rows.
    """

    target_ids: NDArray[np.int64]
    has_target: NDArray[np.bool_]
    is_starved: NDArray[np.bool_]
    num_drafted: NDArray[np.int64]
    accepted: NDArray[np.bool_]
    logprobs: Mapping[int, TokenLogprobs] = field(default_factory=dict)
    prompt_logprobs: Mapping[int, list[TokenLogprobs]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one sampled chunk did to its sequence.

    Attributes:
        sequence: after the tokens were appended.
        token_ids: the tokens that reached the output, cut at the stop; none where the logits chose no token.
        num_drafted: draft tokens that were verified.
        num_accepted: leading draft tokens that matched, before stop handling.
        seconds: since the sequence's previous tokens; None for its first token, and where no token came.
        source: of the draft.
    """

    sequence: Sequence
    token_ids: list[int]
    num_drafted: int
    num_accepted: int
    seconds: float | None
    source: str = ""
