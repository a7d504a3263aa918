"""The texts, token ids and times of one run's responses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.decode import decode_row
from batchspec.files.source import Row, open_source
from batchspec.ingest.streams import is_chunk
from batchspec.response_times import Body, ResponseTimes, last_part, response_body, response_times

__all__ = ["Answer", "Output", "read_answers"]


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
        times: when it was made, and how long it took.
    """

    line: int
    outputs: tuple[Output, ...]
    num_tokens: int | None
    times: ResponseTimes


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
        content = _object(row)
        body = None if content is None or is_chunk(content) else response_body(content)
        if body is not None:
            usage = last_part(body).get("usage")
            tokens = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
            yield Answer(
                line=row[0],
                outputs=tuple(_with_recorded_ids(_outputs(body if isinstance(body, list) else [body]), body)),
                num_tokens=tokens if isinstance(tokens, int) else None,
                times=response_times(body),
            )


def _object(row: Row) -> Mapping[str, Any] | None:
    """Return the object that a row holds, None when it holds none."""
    _, content = row
    try:
        return content if isinstance(content, dict) else decode_row(content) if isinstance(content, bytes) else None
    except RequestError:
        return None


def _outputs(chunks: Sequence[Any]) -> list[Output]:
    """Return the choices of a response, or those that the chunks of a stream add up to; none if one tells no text."""
    parts: dict[int, list[Mapping[str, Any]]] = {}
    for chunk in chunks:
        choices = chunk.get("choices") if isinstance(chunk, Mapping) else None
        for place, choice in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(choice, Mapping):
                index = choice.get("index")
                parts.setdefault(index if isinstance(index, int) else place, []).append(choice)
    outputs = [_output(choice_parts) for _, choice_parts in sorted(parts.items())]
    return [] if None in outputs else [output for output in outputs if output is not None]


def _with_recorded_ids(outputs: list[Output], body: Body) -> Iterator[Output]:
    """Yield the choices with the token ids that a detailed record of ours has beside them, one sequence for each."""
    metrics = last_part(body).get("metrics")
    beside = metrics.get("batchspec") if isinstance(metrics, Mapping) else None
    sequences = beside.get("sequences") if isinstance(beside, Mapping) else None
    is_whole = isinstance(sequences, list) and len(sequences) == len(outputs)
    for i, output in enumerate(outputs):
        sequence = sequences[i] if isinstance(sequences, list) and is_whole else None
        ids = _ids(sequence)
        yield replace(output, token_ids=ids) if output.token_ids is None and ids is not None else output


def _ids(holder: Any) -> list[int] | None:
    """Return the token ids that an object tells; None where it tells none, or anything else under their name."""
    ids = holder.get("token_ids") if isinstance(holder, Mapping) else None
    return ids if isinstance(ids, list) and set(map(type, ids)) <= {int} else None


def _output(parts: Sequence[Mapping[str, Any]]) -> Output | None:
    texts = [_text(part) for part in parts]
    ids = [_ids(part) for part in parts]
    known = [part for part in ids if part is not None]
    reasons = [part["finish_reason"] for part in parts if isinstance(part.get("finish_reason"), str)]
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
