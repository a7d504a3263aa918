"""What speculation must not change about a body, streamed or not; and the official models of its shape."""

from typing import Any

from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

__all__ = ["check_shape", "essence", "flattened"]


def check_shape(body: Any) -> None:
    """Raise unless the body fits the models of the ``openai`` package.

    The model of a completion demands a finish reason, which the chunks of a stream have only at the end.
    """
    if isinstance(body, list):
        for chunk in body:
            if chunk["object"] == "chat.completion.chunk":
                ChatCompletionChunk.model_validate(chunk, strict=True)
            else:
                choices = [choice | {"finish_reason": choice["finish_reason"] or "stop"} for choice in chunk["choices"]]
                Completion.model_validate(chunk | {"choices": choices}, strict=True)
        return
    (ChatCompletion if body["object"] == "chat.completion" else Completion).model_validate(body, strict=True)


def essence(body: Any) -> Any:
    """Return the body without what may depend on speculation: the metrics, the time, and where a stream is cut."""
    if isinstance(body, list):
        return flattened(body)
    return {key: value for key, value in body.items() if key not in ("metrics", "created")}


def flattened(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a client puts together from a stream: one text, finish reason and list of tokens for each choice."""
    choices: dict[int, dict[str, Any]] = {}
    usage = None
    for chunk in chunks:
        usage = chunk.get("usage", usage)
        for choice in chunk["choices"]:
            one = choices.setdefault(choice["index"], {"text": "", "finish_reason": None, "ids": [], "logprobs": []})
            one["text"] += choice["text"] if "text" in choice else choice["delta"].get("content", "")
            one["finish_reason"] = choice["finish_reason"] or one["finish_reason"]
            one["stop_reason"] = choice.get("stop_reason")
            one["ids"] += choice.get("token_ids") or []
            one["logprobs"] += _listed(choice["logprobs"])
    return {"choices": choices, "usage": usage}


def _listed(logprobs: dict[str, Any] | None) -> list[Any]:
    if logprobs is None:
        return []
    if "content" in logprobs:
        return list(logprobs["content"])
    keys = ("text_offset", "tokens", "token_logprobs", "top_logprobs")
    return list(zip(*(logprobs[key] for key in keys), strict=True))
