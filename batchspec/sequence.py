"""One stream of tokens being generated: a prompt of a request, one sample of it, one turn of it."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from batchspec.acceptance import AcceptanceRecorder
from batchspec.params import SamplingParams
from batchspec.text import TextStream

__all__ = ["FinishReason", "Grammar", "Sequence", "Timing", "TokenLogprobs"]

FinishReason = str  # "stop" or "length", as in an OpenAI choice, or "error" when the logits chose no token


class Grammar(Protocol):
    """How far one sequence's output has come in the grammar that it must follow."""

    @property
    def error(self) -> str | None:
        """Why the grammar can say no more, as when one of its limits was reached; None as long as it can."""

    def num_valid(self, token_ids: list[int]) -> int:
        """Return how many leading tokens the grammar allows from here; nothing changes."""

    def accept(self, token_id: int) -> None:
        """Advance behind a token that was emitted."""

    def forced(self) -> list[int]:
        """Return the tokens that must come next because the grammar leaves no choice; empty if it leaves one."""


@dataclass(frozen=True, kw_only=True)
class TokenLogprobs:
    """Log probabilities (natural) at one position.

    Attributes:
        token_id: the token that stands there.
        logprob: its log probability.
        rank: 1 for the likeliest token; ties share the better rank.
        top: (token id, log probability) of the likeliest tokens, likeliest first.
    """

    token_id: int
    logprob: float
    rank: int
    top: tuple[tuple[int, float], ...] = ()


@dataclass(kw_only=True)
class Timing:
    """Readings of the monotonic clock in seconds; None until the event happened."""

    queued: float
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None

    def advance(self, now: float) -> float | None:
        """Note that tokens came; return the seconds since the previous ones, None for the first."""
        previous, self.last_token = self.last_token, now
        if previous is None:
            self.first_token = now
            return None
        return now - previous

    @classmethod
    def span(cls, timings: "list[Timing]") -> "Timing":
        """Return the readings from the first sequence's start to the last one's end, as for a conversation's turns."""
        first, last = timings[0], timings[-1]
        return cls(
            queued=first.queued, scheduled=first.scheduled, first_token=first.first_token, last_token=last.last_token
        )


