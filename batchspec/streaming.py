"""The chunk objects that a streaming server sends.

Shapes follow OpenAI's API reference (chat completion chunk object, completion object) and, for ``stop_reason``,
``token_ids``, ``prompt_token_ids`` and ``metrics``, the chunks that a vLLM server sends.
"""

from collections.abc import Mapping
from typing import Any

from batchspec.records import Usage, response_id
from batchspec.request import Endpoint, Request

__all__ = ["ChunkShape"]


class ChunkShape:
    """Makes the chunks of one request: an opening for every choice of a chat, what each step adds, the usage.

    Args:
        request: what was asked.
        model_name: echoed when the request named no model.
        created: Unix time in seconds.
    """

    def __init__(self, request: Request, *, model_name: str, created: int):
        self._is_chat = request.endpoint is Endpoint.CHAT
        self._wants_ids = request.sampling.return_token_ids
        self._head = {
            "id": response_id(request),
            "object": "chat.completion.chunk" if self._is_chat else "text_completion",
            "created": created,
            "model": request.model or model_name,
        }

    def role(self, index: int, *, prompt_token_ids: list[int] | None) -> dict[str, Any]:
        """Return the chunk that opens a choice of a chat.

        Args:
            index: of the choice.
            prompt_token_ids: as the model saw the prompt; written only if the request asked for ids.
        """
        delta = {"role": "assistant", "content": ""}
        chunk = self._chunk({"index": index, "delta": delta, "logprobs": None, "finish_reason": None})
        return chunk | {"prompt_token_ids": prompt_token_ids} if self._wants_ids else chunk

    def delta(
        self,
        index: int,
        *,
        text: str,
        logprobs: Mapping[str, Any] | None,
        token_ids: list[int] | None,
        finish_reason: str | None,
        stop_reason: int | str | None,
        prompt_token_ids: list[int] | None,
    ) -> dict[str, Any]:
        """Return the chunk of what a step added to a choice.

        Args:
            index: of the choice.
            text: that is new and certain.
            logprobs: of the step's tokens, in the shape of the endpoint; None unless asked for.
            token_ids: the step's tokens; written only if the request asked for ids.
            finish_reason: None on every chunk of the choice but the last.
            stop_reason: what stopped it, as in a record.
            prompt_token_ids: on a completion's first chunk; a chat's stand in its opening.
        """
        choice: dict[str, Any] = {"index": index}
        choice |= {"delta": {"content": text}} if self._is_chat else {"text": text}
        choice |= {"logprobs": logprobs, "finish_reason": finish_reason}
        if not self._is_chat or finish_reason is not None:
            choice["stop_reason"] = stop_reason
        if self._wants_ids:
            choice |= {} if self._is_chat else {"prompt_token_ids": prompt_token_ids}
            choice["token_ids"] = token_ids
        return self._chunk(choice)

    def usage(self, usage: Usage, metrics: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the last chunk, which has no choices; ``metrics`` is what ``metrics_document`` made."""
        counts = {"usage": usage.document(), "metrics": None if metrics is None else dict(metrics)}
        return self._chunk() | counts

    def _chunk(self, *choices: dict[str, Any]) -> dict[str, Any]:
        return self._head | {"choices": list(choices)}
