"""When a response was made and how long it took, whatever stands around its body."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

__all__ = ["Body", "ResponseTimes", "last_part", "response_body", "response_times"]

_LATEST = 2**33  # Unix seconds, in the year 2242

Body = Mapping[str, Any] | list[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseTimes:
    """Times of one response; None where it does not tell them, or something that is no time.

    Attributes:
        created: Unix seconds.
        queue_ms: milliseconds from being asked to being scheduled.
        first_token_ms: milliseconds from there to the first token.
        generation_ms: milliseconds from there to the last token.
    """

    created: int | None = None
    queue_ms: float | None = None
    first_token_ms: float | None = None
    generation_ms: float | None = None

    @property
    def latency_ms(self) -> float | None:
        """Milliseconds from being asked to the last token."""
        parts = self.queue_ms, self.first_token_ms, self.generation_ms
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


def response_body(row: Any) -> Body | None:
    """Return the body in a row, be it a batch line, or the body itself; None when there is none.

    Args:
        row: decoded JSON, or a row of Parquet, where what is nested may be text.
    """
    value = _decoded(row)
    if isinstance(value, dict) and "response" in value:
        response = _decoded(value["response"])
        value = _decoded(response.get("body", response)) if isinstance(response, dict) else None
    return value if isinstance(value, dict | list) else None


def last_part(body: Body) -> Mapping[str, Any]:
    """Return what holds usage and metrics: the body, or the last chunk of a stream."""
    parts = body if isinstance(body, list) else [body]
    return next((part for part in reversed(parts) if isinstance(part, Mapping)), {})


def response_times(body: Body) -> ResponseTimes:
    """Return the times that a body tells in ``created`` and in vLLM's timing fields."""
    last = last_part(body)
    metrics = last.get("metrics")
    timing = metrics if isinstance(metrics, Mapping) else {}
    created = last.get("created")
    is_time = isinstance(created, int) and not isinstance(created, bool) and 0 <= created < _LATEST
    return ResponseTimes(
        created=created if is_time else None,
        queue_ms=_milliseconds(timing, "queue_time_ms"),
        first_token_ms=_milliseconds(timing, "time_to_first_token_ms"),
        generation_ms=_milliseconds(timing, "generation_time_ms"),
    )


def _milliseconds(timing: Mapping[str, Any], name: str) -> float | None:
    value = timing.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST * 1000:
        return None
    return float(value)


def _decoded(value: Any) -> Any:
    """Return what a text holds, None when that is not JSON."""
    if not isinstance(value, bytes | str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
