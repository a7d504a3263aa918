"""The benchmark of the report runs, and its file is what the report is fast at."""

import sys
from pathlib import Path

import pytest

from batchspec.ingest.reading import open_logs
from batchspec.ingest.summaries import take_summaries
from batchspec.report.logs import Grouping, survey_logs
from batchspec.report.speed import main, measure, summary_records
from tests.ingest.logs import write_rows


def test_every_record_is_taken_the_fast_way(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "log.jsonl", summary_records(500))
    for log in open_logs([path]):
        for rows in log.blocks():
            assert take_summaries(rows)[1] == []
    document = survey_logs([path], by=Grouping.CATEGORY)
    assert document["rows"]["num_with_acceptance"] == 500
    assert len(document["groups"]) == 8


def test_times_are_taken(tmp_path: Path) -> None:
    wall, busy = measure(Path(write_rows(tmp_path / "log.jsonl", summary_records(50))), by=None)
    assert wall > 0
    assert busy > 0


def test_the_command_prints_records_per_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["speed", "--records", "100", "--rounds", "1"])
    main()
    out = capsys.readouterr().out
    assert out.count("records/s per core") == 2
    assert "peak memory" in out
