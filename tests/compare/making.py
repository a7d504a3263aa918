"""Runs made for the tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson


def stated(per_step: Sequence[tuple[int, int]], *, k: int = 3) -> dict[str, Any]:
    """Return ``speculative_decoding`` of a request with (drafted, accepted) steps."""
    accepted, drafted = [taken for _, taken in per_step], [given for given, _ in per_step]
    return {
        "acceptance_histogram": [accepted.count(j) for j in range(k + 1)],
        "num_spec_steps": len(per_step),
        "num_accepted_draft_tokens": sum(accepted),
        "num_draft_tokens": sum(drafted),
        "num_spec_tokens": k,
    }


def answer(
    custom_id: str,
    per_step: Sequence[tuple[int, int]] | None = None,
    *,
    texts: Sequence[str] = ("hello",),
    token_ids: Sequence[int] | None = None,
    category: str | None = None,
    timing: Mapping[str, float] | None = None,
    tokens: int = 10,
    beside: Mapping[str, Any] | None = None,
    k: int = 3,
) -> dict[str, Any]:
    """Return a batch output line."""
    metrics: dict[str, Any] = dict(timing or {})
    metrics["speculative_decoding"] = None if per_step is None else stated(per_step, k=k)
    if beside is not None:
        metrics["batchspec"] = dict(beside)
    choices = [
        {"index": i, "text": text, "finish_reason": "stop", "token_ids": token_ids} for i, text in enumerate(texts)
    ]
    body = {"choices": choices, "usage": {"prompt_tokens": 1, "completion_tokens": tokens}, "metrics": metrics}
    line = {"custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}
    return line if category is None else line | {"category": category}


def failure(custom_id: str) -> dict[str, Any]:
    """Return the line of a request that was not served."""
    error = {"message": "no", "code": "invalid_value"}
    return {"custom_id": custom_id, "response": {"status_code": 400, "body": {"error": error}}, "error": error}


def write_run(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """Write responses and return their path."""
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return str(path)
