"""One request's way from its prompts to its record: the sequences it needs, and what they add up to."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.acceptance import AcceptanceRecorder, Level, make_recorder, sum_recorders
from batchspec.admission import Grammars, check_token_ids, effective_sampling, fit_prompt
from batchspec.answer import Answer, TokenizerLike, text_stream
from batchspec.chunks import ChunkWriter
from batchspec.records import Usage, metrics_document, response_record, stream_record, timing_document
from batchspec.request import ChatPrompt, Prompt, Request
from batchspec.sequence import Sequence, Timing
from batchspec.streaming import ChunkShape

__all__ = ["Assembly", "Limits"]


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
        grammars: compiles structured output.
        on_chunk: called with every chunk of a streamed request as it is made.
    """

    def __init__(
        self,
        request: Request,
        *,
        tokenizer: TokenizerLike,
        limits: Limits,
        grammars: Grammars,
        on_chunk: Callable[[dict[str, Any]], None],
    ):
        self.request = request
        self.tokenizer = tokenizer
        self.limits = limits
        self.grammars = grammars
        self.sequences: list[Sequence] = []
        self.num_ended = 0
        self._sampling = effective_sampling(request)
        self._prompts: list[Prompt] = []
        self._turns = list(request.turns)
        self._chat = request.prompts[0] if isinstance(request.prompts[0], ChatPrompt) else None
        self._created = int(time.time())
        shape = ChunkShape(request, model_name=limits.model_name, created=self._created)
        self._writer = ChunkWriter(request, shape=shape, on_chunk=on_chunk) if request.stream else None

    def start(self, *, now: float) -> list[Sequence]:
        """Return the sequences to run first: every sample of every prompt.

        Raises:
            RequestError: a prompt cannot be encoded or does not fit the context, or a parameter does not fit the model.
        """
        check_token_ids(self._sampling, num_vocabulary=self.tokenizer.num_vocabulary)
        num_samples = self._sampling.n
        for number, prompt in enumerate(self.request.prompts):
            ids = self._encode(prompt)
            for sample in range(num_samples):
                self._add(prompt, ids, sample_index=number * num_samples + sample, now=now)
        return list(self.sequences)

    def next_turn(self, *, now: float) -> Sequence | None:
        """Return the sequence of the next turn once the last has ended; None when there is no further turn.

        Raises:
            RequestError: if the conversation no longer fits the context.
        """
        if not self._turns or self._chat is None:
            return None
        answer = self._answer(len(self.sequences) - 1).text
        self._chat = self._chat.answered(answer=answer, question=self._turns.pop(0))
        return self._add(self._chat, self._encode(self._chat), sample_index=0, now=now)

    @property
    def is_finished(self) -> bool:
        """Whether the end of every sequence started so far was noted in ``num_ended``."""
        return self.num_ended == len(self.sequences)

    @property
    def is_reported(self) -> bool:
        """Whether the record carries the acceptance metrics, which a stream without usage does not."""
        return self.request.is_reportable and (not self.request.stream or self.request.include_usage)

    @property
    def recorder(self) -> AcceptanceRecorder | None:
        """The sum over all sequences started so far; None at level none."""
        return sum_recorders([sequence.recorder for sequence in self.sequences if sequence.recorder is not None])

    def tell(self, sequence: Sequence) -> None:
        """Write the chunk of a step that has added to a sequence, if the request is streamed."""
        if self._writer is not None:
            index = next(i for i, other in enumerate(self.sequences) if other is sequence)
            self._writer.tell(self._answer(index), index=index)

    def record(self) -> dict[str, Any]:
        """Return the output line."""
        num_output_tokens = sum(sequence.num_output_tokens for sequence in self.sequences)
        usage = Usage(
            prompt_tokens=sum(sequence.num_prompt_tokens for sequence in self.sequences) // self._sampling.n,
            completion_tokens=num_output_tokens,
        )
        metrics = self._metrics(num_output_tokens)
        if self._writer is not None:
            self._writer.close(usage, metrics)
            return stream_record(self.request, chunks=self._writer.chunks)
        return response_record(
            self.request,
            choices=[self._answer(index).choice() for index in range(len(self.sequences))],
            usage=usage,
            metrics=metrics,
            model_name=self.limits.model_name,
            created=self._created,
        )

    def _encode(self, prompt: Prompt) -> list[int]:
        ids = self.tokenizer.encode(prompt)
        return fit_prompt(ids, self.request, max_model_len=self.limits.max_model_len)

    def _answer(self, index: int) -> Answer:
        return Answer(
            request=self.request,
            prompt=self._prompts[index],
            sequence=self.sequences[index],
            tokenizer=self.tokenizer,
        )

    def _add(self, prompt: Prompt, ids: list[int], *, sample_index: int, now: float) -> Sequence:
        sampling, limits = self._sampling, self.limits
        limit = limits.max_model_len
        sequence = Sequence.start(
            prompt=ids,
            max_num_tokens=limit if sampling.max_tokens is None else len(ids) + sampling.max_tokens,
            context_limit=limit,
            sampling=sampling,
            stop_ids=frozenset(sampling.stop_token_ids) | (frozenset() if sampling.ignore_eos else limits.eos_ids),
            queued=now,
            sample_index=sample_index,
            request_index=self.request.index,
            custom_id=self.request.custom_id,
            recorder=make_recorder(level=limits.level, num_spec_tokens=limits.num_spec_tokens),
            bad_words=tuple(ids for word in sampling.bad_words for ids in self.tokenizer.encode_bad_word(word)),
            grammar=None if sampling.structured is None else self.grammars.compile(sampling.structured),
            text=text_stream(self.request, tokenizer=self.tokenizer, prompt_ids=ids) if self._needs_text else None,
        )
        self._prompts.append(prompt)
        self.sequences.append(sequence)
        return sequence

    @property
    def _needs_text(self) -> bool:
        """Whether the text must be known before the end: to find a stop text in it, or to stream it."""
        return bool(self._sampling.stop) or self.request.stream

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
        if self.limits.level is Level.DETAILED:
            own |= {"sequences": [_token_ids(sequence) for sequence in self.sequences]}
        return metrics_document(timing=timing, speculative_decoding=total.speculative_decoding(), batchspec=own)


def _token_ids(sequence: Sequence) -> dict[str, list[int]]:
    """Return what replay needs of a sequence: its tokens, and what the last step chose behind its end."""
    return {
        "prompt_token_ids": sequence.prompt_ids,
        "token_ids": sequence.output_ids,
        "cut_token_ids": list(sequence.cut_ids),
    }
