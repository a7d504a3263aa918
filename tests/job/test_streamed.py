"""Streamed requests in a job: records whose body is a list of chunks, counted where they tell and named where not."""

from pathlib import Path
from typing import Any

import pytest

from batchspec.files import RowDefaults, read_responses
from batchspec.job.outcome import ExitStatus
from tests.job.conftest import RunLines
from tests.job.test_resume import stop_after, without_time
from tests.job.test_run import chat, prompt

TOLD: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
ROWS = [prompt("told", **TOLD), prompt("plain"), chat("talk", **TOLD), prompt("untold", stream=True)]


def test_what_a_stream_does_not_tell_is_not_guessed(run_lines: RunLines, tmp_path: Path) -> None:
    outcome, records = run_lines(ROWS, output=tmp_path / "out.parquet")
    assert outcome.status is ExitStatus.DONE
    assert outcome.report is not None
    assert [type(record["response"]["body"]) for record in records] == [list, dict, list, list]
    tokens, rows = outcome.report["tokens"], outcome.report["reconciliation"]["rows"]
    assert tokens["num_requests_without_usage"] == 1
    told = [records[0]["response"]["body"][-1], records[1]["response"]["body"], records[2]["response"]["body"][-1]]
    assert tokens["completion_tokens"] == sum(body["usage"]["completion_tokens"] for body in told)
    assert outcome.report["throughput"]["output_tokens_per_second"] is None
    assert outcome.report["reconciliation"]["is_exact"]
    assert rows[0]["unreported"]["stream without usage"] > 0
    assert "not known for 1 streamed without usage" in (tmp_path / "run" / "report.md").read_text()
    assert list(read_responses(tmp_path / "out.parquet")) == records


def test_usage_can_be_forced(run_lines: RunLines) -> None:
    outcome, records = run_lines(ROWS, defaults=RowDefaults(force_include_usage=True))
    assert outcome.report is not None
    assert outcome.report["tokens"]["num_requests_without_usage"] == 0
    assert records[3]["response"]["body"][-1]["usage"]["completion_tokens"] == 24


def test_an_interrupted_run_with_streams_continues(run_lines: RunLines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams wait, done, for the first line when the run is stopped, and are told twice to nobody."""
    rows = [prompt("long", max_tokens=60), *(prompt(f"{i}", max_tokens=6, **TOLD) for i in range(5)), *ROWS]
    with monkeypatch.context() as patch:
        stop_after(patch, 16)
        _, part = run_lines(rows, max_num_seqs=4)
    assert part == []
    outcome, records = run_lines(rows, max_num_seqs=4)
    assert outcome.report is not None
    assert outcome.report["reconciliation"]["is_exact"]
    assert outcome.report["reconciliation"]["rows"][0]["unreported"]["interrupted"] > 0
    _, again = run_lines(rows, max_num_seqs=4, overwrite=True)
    assert [_timeless(record) for record in records] == [_timeless(record) for record in again]


def _timeless(record: dict[str, Any]) -> dict[str, Any]:
    body = record["response"]["body"]
    if isinstance(body, dict):
        return without_time([record])[0]
    for chunk in body:
        del chunk["created"]
    return record
