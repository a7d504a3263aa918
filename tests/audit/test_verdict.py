"""When a difference is explained: by rows that can have counted it, and by nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.audit.inputs import find_inputs
from batchspec.audit.ledger import Ledger
from batchspec.audit.reconciling import reconcile_logs
from batchspec.audit.sheet import make_sheet
from batchspec.audit.verdict import Outcome, judge
from batchspec.audit.window import find_outside
from batchspec.errors import UsageError
from batchspec.ingest import Acceptance, LogRecord
from batchspec.reconcile.between import Counted

from .scraping import exposition, failure, response, stated, write_lines

Steps = list[tuple[int, int]]
K = 3
STEPS = st.lists(
    st.integers(1, K).flatmap(lambda drafted: st.tuples(st.just(drafted), st.integers(0, drafted))), max_size=5
)


def scrape_of(requests: Sequence[Steps], *, finished: int | None = None, engine: str | None = "0") -> str:
    """Return what a server that served these requests would have counted."""
    steps = [step for request in requests for step in request]
    return exposition(
        steps=len(steps),
        drafted=sum(drafted for drafted, _ in steps),
        accepted=[sum(taken > i for _, taken in steps) for i in range(K)],
        finished=finished,
        engine=engine,
    )


def reconciled(tmp_path: Path, rows: Sequence[dict[str, Any]], after: str) -> dict[str, Any]:
    (tmp_path / "after.prom").write_text(after)
    path = write_lines(tmp_path / "responses.jsonl", rows)
    return reconcile_logs(find_inputs(path, after=str(tmp_path / "after.prom"), before=None))


REPORTED: list[Steps] = [[(3, 2), (3, 0)], [(2, 2)], []]
SILENT: Steps = [(3, 3), (3, 1)]


def rows_of(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [*(response(f"r{i}", stated(steps)) for i, steps in enumerate(REPORTED)), *more]


def test_equal_accounts_are_exact(tmp_path: Path) -> None:
    document = reconciled(tmp_path, rows_of(), scrape_of(REPORTED, finished=3))
    assert document["verdict"] == "exact"
    assert document["sentences"] == ["Reconciled: all 6 totals agree exactly, zero differences."]


@pytest.mark.parametrize(
    ("row", "outputs"),
    [
        (response("null", None), 1),
        (response("n2", None, num_choices=2), 2),
        (failure("broken", code=500), 0),
        (failure("odd", code="engine_error"), 0),
    ],
    ids=["null", "n > 1", "500", "named"],
)
def test_rows_without_metrics_explain_what_they_can_have_counted(
    tmp_path: Path, row: dict[str, Any], outputs: int
) -> None:
    document = reconciled(tmp_path, rows_of(row), scrape_of([*REPORTED, SILENT], finished=3 + outputs))
    assert document["verdict"] == "explained"
    assert row["custom_id"] in document["sentences"][0]


UNEXPLAINED: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "no such row": (rows_of(), scrape_of([*REPORTED, SILENT], finished=3), "no row without metrics can have counted"),
    "refused before it ran": (
        rows_of(failure("bad", code=400)),
        scrape_of([*REPORTED, SILENT], finished=3),
        "no row without metrics can have counted",
    ),
    "too few tokens": (
        rows_of(response("null", None, tokens=1)),
        scrape_of([*REPORTED, SILENT], finished=4),
        "have 1 tokens, too few for 2 steps",
    ),
    "somebody else's requests": (
        rows_of(response("null", None)),
        scrape_of([*REPORTED, SILENT, SILENT], finished=9),
        "5 sequences ended between the scrapes that are not in the responses",
    ),
    "more than one row failed": (
        rows_of(failure("broken", code=500)),
        scrape_of([*REPORTED, SILENT, SILENT], finished=5),
        "1 sequences ended between the scrapes that are not in the responses",
    ),
    "a stream without its usage is one output": (
        rows_of(response("stream", None, tokens=None)),
        scrape_of([*REPORTED, SILENT, SILENT], finished=5),
        "1 sequences ended between the scrapes that are not in the responses",
    ),
    "a scrape in which nothing was drafted": (
        rows_of(),
        scrape_of([[]], finished=1),
        "the responses state 3 more than the counters counted (steps)",
    ),
    "another engine": (
        rows_of(response("null", None)),
        scrape_of(REPORTED[:1], finished=2),
        "2 of the 4 outputs did not end between the scrapes",
    ),
    "counters that no steps give": (
        rows_of(response("null", None)),
        exposition(steps=4, drafted=30, accepted=[3, 2, 0], finished=4),
        "draft tokens where its steps hold 3",
    ),
}


@pytest.mark.parametrize(("rows", "after", "reason"), UNEXPLAINED.values(), ids=UNEXPLAINED)
def test_what_is_not_explained_says_why(tmp_path: Path, rows: list[dict[str, Any]], after: str, reason: str) -> None:
    document = reconciled(tmp_path, rows, after)
    assert document["verdict"] == "unexplained"
    assert document["sentences"][0].startswith("NOT reconciled: ")
    assert any(reason in sentence for sentence in document["sentences"]), document["sentences"]


def test_no_row_with_metrics_at_all_is_a_mistake_of_the_users(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"states its drafts, although .* make the responses with per-request metrics"):
        reconciled(tmp_path, [response("null", None)], scrape_of([SILENT]))


def test_engines_are_added_up(tmp_path: Path) -> None:
    after = scrape_of(REPORTED[:1], engine="0") + scrape_of(REPORTED[1:], engine="1")
    document = reconciled(tmp_path, rows_of(), after)
    assert document["verdict"] == "exact"
    assert document["rows"][0]["counters_by_engine"] == {"0": 2, "1": 1}


def test_counts_that_one_side_does_not_know_are_named_and_not_compared(tmp_path: Path) -> None:
    """llama.cpp tells no steps for a request, TensorRT-LLM counts none."""
    row = {"custom_id": "a", "timings": {"predicted_n": 9, "draft_n": 6, "draft_n_accepted": 4}, "content": "x"}
    after = exposition(steps=3, drafted=6, accepted=[3, 1], prefix="llamacpp", engine=None)
    document = reconciled(tmp_path, [row], after)
    assert document["verdict"] == "exact"
    assert [one["difference"] for one in document["rows"]] == [None, 0, 0, None, None]
    agreed, not_compared = document["sentences"]
    assert agreed == "Reconciled: all 2 totals agree exactly, zero differences."
    assert not_compared.endswith("state it: steps, accepted at position 0, accepted at position 1.")
    counters = "trtllm_spec_decode_num_draft_tokens_total 6.0\ntrtllm_spec_decode_num_accepted_tokens_total 5.0\n"
    document = reconciled(tmp_path, [row], counters)
    assert document["verdict"] == "unexplained"
    assert [one["difference"] for one in document["rows"]] == [None, 0, -1]


def test_nothing_to_compare_is_no_agreement(tmp_path: Path) -> None:
    """The one row tells draft tokens only, the server counts steps only."""
    row = {"custom_id": "a", "timings": {"predicted_n": 9, "draft_n": 6, "draft_n_accepted": 4}, "content": "x"}
    document = reconciled(tmp_path, [row], "vllm:spec_decode_num_drafts_total 3.0\n")
    assert document["verdict"] == "unexplained"
    assert document["sentences"][0] == "NOT reconciled: no count is stated by all responses and by the counters."


def test_a_block_that_states_nothing_is_a_row_without_metrics(tmp_path: Path) -> None:
    empty = response("empty", {"num_spec_tokens": 3})
    document = reconciled(tmp_path, rows_of(empty), scrape_of([*REPORTED, SILENT], finished=4))
    assert document["verdict"] == "explained"
    assert document["responses"]["without_metrics"]["no metrics"]["named"] == ["empty"]


def record(line: int, steps: Steps | None) -> LogRecord:
    if steps is None:
        return LogRecord(path="x", line=line, engine="unknown", custom_id=f"r{line}", completion_tokens=50)
    document = stated(steps)
    names = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "num_spec_tokens")
    acceptance = Acceptance(
        **{name: document[name] for name in names}, acceptance_histogram=document["acceptance_histogram"]
    )
    return LogRecord(path="x", line=line, engine="vllm", custom_id=f"r{line}", acceptance=acceptance)


def counted(requests: Sequence[Steps]) -> Counted:
    steps = [step for request in requests for step in request]
    counts: dict[tuple[str, int | None], int] = {
        ("num_spec_steps", None): len(steps),
        ("num_draft_tokens", None): sum(drafted for drafted, _ in steps),
        ("num_accepted_draft_tokens", None): sum(taken for _, taken in steps),
    }
    counts |= {("num_accepted_tokens_per_pos", i): sum(taken > i for _, taken in steps) for i in range(K)}
    return Counted(by_engine={"0": counts}, num_finished=None)


@given(st.lists(STEPS, max_size=6), st.data())
def test_honest_accounts_are_exact_and_one_wrong_counter_never_is(requests: list[Steps], data: st.DataObject) -> None:
    ledger = Ledger()
    for line, steps in enumerate(requests, start=1):
        ledger.add(record(line, steps))
    honest = counted(requests)
    assert outcome(ledger, honest) is Outcome.EXACT
    wrong = dict(honest.by_engine["0"])
    key = data.draw(st.sampled_from(sorted(wrong, key=str)))
    wrong[key] += data.draw(st.sampled_from([-2, -1, 1, 2]))
    assert outcome(ledger, Counted(by_engine={"0": wrong}, num_finished=None)) is Outcome.UNEXPLAINED


def outcome(ledger: Ledger, counters: Counted) -> Outcome:
    sheet = make_sheet(ledger, counters, unreported={})
    return judge(sheet, ledger, num_finished=None, outside=None, is_whole=False).outcome


@given(st.lists(STEPS, min_size=1, max_size=4), st.lists(STEPS, min_size=1, max_size=3))
def test_silent_rows_explain_any_steps_of_theirs(requests: list[Steps], silent: list[Steps]) -> None:
    ledger = Ledger()
    for line, steps in enumerate(requests, start=1):
        ledger.add(record(line, steps))
    for line, _ in enumerate(silent, start=100):
        ledger.add(record(line, None))
    expected = Outcome.EXPLAINED if any(silent) else Outcome.EXACT
    assert outcome(ledger, counted([*requests, *silent])) in (
        expected,
        Outcome.EXPLAINED if ledger.num_spec_tokens else expected,
    )


@given(st.lists(STEPS, max_size=4), st.lists(STEPS, min_size=1, max_size=5), st.lists(STEPS, max_size=4))
def test_the_window_is_found_wherever_it_is(before: list[Steps], inside: list[Steps], behind: list[Steps]) -> None:
    """And what is left out is no more than what was outside."""
    rows = [record(line, steps) for line, steps in enumerate([*before, *inside, *behind], start=1)]
    counters = counted(inside).total
    outside = find_outside(rows, counters)
    if not any(inside) or not (before or behind):
        assert outside is None or outside.num_before + outside.num_behind <= len(before) + len(behind)
        return
    if outside is None:  # nothing had to be left out
        assert not any([*before, *behind])
        return
    assert outside.num_before + outside.num_behind <= len(before) + len(behind)
    kept = [*before, *inside, *behind][outside.num_before : len(rows) - outside.num_behind]
    assert counted(kept).total == counters
