"""Logs for the tests: captures of a real server, shapes of other engines, and rows made up on the spot."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from batchspec.ingest import LogRecord, SkippedRow, read_logs

__all__ = ["DATA", "FOREIGN", "ORACLE", "SUMMARY", "batch_line", "body", "read_rows", "write_rows"]

DATA = Path(__file__).parents[1] / "data"
FOREIGN = DATA / "foreign"
ORACLE = DATA / "oracle"

SUMMARY: dict[str, Any] = {
    "mean_acceptance_length": 1.2325581395348837,
    "draft_acceptance_rate": 0.07751937984496124,
    "acceptance_histogram": [39, 1, 0, 3],
    "num_spec_steps": 43,
    "num_accepted_draft_tokens": 10,
    "num_draft_tokens": 129,
    "num_spec_tokens": 3,
}


def body(speculative_decoding: Any = None, *, tokens: int = 54, **metrics: Any) -> dict[str, Any]:
    """A whole response with vLLM's metrics."""
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "model": "m",
        "choices": [{"index": 0, "text": "x", "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": tokens + 9},
        "metrics": {"speculative_decoding": speculative_decoding, **metrics},
    }


def batch_line(body: Any, *, custom_id: str = "a", **more: Any) -> dict[str, Any]:
    """A batch output line around a body."""
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None, **more}


def write_rows(path: Path, rows: Iterable[Any]) -> str:
    """Write rows as JSONL; a row of bytes as it is."""
    lines = (row if isinstance(row, bytes) else orjson.dumps(row) for row in rows)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


def read_rows(path: Path, rows: Iterable[Any]) -> list[LogRecord | SkippedRow]:
    """Write rows and read them as a log."""
    return list(read_logs([write_rows(path, rows)]))
