"""A request's answer as a server would stream it: chunk after chunk, as tokens are committed."""

from collections.abc import Callable, Mapping
from typing import Any

from batchspec.answer import Answer
from batchspec.records import Usage
from batchspec.request import Endpoint, Request
from batchspec.sequence import Sequence
from batchspec.streaming import ChunkShape

__all__ = ["ChunkWriter"]


class ChunkWriter:
    """Makes the chunks of one request and keeps them.

    Args:
        request: a request with ``stream``.
        shape: how its chunks look.
        on_chunk: called with every chunk as it is made.
    """

    def __init__(self, request: Request, *, shape: ChunkShape, on_chunk: Callable[[dict[str, Any]], None]):
        self.request = request
        self.shape = shape
        self.chunks: list[dict[str, Any]] = []
        self._on_chunk = on_chunk
        self._num_told: dict[int, int] = {}

    def tell(self, answer: Answer, *, index: int) -> None:
        """Write what a step has added to a sequence, its opening before; nothing if the step added nothing to tell."""
        sequence = answer.sequence
        told = self._num_told.get(index)
        is_first = told is None
        wants_ids = self.request.sampling.return_token_ids
        prompt_ids = sequence.prompt_ids if is_first and wants_ids else None
        if is_first and self.request.endpoint is Endpoint.CHAT:
            self._write(self.shape.role(index, prompt_token_ids=prompt_ids))
        first, last = told or 0, sequence.num_output_tokens
        self._num_told[index] = last
        text = (answer.echoed if is_first else "") + _taken(sequence)
        logprobs = answer.logprobs(first=first, last=last, lengths=lambda: _lengths(sequence))
        if not text and sequence.finish_reason is None and not wants_ids and logprobs is None:
            return
        self._write(
            self.shape.delta(
                index,
                text=text,
                logprobs=logprobs,
                token_ids=sequence.output_ids[first:last] if wants_ids else None,
                finish_reason=sequence.finish_reason,
                stop_reason=sequence.stop_reason,
                prompt_token_ids=prompt_ids,
            )
        )

    def close(self, usage: Usage, metrics: Mapping[str, Any] | None) -> None:
        """Write the last chunk, which tells usage and metrics, if the request wants it."""
        if self.request.include_usage:
            self._write(self.shape.usage(usage, metrics))

    def _write(self, chunk: dict[str, Any]) -> None:
        self.chunks.append(chunk)
        self._on_chunk(chunk)


def _taken(sequence: Sequence) -> str:
    return sequence.text.take() if sequence.text is not None else ""


def _lengths(sequence: Sequence) -> list[int]:
    """Return the text's length behind each token; a token that is not shown adds nothing."""
    if sequence.text is None:
        return [0] * sequence.num_output_tokens
    lengths = sequence.text.lengths
    return lengths + [len(sequence.text.text)] * (sequence.num_output_tokens - len(lengths))
