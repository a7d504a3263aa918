"""Whatever a row holds, reading and reporting it ends in records and sentences, never in an exception."""

from pathlib import Path
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec.ingest import LogRecord, read_logs
from batchspec.report.logs import Grouping, survey_logs
from batchspec.report.logs.formats import ReportFormat, log_text

from .logs import FOREIGN, SUMMARY, batch_line, body, write_rows
from .test_faults import DETAILED, OWN


def rows_of(path: Path) -> list[Any]:
    lines = (line.removeprefix(b"data:") for line in path.read_bytes().splitlines())
    return [orjson.loads(line) for line in lines if line.strip() and b"[DONE]" not in line]


KNOWN = [row for path in sorted(FOREIGN.glob("*.jsonl")) for row in rows_of(path)]
KNOWN += [batch_line(body(DETAILED, tokens=28, batchspec=OWN)), batch_line(body(SUMMARY), category="code")]
KNOWN += [
    {"error": {"code": 1, "message": "x"}},
    batch_line([{"id": "a", "object": "x.chunk", "choices": [{"index": 0}]}]),
]


def places_of(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a row, outermost first."""
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    return [place for key in keys for place in ((value, key), *places_of(value[key]))]


def copied(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


STRANGE: list[Any] = [None, True, False, 0, 1, -1, 3, 0.5, 1e300, 2**31, 2**64 - 1]
STRANGE += ["", "x", "data: {}", "[DONE]", [], {}, [[]], [{}], [None], [True]]
VALUES = st.sampled_from(STRANGE) | st.sampled_from(KNOWN)


@st.composite
def rows(draw: st.DrawFn) -> Any:
    """A row that an engine could write, with a few of its values replaced or taken out."""
    row = copied(draw(st.sampled_from(KNOWN)))
    for _ in range(draw(st.integers(0, 3))):
        places = places_of(row)
        if not places:
            break
        container, key = places[draw(st.integers(0, len(places) - 1))]
        if isinstance(container, dict) and draw(st.booleans()):
            del container[key]
        else:
            container[key] = copied(draw(VALUES))
    return copied(draw(VALUES)) if draw(st.integers(0, 20)) == 0 else row


def test_nothing_is_raised_by_any_one_strange_value(tmp_path: Path) -> None:
    lines = []
    for number, known in enumerate(KNOWN):
        for place in range(len(places_of(known))):
            for value in STRANGE:
                row = copied(known)
                container, key = places_of(row)[place]
                container[key] = copied(value)
                lines.append(row)
        assert list(read_logs([write_rows(tmp_path / f"{number}.jsonl", lines)]))
        lines = []


@settings(max_examples=300)
@given(lines=st.lists(rows(), max_size=6))
def test_nothing_is_raised(tmp_path_factory: Any, lines: list[Any]) -> None:
    path = write_rows(tmp_path_factory.mktemp("logs") / "log.jsonl", lines)
    for entry in read_logs([path]):
        assert entry.path == path
        assert 1 <= entry.line <= len(lines)
        if isinstance(entry, LogRecord) and entry.acceptance is not None:
            acceptance = entry.acceptance
            assert (acceptance.num_accepted_draft_tokens or 0) <= (acceptance.num_draft_tokens or 2**31)


@settings(max_examples=40)
@given(lines=st.lists(rows(), min_size=1, max_size=6), by=st.sampled_from([None, *Grouping]))
def test_every_report_can_be_written(tmp_path_factory: Any, lines: list[Any], by: Grouping | None) -> None:
    document = survey_logs([write_rows(tmp_path_factory.mktemp("logs") / "log.jsonl", lines)], by=by)
    for form in ReportFormat:
        assert log_text(document, form).endswith("\n")


@settings(max_examples=200)
@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_log(tmp_path_factory: Any, data: bytes) -> None:
    path = tmp_path_factory.mktemp("logs") / "log.jsonl"
    path.write_bytes(b" " + data)
    list(read_logs([path]))
