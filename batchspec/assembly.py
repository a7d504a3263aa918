"""One request's way from its prompts to its record: the sequences it needs, and what they add up to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from batchspec.acceptance import AcceptanceRecorder, Level, make_recorder, sum_recorders
from batchspec.errors import RequestError
from batchspec.records import Choice, Usage, metrics_document, response_record, timing_document
from batchspec.request import ChatPrompt, Prompt, Request
from batchspec.sequence import Sequence, Timing

__all__ = ["Assembly", "Limits", "TokenizerLike"]


class TokenizerLike(Protocol):
    """What the engine asks of a tokenizer."""

    def encode(self, prompt: Prompt) -> list[int]:
        """Return the prompt's token ids; RequestError if it cannot be encoded."""

    def decode(self, token_ids: list[int], *, prompt_ids: list[int]) -> str:
        """Return the text of generated tokens that follow ``prompt_ids``."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What every sequence of a run has in common.

    Attributes:
        max_model_len: the most tokens in a sequence, prompt and output together.
        eos_ids: token ids that end a generation.
        level: what is recorded for each request.
        num_spec_tokens: the configured k; 0 when speculation is off.
        timing: whether records carry the timing fields.
        model_name: for bodies whose request named no model.
    """

    max_model_len: int
    eos_ids: frozenset[int]
    level: Level
    num_spec_tokens: int
    timing: bool
    model_name: str


class Assembly:
    """Starts a request's sequences, asks its further turns, and makes its record when all have ended.

    Args:
        request: what was asked.
        tokenizer: text to tokens and back.
        limits: what every sequence has in common.
    """

    def __init__(self, request: Request, *, tokenizer: TokenizerLike, limits: Limits):
        self.request = request
        self.tokenizer = tokenizer
        self.limits = limits
        self.sequences: list[Sequence] = []
        self.num_ended = 0
        self._turns = list(request.turns)
        self._chat = request.prompts[0] if isinstance(request.prompts[0], ChatPrompt) else None

    def start(self, *, now: float) -> list[Sequence]:
        """Return the sequences to run first: every sample of every prompt.

        Raises:
            RequestError: if a prompt cannot be encoded or does not fit the context.
        """
        num_samples = self.request.sampling.n
        for number, prompt in enumerate(self.request.prompts):
            ids = self.tokenizer.encode(prompt)
            for sample in range(num_samples):
                self.sequences.append(self._sequence(ids, sample_index=number * num_samples + sample, now=now))
        return list(self.sequences)

    def next_turn(self, *, now: float) -> Sequence | None:
        """Return the sequence of the next turn once the last has ended; None when there is no further turn.

        Raises:
            RequestError: if the conversation no longer fits the context.
        """
        if not self._turns or self._chat is None:
            return None
        self._chat = self._chat.answered(answer=self._text(self.sequences[-1]), question=self._turns.pop(0))
        sequence = self._sequence(self.tokenizer.encode(self._chat), sample_index=0, now=now)
        self.sequences.append(sequence)
        return sequence

    @property
    def is_finished(self) -> bool:
        """Whether the end of every sequence started so far was noted in ``num_ended``."""
        return self.num_ended == len(self.sequences)

    @property
    def recorder(self) -> AcceptanceRecorder | None:
        """The sum over all sequences started so far; None at level none."""
        return sum_recorders([sequence.recorder for sequence in self.sequences if sequence.recorder is not None])

    def record(self, *, created: int) -> dict[str, Any]:
        """Return the output line; ``created`` is Unix time in seconds."""
        num_samples = self.request.sampling.n
        num_prompt_tokens = sum(sequence.num_prompt_tokens for sequence in self.sequences) // num_samples
        num_output_tokens = sum(sequence.num_output_tokens for sequence in self.sequences)
        return response_record(
            self.request,
            choices=[self._choice(sequence) for sequence in self.sequences],
            usage=Usage(prompt_tokens=num_prompt_tokens, completion_tokens=num_output_tokens),
            metrics=self._metrics(num_output_tokens),
            model_name=self.limits.model_name,
            created=created,
        )

    def _sequence(self, ids: list[int], *, sample_index: int, now: float) -> Sequence:
        sampling, limit = self.request.sampling, self.limits.max_model_len
        if not ids:
            raise RequestError("the prompt has no tokens; give at least one", param="prompt")
        if len(ids) >= limit:
            raise RequestError(
                f"the prompt has {len(ids)} tokens, but the context holds {limit} with at least one left for the "
                f"output; shorten it by {len(ids) - limit + 1}, or raise --max-model-len if the model's context allows",
                param="messages" if self._chat else "prompt",
                code="context_length_exceeded",
            )
        if sampling.max_tokens is not None and len(ids) + sampling.max_tokens > limit:
            raise RequestError(
                f"max_tokens is {sampling.max_tokens}, but a prompt of {len(ids)} tokens leaves {limit - len(ids)} of "
                f"the context of {limit}; ask for at most that, or raise --max-model-len if the model's context allows",
                param="max_tokens",
                code="context_length_exceeded",
            )
        stop_ids = frozenset(sampling.stop_token_ids) | (frozenset() if sampling.ignore_eos else self.limits.eos_ids)
        return Sequence.start(
            prompt=ids,
            max_num_tokens=limit if sampling.max_tokens is None else len(ids) + sampling.max_tokens,
            context_limit=limit,
            sampling=sampling,
            stop_ids=stop_ids,
            queued=now,
            sample_index=sample_index,
            request_index=self.request.index,
            recorder=make_recorder(level=self.limits.level, num_spec_tokens=self.limits.num_spec_tokens),
        )

    def _text(self, sequence: Sequence) -> str:
        shown = sequence.output_ids[:-1] if sequence.finish_reason == "stop" else sequence.output_ids
        return self.tokenizer.decode(shown, prompt_ids=sequence.prompt_ids)

    def _choice(self, sequence: Sequence) -> Choice:
        wants_ids = self.request.sampling.return_token_ids
        return Choice(
            text=self._text(sequence),
            finish_reason=sequence.finish_reason or "length",
            stop_reason=sequence.stop_reason,
            prompt_token_ids=sequence.prompt_ids if wants_ids else None,
            token_ids=sequence.output_ids if wants_ids else None,
        )

    def _metrics(self, num_output_tokens: int) -> Mapping[str, Any] | None:
        """Return ``metrics``: null for several samples or prompts, summed over the turns of a conversation."""
        if not self.request.is_reportable:
            return None
        timing = None
        if self.limits.timing:
            span = Timing.span([sequence.timing for sequence in self.sequences])
            timing = timing_document(span, num_tokens=num_output_tokens)
        total = self.recorder
        if total is None:
            return metrics_document(timing=timing, speculative_decoding=None, batchspec=None)
        num_turns = len(self.sequences)
        own = total.emitted(completion_tokens=num_output_tokens, num_first_tokens=num_turns)
        if self.request.turns:
            own |= {"num_turns": num_turns}
        return metrics_document(timing=timing, speculative_decoding=total.speculative_decoding(), batchspec=own)
