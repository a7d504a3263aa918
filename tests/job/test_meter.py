"""The progress line: rows, rates and the time left, from counts that are set by hand."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchspec.api import Progress
from batchspec.files import InputSource, open_source
from batchspec.job.meter import Meter


@pytest.fixture
def source(tmp_path: Path) -> InputSource:
    """A file of ten lines, two of them blank, of which the first was read."""
    path = tmp_path / "in.jsonl"
    path.write_text('{"prompt": "a"}\n' * 4 + "\n\n" + '{"prompt": "a"}\n' * 4)
    source = open_source(path)
    next(source.rows())
    return source


def test_the_time_left_follows_from_the_tokens_left(source: InputSource) -> None:
    progress = Progress()
    meter = Meter(progress, source, num_before=0, now=0.0)
    assert meter.line(now=0.0).endswith("ETA unknown")
    progress.num_done, progress.output_tokens = 2, 200
    progress.num_draft_tokens, progress.num_accepted_draft_tokens = 40, 30
    line = meter.line(now=4.0)
    assert "2/~10 requests · 200 tokens · 50 tok/s · 75% of drafts accepted" in line
    assert line.endswith("ETA 0:16")  # eight rows of a hundred tokens at fifty a second


def test_blank_lines_are_no_requests_once_the_input_is_exhausted(source: InputSource) -> None:
    progress = Progress(num_requests=8, num_done=8, is_exhausted=True, output_tokens=80)
    meter = Meter(progress, source, num_before=0, now=0.0)
    assert meter.line(now=1.0).startswith("8/8 requests")


def test_rows_of_an_interrupted_run_count_as_done(source: InputSource) -> None:
    progress = Progress(num_requests=3, num_done=1, num_failed=1, output_tokens=10)
    line = Meter(progress, source, num_before=5, now=0.0).line(now=1.0)
    assert line.startswith("6/~10 requests")
    assert "1 failed" in line


def test_the_rows_of_parquet_are_known_and_those_of_a_stream_are_not(tmp_path: Path) -> None:
    pq.write_table(pa.table({"prompt": ["a"] * 2500}), tmp_path / "in.parquet")
    for path, total in [(str(tmp_path / "in.parquet"), "2,500"), ("-", "?")]:
        meter = Meter(Progress(num_done=1), open_source(path), num_before=0, now=0.0)
        assert meter.line(now=1.0).startswith(f"1/{total} requests")
