"""Logs made of steps, for the tests of the report."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from batchspec.report.logs import Grouping, survey_logs
from tests.ingest.logs import batch_line, body, write_rows

__all__ = ["line", "report_of", "request", "steps_of"]

K = 4


def steps_of(steps: Sequence[tuple[int, int]], *, longest: int = K, is_detailed: bool = True) -> dict[str, Any]:
    """``speculative_decoding`` of (drafted, accepted) steps."""
    accepted = [number for _, number in steps]
    num_drafted = sum(drafted for drafted, _ in steps)
    block = {
        "mean_acceptance_length": 1 + sum(accepted) / len(steps) if steps else 1.0,
        "draft_acceptance_rate": sum(accepted) / num_drafted if num_drafted else 0.0,
        "acceptance_histogram": [accepted.count(j) for j in range(longest + 1)],
        "num_spec_steps": len(steps),
        "num_accepted_draft_tokens": sum(accepted),
        "num_draft_tokens": num_drafted,
        "num_spec_tokens": longest,
    }
    lists = {"per_step_accepted": accepted, "per_step_drafted": [drafted for drafted, _ in steps]}
    return block | lists if is_detailed else block


def request(accepted: Iterable[int], *, longest: int = K, **more: Any) -> dict[str, Any]:
    """A request whose drafts were all full."""
    return line([(longest, number) for number in accepted], longest=longest, **more)


def line(
    steps: Sequence[tuple[int, int]],
    *,
    longest: int = K,
    is_detailed: bool = True,
    tokens: int | None = None,
    batchspec: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A batch line of (drafted, accepted) steps, all of whose tokens reached the output unless told otherwise."""
    emitted = 1 + sum(accepted + 1 for _, accepted in steps) if tokens is None else tokens
    beside = {} if batchspec is None else {"batchspec": batchspec}
    return batch_line(body(steps_of(steps, longest=longest, is_detailed=is_detailed), tokens=emitted, **beside), **more)


def report_of(path: Path, rows: Iterable[Any], *, by: Grouping | None = None) -> dict[str, Any]:
    """The report of rows that are written to a file first."""
    return survey_logs([write_rows(path / "log.jsonl", rows)], by=by)
