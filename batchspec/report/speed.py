"""How fast ``batchspec report`` is: records per second and memory over one file of summary records.

Run it with ``python -m batchspec.report.speed`` (``--records``, ``--rounds``); the file is made anew in a temporary
directory. Everything that the command does is timed but the start of the interpreter: reading, parsing, checking, the
columns, the intervals and the document.
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from batchspec.report.logs.groups import Grouping
from batchspec.report.logs.reporting import report_logs

__all__ = ["main", "measure", "summary_records"]

_K = 3
_CATEGORIES = ("code", "correct", "extract", "list", "question", "story", "table", "translate")
_WORDS = ("the", "draft", "was", "accepted", "and", "its", "length", "grew", "by", "one", "token", "more")


def summary_records(num_records: int, *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield batch output lines with ``summary`` metrics that agree with themselves, about 900 bytes each."""
    generator = random.Random(seed)
    for index in range(num_records):
        histogram = [generator.randrange(20) for _ in range(_K + 1)]
        steps, accepted = sum(histogram), sum(j * count for j, count in enumerate(histogram))
        metrics = {
            "mean_acceptance_length": 1 + accepted / steps if steps else 1.0,
            "draft_acceptance_rate": accepted / (steps * _K) if steps else 0.0,
            "acceptance_histogram": histogram,
            "num_spec_steps": steps,
            "num_accepted_draft_tokens": accepted,
            "num_draft_tokens": steps * _K,
            "num_spec_tokens": _K,
        }
        yield _record(
            index, text=" ".join(generator.choices(_WORDS, k=40)), tokens=1 + steps + accepted, metrics=metrics
        )


def _record(index: int, *, text: str, tokens: int, metrics: dict[str, Any]) -> dict[str, Any]:
    body = {
        "id": f"cmpl-{index:08d}",
        "object": "text_completion",
        "created": 0,
        "model": "model",
        "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": "length", "stop_reason": None}],
        "usage": {"prompt_tokens": 90, "total_tokens": 90 + tokens, "completion_tokens": tokens},
        "metrics": {"time_to_first_token_ms": 31.25, "speculative_decoding": metrics},
    }
    return {
        "id": f"batch_req_{index:08d}",
        "custom_id": f"request-{index}",
        "category": _CATEGORIES[index % len(_CATEGORIES)],
        "response": {"status_code": 200, "request_id": f"req_{index:08d}", "body": body},
        "error": None,
    }


def measure(path: Path, *, by: Grouping | None) -> tuple[float, float]:
    """Return wall-clock seconds and seconds of processor time that a report of the file takes."""
    started, busy = time.perf_counter(), time.process_time()
    report_logs([str(path)], by=by, requirements=())
    return time.perf_counter() - started, time.process_time() - busy


def main() -> None:
    """Make the file, report it in some rounds, and print what that took."""
    parser = argparse.ArgumentParser(description="Time batchspec report over one file of summary records.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "responses.jsonl"
        with path.open("wb") as file:
            file.writelines(orjson.dumps(record) + b"\n" for record in summary_records(given.records))
        print(f"{given.records:,} records, {path.stat().st_size / given.records:.0f} bytes each")
        for by in (None, Grouping.CATEGORY):
            for _ in range(given.rounds):
                wall, busy = measure(path, by=by)
                print(
                    f"by {by or 'nothing'}: {wall:.2f} s, {given.records / wall:,.0f} records/s; "
                    f"{busy:.2f} s of processor time, {given.records / busy:,.0f} records/s per core"
                )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
