"""Many rows at a time, or one by one: the same requests with the same numbers."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.ingest import LogRecord, read_logs
from batchspec.ingest.blocks import Row
from batchspec.ingest.reading import open_logs
from batchspec.ingest.summaries import Summaries, take_summaries

from .logs import ORACLE, SUMMARY, batch_line, body, write_rows
from .test_faults import CONTRADICTIONS, MALFORMED

OWN = {"num_decode_steps": 50, "num_discarded_tokens": 7, "tokens_per_decode_step": 1.0}
GOOD = batch_line(body(SUMMARY, tokens=1 + 50 + 10 - 7, batchspec=OWN))


def taken(rows: list[Any]) -> tuple[Summaries | None, list[Row]]:
    return take_summaries(list(enumerate(rows, start=1)))


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row that is right, or nearly."""
    longest = draw(st.integers(0, 4))
    histogram = draw(st.lists(st.integers(0, 3), min_size=longest + 1, max_size=longest + 1))
    steps, accepted = sum(histogram), sum(j * count for j, count in enumerate(histogram))
    block: dict[str, Any] = {
        "mean_acceptance_length": 1.0,
        "draft_acceptance_rate": 0.0,
        "acceptance_histogram": histogram,
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": draw(st.integers(accepted, max(accepted, steps * longest))),
        "num_spec_tokens": longest,
    }
    tokens = draw(st.integers(0, 40))
    more = {}
    if draw(st.booleans()):
        more["batchspec"] = {"num_decode_steps": max(0, tokens - 1 - accepted), "num_discarded_tokens": 0}
    if draw(st.integers(0, 3)) == 0:
        block[draw(st.sampled_from(sorted(block)))] = draw(
            st.sampled_from([None, True, -1, 0, 1, 2, 2.0, "x", 2**31, 2**64 - 1, [], [1], [True, 0], [2**40, 0]])
        )
    line = batch_line(body(block, tokens=tokens, **more))
    if draw(st.booleans()):
        line["category"] = draw(st.sampled_from(["code", "prose", None, 7]))
    return line


@given(lines=st.lists(rows(), max_size=8))
def test_both_ways_agree(tmp_path_factory: pytest.TempPathFactory, lines: list[Any]) -> None:
    path = write_rows(tmp_path_factory.mktemp("logs") / "log.jsonl", lines)
    one_by_one = {entry.line: entry for entry in read_logs([path])}
    for block in (block for log in open_logs([path]) for block in log.blocks()):
        summaries, others = take_summaries(block)
        assert len(others) + (0 if summaries is None else len(summaries.places)) == len(block)
        for index, place in enumerate([] if summaries is None else summaries.places.tolist()):
            entry = one_by_one[block[place][0]]
            assert isinstance(entry, LogRecord)
            assert summaries is not None
            assert numbers_of(entry) == numbers_at(summaries, index)


def numbers_of(record: LogRecord) -> tuple[Any, ...]:
    acceptance = record.acceptance
    assert acceptance is not None
    assert not acceptance.derived | acceptance.estimated
    assert (record.choice, acceptance.per_step_accepted) == (None, None)
    is_own = record.engine == "batchspec"
    return (
        acceptance.num_spec_steps,
        acceptance.num_accepted_draft_tokens,
        acceptance.num_draft_tokens,
        acceptance.num_spec_tokens,
        record.completion_tokens,
        acceptance.num_turns,
        record.category,
        (acceptance.num_decode_steps, acceptance.num_discarded_tokens) if is_own else None,
        acceptance.acceptance_histogram,
    )


def numbers_at(summaries: Summaries, index: int) -> tuple[Any, ...]:
    end = int((summaries.num_spec_tokens[: index + 1] + 1).sum())
    start = end - int(summaries.num_spec_tokens[index]) - 1
    own = int(summaries.num_decode_steps[index]), int(summaries.num_discarded_tokens[index])
    return (
        int(summaries.num_spec_steps[index]),
        int(summaries.num_accepted_draft_tokens[index]),
        int(summaries.num_draft_tokens[index]),
        int(summaries.num_spec_tokens[index]),
        int(summaries.completion_tokens[index]),
        int(summaries.num_turns[index]),
        summaries.categories[index],
        own if summaries.is_batchspec[index] else None,
        summaries.histogram[start:end].tolist(),
    )


@pytest.mark.parametrize("changes", [changes for changes, _ in CONTRADICTIONS + MALFORMED])
def test_a_row_with_a_fault_goes_the_careful_way(changes: dict[str, Any]) -> None:
    bad = batch_line(body(SUMMARY | changes))
    summaries, others = taken([GOOD, bad, GOOD])
    assert others == [(2, bad)] or summaries is None
    if summaries is not None:
        assert summaries.places.tolist() == [0, 2]


OTHER_ROWS: list[Any] = [
    batch_line(body(SUMMARY | {"per_step_accepted": [0] * 43})),
    batch_line(body(SUMMARY | {"acceptance_histogram_by_draft_length": {"3": [39, 1, 0, 3]}})),
    batch_line(body({name: value for name, value in SUMMARY.items() if name != "draft_acceptance_rate"})),
    batch_line(body(SUMMARY, batchspec=OWN | {"per_step_position": []})),
    batch_line(body(SUMMARY, tokens=55, batchspec=OWN)),
    batch_line(body(SUMMARY, batchspec={})),
    batch_line(body(None)),
    batch_line(body(SUMMARY)) | {"error": {"code": 1}},
    batch_line(body(SUMMARY)) | {"category": 3},
    {"response": {"body": body(SUMMARY)}},
    body(SUMMARY),
    batch_line([body(SUMMARY)]),
    [body(SUMMARY)],
    7,
]


@pytest.mark.parametrize("row", OTHER_ROWS)
def test_what_is_not_the_common_row_goes_the_other_way(row: Any) -> None:
    summaries, others = taken([GOOD, row])
    assert summaries is not None
    assert (summaries.places.tolist(), others) == ([0], [(2, row)])


def test_detailed_captures_go_the_other_way() -> None:
    for log in open_logs([ORACLE / "ngram_k3_n1-3" / "greedy.responses.jsonl"]):
        for block in log.blocks():
            assert take_summaries(block)[0] is None


def test_nothing_gives_nothing(tmp_path: Path) -> None:
    assert taken([]) == (None, [])
    assert list(read_logs([write_rows(tmp_path / "log.jsonl", [])])) == []
