"""The texts, token ids and times of one run's responses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from batchspec.files.source import Row, open_source
from batchspec.ingest.streams import is_chunk

__all__ = ["Answer", "Output", "read_answers"]

_TIMES = ("time_to_first_token_ms", "generation_time_ms")


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """One choice of a response.

    Attributes:
        text: what was written.
        token_ids: its ids, None unless the response tells them.
        finish_reason: why it ended.
    """

    text: str
    token_ids: Sequence[int] | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One response.

    Attributes:
        line: where it stands in its file.
        outputs: its choices, in their order; empty where one of them tells no text.
        num_tokens: of all choices, None when not told.
        first_token_ms: milliseconds from being scheduled to the first token, None without timing fields.
        generation_ms: milliseconds from the first to the last token, None without timing fields.
    """

    line: int
    outputs: tuple[Output, ...]
    num_tokens: int | None = None
    first_token_ms: float | None = None
    generation_ms: float | None = None


def read_answers(path: str) -> Iterator[Answer]:
    """Yield the answers of a run, one in memory at a time; rows that hold no whole response, such as a single chunk of
    a stream, are passed over.

    Args:
        path: file or run directory that ``read_side`` has read.

    Raises:
        DamagedInputError: the file is truncated or corrupt; raised where that shows.
    """
    source = open_source(Path(path) / "responses.jsonl" if Path(path).is_dir() else path)
    for row in source.rows():
        body = _body(row)
        if body is not None:
            yield _answer(row[0], body)


def _body(row: Row) -> Mapping[str, Any] | list[Any] | None:
    """Return the body in a row, be it a batch line, in Parquet or not, or the body itself; None when there is none."""
    _, content = row
    value = _parsed(content)
    if isinstance(value, dict) and "response" in value:
        response = _parsed(value["response"])
        value = response.get("body", response) if isinstance(response, dict) else None
    elif isinstance(value, dict) and is_chunk(value):
        return None
    return value if isinstance(value, dict | list) else None


def _parsed(value: Any) -> Any:
    """Return what a line of JSON, or a text of Parquet, holds; None when it is not JSON."""
    if not isinstance(value, bytes | str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def _answer(line: int, body: Mapping[str, Any] | list[Any]) -> Answer:
    chunks = [chunk for chunk in (body if isinstance(body, list) else [body]) if isinstance(chunk, Mapping)]
    last = chunks[-1] if chunks else {}
    usage, metrics = last.get("usage"), last.get("metrics")
    tokens = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    first, rest = (_number(metrics, name) for name in _TIMES)
    return Answer(
        line=line,
        outputs=tuple(_outputs(chunks)),
        num_tokens=tokens if isinstance(tokens, int) else None,
        first_token_ms=first,
        generation_ms=rest,
    )


def _number(fields: Any, name: str) -> float | None:
    value = fields.get(name) if isinstance(fields, Mapping) else None
    return float(value) if isinstance(value, int | float) else None


def _outputs(chunks: Sequence[Mapping[str, Any]]) -> list[Output]:
    """Return the choices of a response, or those that the chunks of a stream add up to; none if one tells no text."""
    parts: dict[int, list[Mapping[str, Any]]] = {}
    for chunk in chunks:
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping):
                parts.setdefault(choice.get("index") or 0, []).append(choice)
    outputs = [_output(choice_parts) for _, choice_parts in sorted(parts.items())]
    return [] if None in outputs else [output for output in outputs if output is not None]


def _output(parts: Sequence[Mapping[str, Any]]) -> Output | None:
    texts = [_text(part) for part in parts]
    ids = [part.get("token_ids") for part in parts]
    known = [part for part in ids if isinstance(part, list)]
    reasons = [part["finish_reason"] for part in parts if part.get("finish_reason") is not None]
    if None in texts:
        return None
    return Output(
        text="".join(text for text in texts if text is not None),
        token_ids=[token for part in known for token in part] if len(known) == len(ids) else None,
        finish_reason=reasons[-1] if reasons else None,
    )


def _text(choice: Mapping[str, Any]) -> str | None:
    """Return what a choice, or a chunk of it, says; None where it has no place for a text."""
    for name in ("message", "delta"):
        if isinstance(choice.get(name), Mapping):
            content = choice[name].get("content")
            return content if isinstance(content, str) else ""
    text = choice.get("text")
    return text if isinstance(text, str) else None