@dataclass(kw_only=True, eq=False)
class Sequence:
    """Tokens, how far the KV cache has caught up with them, and the blocks that hold it.

    There is no prefill phase and no decode phase: ``num_computed_tokens`` catches up with ``num_tokens``, and a
    sequence is decoding when one token is left to compute.

    Attributes:
        tokens: int64 buffer of prompt and output; the first ``num_tokens`` entries are valid.
        num_prompt_tokens: length of the prompt.
        num_tokens: prompt and output so far.
        max_num_tokens: the length at which the sequence ends, from max_tokens or the context limit.
        context_limit: the model's context, which drafts may use beyond ``max_num_tokens`` but not exceed.
        sampling: the request's parameters.
        stop_ids: every token id that ends the sequence, end-of-sequence tokens included unless ignored.
        sample_index: separates the noise streams of samples that share a seed.
        request_index: the request that this sequence belongs to.
        custom_id: of that request.
        recorder: the acceptance recorder, or None when nothing is recorded.
        bad_words: token ids of every text that may not be generated.
        grammar: how far the output has come in its grammar; None when it need not follow one.
        text: the output's text as it grows; None when nobody asks before the end.
        logprobs: of every output token; stays empty unless asked for.
        prompt_logprobs: of every prompt token but the first; stays empty unless asked for.
        num_computed_tokens: tokens whose keys and values stand in the cache.
        blocks: the cache blocks owned, in order.
        block_labels: what stands in the leading full blocks, as far as that was asked for.
        num_labelled_blocks: how many of ``blocks`` bear their label.
        finish_reason: None while running.
        is_starved: whether it ended because the request's own constraints left no token.
        cut_ids: what the last step matched and chose behind the end; kept only where steps are recorded.
        stop_reason: the stop token id or the stop string that ended it, as vLLM reports it; None for end of sequence
            and length.
    """

    tokens: NDArray[np.int64]
    num_prompt_tokens: int
    num_tokens: int
    max_num_tokens: int
    context_limit: int
    sampling: SamplingParams
    stop_ids: frozenset[int]
    timing: Timing
    sample_index: int = 0
    request_index: int = 0
    custom_id: str = ""
    recorder: AcceptanceRecorder | None = None
    bad_words: tuple[tuple[int, ...], ...] = ()
    grammar: Grammar | None = None
    text: TextStream | None = None
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs] = field(default_factory=list)
    num_computed_tokens: int = 0
    blocks: list[int] = field(default_factory=list)
    block_labels: list[bytes] = field(default_factory=list)
    num_labelled_blocks: int = 0
    finish_reason: FinishReason | None = None
    is_starved: bool = False
    stop_reason: int | str | None = None
    cut_ids: list[int] = field(default_factory=list)
    num_preemptions: int = 0

    @classmethod
    def start(
        cls,
        *,
        prompt: list[int],
        max_num_tokens: int,
        context_limit: int,
        sampling: SamplingParams,
        stop_ids: frozenset[int],
        queued: float,
        sample_index: int = 0,
        request_index: int = 0,
        custom_id: str = "",
        recorder: AcceptanceRecorder | None = None,
        bad_words: tuple[tuple[int, ...], ...] = (),
        grammar: Grammar | None = None,
        text: TextStream | None = None,
    ) -> "Sequence":
        """Return a sequence that holds only its prompt, with room for ``max_num_tokens`` tokens."""
        tokens = np.zeros(max_num_tokens, dtype=np.int64)
        tokens[: len(prompt)] = prompt
        return cls(
            tokens=tokens,
            num_prompt_tokens=len(prompt),
            num_tokens=len(prompt),
            max_num_tokens=max_num_tokens,
            context_limit=context_limit,
            sampling=sampling,
            stop_ids=stop_ids,
            timing=Timing(queued=queued),
            sample_index=sample_index,
            request_index=request_index,
            custom_id=custom_id,
            recorder=recorder,
            bad_words=bad_words,
            grammar=grammar,
            text=text,
        )

    @property
    def num_output_tokens(self) -> int:
        """Tokens generated so far."""
        return self.num_tokens - self.num_prompt_tokens

    @property
    def output_ids(self) -> list[int]:
        """The generated token ids."""
        return [int(token) for token in self.tokens[self.num_prompt_tokens : self.num_tokens]]

    @property
    def prompt_ids(self) -> list[int]:
        """The prompt's token ids."""
        return [int(token) for token in self.tokens[: self.num_prompt_tokens]]

    @property
    def is_decoding(self) -> bool:
        """Whether only the newest generated token is left to compute, so that a draft can follow it."""
        return self.num_output_tokens > 0 and self.num_computed_tokens == self.num_tokens - 1

    @property
    def num_draft_slots(self) -> int:
        """Draft tokens that still fit the context, leaving room for the token after them."""
        return max(0, self.context_limit - self.num_tokens - 1)

    @property
    def num_missing_prompt_logprobs(self) -> int:
        """Prompt tokens whose log probabilities were asked for and are not known yet; the first has none."""
        if self.sampling.prompt_logprobs is None:
            return 0
        return self.num_prompt_tokens - 1 - len(self.prompt_logprobs)

    def add_prompt_logprobs(self, logprobs: list[TokenLogprobs], *, start: int) -> None:
        """Keep what is new of the log probabilities of the prompt tokens at ``start + 1`` and behind."""
        self.prompt_logprobs += logprobs[len(self.prompt_logprobs) - start :]

    def append(self, token_ids: list[int]) -> int:
        """Append tokens up to and including the first that ends the sequence; return how many were kept."""
        for kept, token in enumerate(token_ids, start=1):
            self.tokens[self.num_tokens] = token
            self.num_tokens += 1
            if self.grammar is not None:
                self.grammar.accept(token)
            if self._ends_at(token):
                return kept
        return len(token_ids)

    def _ends_at(self, token: int) -> bool:
        """Whether the sequence ends behind the token just appended: at a stop token, a stop text or the length."""
        is_stop = token in self.stop_ids
        is_shown = not is_stop or self.sampling.include_stop_str_in_output
        found = self.text.push(token) if self.text is not None and is_shown else None
        if is_stop:
            self.finish_reason, self.stop_reason = "stop", token if token in self.sampling.stop_token_ids else None
        elif found is not None:
            self.finish_reason, self.stop_reason = "stop", found
        elif self.num_tokens == self.max_num_tokens:
            self.finish_reason = "length"
        if self.finish_reason is None:
            return False
        if self.text is not None and found is None:
            self.text.finish()
        return True
