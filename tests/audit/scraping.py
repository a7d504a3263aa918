"""Scrapes and responses made for the tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

ORACLE = Path(__file__).parents[1] / "data" / "oracle"
SPECULATIVE = ("ngram_k1_n1-1", "ngram_k3_n1-3", "ngram_k5_n2-4")
NAMES = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")


def exposition(
    *,
    steps: int,
    drafted: int,
    accepted: Sequence[int],
    engine: str | None = "0",
    finished: int | None = None,
    prefix: str = "vllm",
) -> str:
    """Return the lines of one engine; ``accepted`` is by position."""
    labels = {"model_name": "m"} | ({} if engine is None else {"engine": engine})
    values = dict(zip(NAMES, (steps, drafted, sum(accepted)), strict=True))
    lines = [series(f"{prefix}:spec_decode_{name}_total", value, labels) for name, value in values.items()]
    lines += [series(f"{prefix}:spec_decode_{name}_created", 1.7e9, labels) for name in values]
    lines += [
        series(f"{prefix}:spec_decode_num_accepted_tokens_per_pos_total", count, labels | {"position": str(i)})
        for i, count in enumerate(accepted)
    ]
    if finished is not None:
        lines.append(series("vllm:request_success_total", finished, labels | {"finished_reason": "stop"}))
    return "".join(lines)


def series(name: str, value: float, labels: Mapping[str, str]) -> str:
    """Return one line."""
    inner = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inner}}} {float(value)}\n"


def stated(per_step: Sequence[tuple[int, int]], *, k: int = 3) -> dict[str, Any]:
    """Return ``speculative_decoding`` of a request with (drafted, accepted) steps."""
    accepted = [taken for _, taken in per_step]
    drafted = [given for given, _ in per_step]
    steps = len(per_step)
    return {
        "mean_acceptance_length": 1 + sum(accepted) / steps if steps else 1.0,
        "draft_acceptance_rate": sum(accepted) / sum(drafted) if steps else 0.0,
        "acceptance_histogram": [accepted.count(j) for j in range(k + 1)],
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": sum(accepted),
        "num_draft_tokens": sum(drafted),
        "num_spec_tokens": k,
    }


def response(
    custom_id: str, speculative: Mapping[str, Any] | None, *, tokens: int | None = 64, num_choices: int = 1
) -> dict[str, Any]:
    """Return a batch output line as a vLLM server's batch runner writes it."""
    body: dict[str, Any] = {
        "id": f"cmpl-{custom_id}",
        "object": "text_completion",
        "created": 1_795_976_554,
        "model": "m",
        "choices": [{"index": i, "text": "x", "finish_reason": "length"} for i in range(num_choices)],
        "usage": {"prompt_tokens": 5, "completion_tokens": tokens},
        "metrics": {"speculative_decoding": speculative},
    }
    if tokens is None:
        del body["usage"]
    return {"id": "b", "custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}


def failure(custom_id: str, *, code: int | str = 500) -> dict[str, Any]:
    """Return the line of a request that was not served."""
    error = {"message": "it broke", "code": code}
    return {
        "id": "b",
        "custom_id": custom_id,
        "response": {"status_code": 500, "body": {"error": error}},
        "error": error,
    }


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as JSONL and return the path."""
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return str(path)
