"""The chunks of a streamed response as one body, as far as token ids go."""

from collections.abc import Mapping
from typing import Any

from batchspec.replay.choices import choices_of, malformed

__all__ = ["merged"]


def merged(chunks: list[Any]) -> dict[str, Any]:
    """Return the body; a chat's prompt, which stands beside the choices of a chunk, then stands in each of them.

    Raises:
        Unfit: a chunk is none.
    """
    metrics: Any = None
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        if not isinstance(chunk, dict):
            malformed()
        metrics = chunk.get("metrics") or metrics
        for part in choices_of(chunk) if chunk.get("choices") else ():
            number = part.get("index", 0)
            _add_part(choices.setdefault(number, {"index": number}), part, prompt=chunk.get("prompt_token_ids"))
    return {"choices": list(choices.values()), "metrics": metrics}


def _add_part(choice: dict[str, Any], part: Mapping[str, Any], *, prompt: Any) -> None:
    if "delta" in part:
        choice["message"] = None
    own = part.get("prompt_token_ids")
    if own is not None or prompt is not None:
        choice["prompt_token_ids"] = prompt if own is None else own
    ids = part.get("token_ids")
    if isinstance(ids, list):
        choice.setdefault("token_ids", []).extend(ids)
