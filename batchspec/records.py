"""OpenAI-shaped output: the body of a response, and the batch line around it.

Shapes follow OpenAI's API reference (chat completion object, completion object, batch output object) and, for
``stop_reason``, ``token_ids`` and ``metrics``, the bodies that a vLLM server writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from batchspec.params import SamplingParams, StructuredOutput
from batchspec.request import Endpoint, RejectedLine, Request
from batchspec.sequence import Timing

__all__ = [
    "Choice",
    "Usage",
    "error_record",
    "metrics_document",
    "response_id",
    "response_record",
    "sampling_document",
    "stream_record",
    "timing_document",
]

_TIMING_KEYS = (
    "time_to_first_token_ms",
    "generation_time_ms",
    "queue_time_ms",
    "mean_itl_ms",
    "tokens_per_second",
)
_SAMPLING_KEYS = ("max_tokens", "temperature", "top_p", "top_k", "min_p", "seed")  # always told


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One finished sequence as the caller sees it.

    Attributes:
        text: the decoded output, without the token that stopped it.
        finish_reason: "stop" or "length".
        stop_reason: the stop token id or the stop text that ended it, else None.
        prompt_token_ids: as the model saw the prompt; None unless the request asked for ids.
        token_ids: the output's ids, the stopping token included; None unless the request asked for ids.
        logprobs: of the output's tokens, in the shape of the endpoint; None unless the request asked for them.
        prompt_logprobs: of the prompt's tokens, in vLLM's shape; None unless the request asked for them.
    """

    text: str
    finish_reason: str
    stop_reason: int | str | None = None
    prompt_token_ids: list[int] | None = None
    token_ids: list[int] | None = None
    logprobs: Mapping[str, Any] | None = None
    prompt_logprobs: list[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Token counts of one request: a prompt counts once, however many samples it has."""

    prompt_tokens: int
    completion_tokens: int

    def document(self) -> dict[str, Any]:
        """Return the ``usage`` object."""
        total = self.prompt_tokens + self.completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": total,
            "completion_tokens": self.completion_tokens,
            "prompt_tokens_details": None,
        }


def timing_document(timing: Timing, *, num_tokens: int) -> dict[str, float | None]:
    """Return vLLM's per-request timing fields in milliseconds and tokens per second.

    Args:
        timing: the sequence's clock readings, in seconds.
        num_tokens: output tokens.
    """
    if timing.scheduled is None or timing.first_token is None or timing.last_token is None:
        return dict.fromkeys(_TIMING_KEYS)
    generation = timing.last_token - timing.first_token
    busy = timing.last_token - timing.scheduled
    return {
        "time_to_first_token_ms": (timing.first_token - timing.scheduled) * 1000,
        "generation_time_ms": generation * 1000,
        "queue_time_ms": (timing.scheduled - timing.queued) * 1000,
        "mean_itl_ms": generation * 1000 / (num_tokens - 1) if num_tokens > 1 else None,
        "tokens_per_second": num_tokens / busy if busy > 0 else None,
    }


def metrics_document(
    *,
    timing: Mapping[str, float | None] | None,
    speculative_decoding: Mapping[str, Any] | None,
    batchspec: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """Return the body's ``metrics``; None when there is nothing to report.

    Args:
        timing: what ``timing_document`` made, or None when timing is off or has no meaning (n > 1).
        speculative_decoding: the documented acceptance fields, or None when off or without meaning.
        batchspec: our own additions, which never go inside ``speculative_decoding``.
    """
    if timing is None and speculative_decoding is None:
        return None
    document: dict[str, Any] = dict(timing) if timing is not None else dict.fromkeys(_TIMING_KEYS)
    document["speculative_decoding"] = None if speculative_decoding is None else dict(speculative_decoding)
    if batchspec is not None:
        document["batchspec"] = dict(batchspec)
    return document


def sampling_document(sampling: SamplingParams) -> dict[str, Any]:
    """Return the parameters a request ran with: the common ones always, others where they are not the default.

    ``return_token_ids``, which chooses nothing, is left out; of a grammar only what was given is told.
    """
    document = {key: getattr(sampling, key) for key in _SAMPLING_KEYS} | _changed(sampling)
    document.pop("return_token_ids", None)
    if sampling.structured is not None:
        document["structured"] = _changed(sampling.structured)
    if sampling.logit_bias:
        document["logit_bias"] = {str(token_id): bias for token_id, bias in sampling.logit_bias}
    return document


def _changed(values: SamplingParams | StructuredOutput) -> dict[str, Any]:
    """Return the fields that are not the default, tuples as lists."""
    changed = {}
    for field in fields(values):
        value = getattr(values, field.name)
        if value != field.default:
            changed[field.name] = list(value) if isinstance(value, tuple) else value
    return changed


def response_id(request: Request) -> str:
    """Return the ``id`` of the body, and of every chunk of a stream."""
    return f"{'chatcmpl' if request.endpoint is Endpoint.CHAT else 'cmpl'}-{request.index:08d}"


def _chat_choice(index: int, choice: Choice) -> dict[str, Any]:
    return {
        "index": index,
        "message": {"role": "assistant", "content": choice.text, "refusal": None},
        "logprobs": choice.logprobs,
        "finish_reason": choice.finish_reason,
        "stop_reason": choice.stop_reason,
        "token_ids": choice.token_ids,
    }


def _completion_choice(index: int, choice: Choice) -> dict[str, Any]:
    return {
        "index": index,
        "text": choice.text,
        "logprobs": choice.logprobs,
        "finish_reason": choice.finish_reason,
        "stop_reason": choice.stop_reason,
        "token_ids": choice.token_ids,
        "prompt_token_ids": choice.prompt_token_ids,
    }


def response_record(
    request: Request,
    *,
    choices: Sequence[Choice],
    usage: Usage,
    metrics: Mapping[str, Any] | None,
    model_name: str,
    created: int,
) -> dict[str, Any]:
    """Return the output line of a served request.

    Args:
        request: what was asked.
        choices: in order of prompts, then samples, then turns.
        usage: token counts over all choices.
        metrics: what ``metrics_document`` made.
        model_name: echoed when the request named no model.
        created: Unix time in seconds.
    """
    is_chat = request.endpoint is Endpoint.CHAT
    shape = _chat_choice if is_chat else _completion_choice
    body: dict[str, Any] = {
        "id": response_id(request),
        "object": "chat.completion" if is_chat else "text_completion",
        "created": created,
        "model": request.model or model_name,
        "choices": [shape(index, choice) for index, choice in enumerate(choices)],
        "usage": usage.document(),
    }
    if request.sampling.prompt_logprobs is not None:
        for part, choice in zip([body] if is_chat else body["choices"], choices, strict=False):
            part["prompt_logprobs"] = choice.prompt_logprobs
    if is_chat and request.sampling.return_token_ids:
        body["prompt_token_ids"] = choices[0].prompt_token_ids
    body["metrics"] = None if metrics is None else dict(metrics)
    return _batch_line(request, status_code=200, body=body, error=None)


def stream_record(request: Request, *, chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the output line of a streamed request; the body is the list of its chunks."""
    return _batch_line(request, status_code=200, body=chunks, error=None)


def error_record(line: RejectedLine) -> dict[str, Any]:
    """Return the output line of a line that could not be served."""
    error = {
        "message": line.message,
        "type": "invalid_request_error" if line.status_code < 500 else "server_error",
        "param": line.param,
        "code": line.code,
    }
    return _batch_line(line, status_code=line.status_code, body={"error": error}, error=error)


def _batch_line(
    line: Request | RejectedLine,
    *,
    status_code: int,
    body: dict[str, Any] | list[dict[str, Any]],
    error: dict[str, Any] | None,
) -> dict[str, Any]:
    record: dict[str, Any] = {"id": f"batch_req_{line.index:08d}", "custom_id": line.custom_id}
    if line.category is not None:
        record["category"] = line.category
    if isinstance(line, Request):
        record["sampling"] = sampling_document(line.sampling)
    response = {"status_code": status_code, "request_id": f"req_{line.index:08d}", "body": body}
    return record | {"response": response, "error": error}
