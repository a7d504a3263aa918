"""What a served record's body says, be it one object or the list of chunks that a stream is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["BodyFacts", "body_facts"]

Body = Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class BodyFacts:
    """The facts that reports and tables need.

    Attributes:
        text: of the first choice; None for a message without content.
        finish_reasons: of every choice, in the order of the choices; a stream's in the order in which they ended.
        finish_reason: of the first choice.
        usage: the token counts; None for a stream that does not tell them.
        speculative_decoding: the acceptance metrics; None where there are none or a stream does not tell them.
        batchspec: the fields beside them.
    """

    text: str | None
    finish_reasons: Sequence[str]
    finish_reason: str | None
    usage: Mapping[str, Any] | None
    speculative_decoding: Mapping[str, Any] | None
    batchspec: Mapping[str, Any] | None


def body_facts(body: Body) -> BodyFacts:
    """Return the facts of a body; nothing that a stream leaves out is guessed from what it tells.

    Args:
        body: of a response with status 200: a completion object, or its chunks.
    """
    if isinstance(body, Mapping):
        choices = list(body.get("choices") or ())
        text, last = _text(choices[0] if choices else {}), body
    else:
        choices = [choice for chunk in body for choice in chunk["choices"]]
        text = "".join(_deltas(choices))
        choices = [choice for choice in choices if choice.get("finish_reason") is not None]
        last = body[-1] if body and not body[-1]["choices"] else {}
    metrics = last.get("metrics") or {}
    return BodyFacts(
        text=text,
        finish_reasons=[str(choice.get("finish_reason")) for choice in choices],
        finish_reason=next((choice.get("finish_reason") for choice in choices if choice.get("index", 0) == 0), None),
        usage=last.get("usage"),
        speculative_decoding=metrics.get("speculative_decoding"),
        batchspec=metrics.get("batchspec"),
    )


def _text(choice: Mapping[str, Any]) -> str | None:
    found: str | None = choice["message"].get("content") if "message" in choice else choice.get("text")
    return found


def _deltas(choices: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the pieces of the first choice's text."""
    for choice in choices:
        if choice.get("index", 0) == 0:
            yield (choice["delta"].get("content") if "delta" in choice else choice.get("text")) or ""
