"""A real server's responses against its scrapes: what agrees, what is explained, and by which rows."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from batchspec.audit.inputs import find_inputs
from batchspec.audit.reconciling import reconcile_logs
from tests.replay.logs import by_lookups, recorded_in
from tests.replay.test_captures import settings_of

from .scraping import ORACLE, SPECULATIVE, write_lines


def reconciled(folder: str, group: str, responses: str | None = None) -> dict[str, Any]:
    place = ORACLE / folder
    return reconcile_logs(
        find_inputs(
            responses or str(place / f"{group}.responses.jsonl"),
            before=str(place / f"{group}.before.prom"),
            after=str(place / f"{group}.after.prom"),
        )
    )


def rows_of(folder: str, group: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (ORACLE / folder / f"{group}.responses.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("folder", [*SPECULATIVE, "none"])
def test_complete_requests_with_one_sample_agree_exactly(folder: str) -> None:
    document = reconciled(folder, "greedy")
    assert document["verdict"] == "exact"
    assert [row["difference"] for row in document["rows"]] == [0] * len(document["rows"])
    assert document["responses"]["num_rows"] == 24
    assert document["scrapes"]["num_finished_sequences"] == 24
    positions = [row["position"] for row in document["rows"][3:]]
    k = 0 if folder == "none" else int(folder.split("_")[1][1:])
    assert positions == list(range(k))


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_the_edges_are_explained_by_exactly_the_rows_without_metrics(folder: str) -> None:
    document = reconciled(folder, "edges")
    assert document["verdict"] == "explained"
    silent = document["responses"]["without_metrics"]
    assert {cause: rows["named"] for cause, rows in silent.items()} == {
        "no metrics": ["stopstr"],
        "several choices (n > 1 or several prompts)": ["n2", "multiprompt"],
    }
    assert all(row["difference"] <= 0 for row in document["rows"])
    assert document["rows"][0]["difference"] < 0
    (sentence,) = document["sentences"]
    assert "n2, multiprompt" in sentence
    assert "stopstr" in sentence


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_a_lost_response_is_not_explained(tmp_path: Path, folder: str) -> None:
    """Neither where every row has metrics, nor where rows without any could hide it: a sequence is missing."""
    greedy = rows_of(folder, "greedy")
    document = reconciled(folder, "greedy", write_lines(tmp_path / "greedy.jsonl", greedy[:5] + greedy[6:]))
    assert document["verdict"] == "unexplained"
    assert "1 sequences ended between the scrapes that are not in the responses" in document["sentences"]
    edges = [row for row in rows_of(folder, "edges") if row["custom_id"] != "n1"]
    document = reconciled(folder, "edges", write_lines(tmp_path / "edges.jsonl", edges))
    assert document["verdict"] == "unexplained"


@pytest.mark.parametrize("folder", SPECULATIVE)
@pytest.mark.parametrize(
    ("quantity", "by", "reason"),
    [
        ("num_spec_steps", 1, "state 1 more than the counters counted (steps)"),
        ("num_draft_tokens", -1, "no row without metrics can have counted the difference"),
    ],
)
def test_a_number_that_was_changed_is_not_explained(
    tmp_path: Path, folder: str, quantity: str, by: int, reason: str
) -> None:
    rows = rows_of(folder, "greedy")
    stated = rows[3]["response"]["body"]["metrics"]["speculative_decoding"]
    for name in ("per_step_accepted", "per_step_drafted"):
        del stated[name]
    stated[quantity] += by
    if quantity == "num_spec_steps":
        stated["acceptance_histogram"][0] += 1
        stated["num_draft_tokens"] += 1
    document = reconciled(folder, "greedy", write_lines(tmp_path / "changed.jsonl", rows))
    assert document["verdict"] == "unexplained"
    assert any(reason in sentence for sentence in document["sentences"])


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_rows_from_before_and_behind_the_scrapes_are_found(tmp_path: Path, folder: str) -> None:
    """Responses of two groups in one file, of which the scrapes saw one."""
    greedy, edges = rows_of(folder, "greedy"), rows_of(folder, "edges")
    path = write_lines(tmp_path / "both.jsonl", [edges[1], *greedy, edges[7], edges[8]])
    document = reconciled(folder, "greedy", path)
    assert document["verdict"] == "explained"
    assert document["rows"][0]["difference"] > 0
    assert "3 rows outside the scrape window (1 before it, 2 behind it: n1, eos, mintok)" in document["sentences"][0]


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_a_second_copy_of_rows_is_said_to_be_one(tmp_path: Path, folder: str) -> None:
    greedy = rows_of(folder, "greedy")
    document = reconciled(folder, "greedy", write_lines(tmp_path / "twice.jsonl", [*greedy, *greedy[:2]]))
    names = ", ".join(row["custom_id"] for row in greedy[:2])
    assert f"(0 before it, 2 behind it: {names}; ids of 2 of them stand in it, too)" in document["sentences"][0]


@pytest.mark.parametrize("row", ["n2", "multiprompt", "stopstr"])
@pytest.mark.parametrize("folder", SPECULATIVE)
def test_without_any_one_of_its_three_rows_the_gap_of_the_edges_is_not_explained(
    tmp_path: Path, folder: str, row: str
) -> None:
    kept = [one for one in rows_of(folder, "edges") if one["custom_id"] != row]
    document = reconciled(folder, "edges", write_lines(tmp_path / "edges.jsonl", kept))
    assert document["verdict"] == "unexplained"
    number = 1 if row == "stopstr" else 2
    assert f"{number} sequences ended between the scrapes that are not in the responses" in document["sentences"]


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_the_gap_of_the_edges_is_what_a_replay_of_its_three_rows_gives(folder: str) -> None:
    """The two that were not sampled, step by step, and of ``n2``, whose text the server corrupted, no more than fits.

    What was matched behind an output's end is not recorded, so of accepted tokens there is a least and a most.
    """
    document = reconciled(folder, "edges")
    steps, drafted, accepted = (-row["difference"] for row in document["rows"][:3])
    k, low, high = settings_of(folder).values()
    outputs = recorded_in(ORACLE / folder / "edges.responses.jsonl")
    silent = [one for one in outputs if one.custom_id in ("stopstr", "multiprompt")]
    traces = [by_lookups(one, k=k, low=low, high=high) for one in silent]
    assert len(traces) == 3
    of_others = steps - sum(len(trace.drafted) for trace in traces)
    drafted_by_others = drafted - sum(int(trace.drafted.sum()) for trace in traces)
    accepted_by_others = accepted - sum(int(trace.accepted.sum()) for trace in traces)
    tokens = sum(len(one.output) - 1 for one in outputs if one.custom_id == "n2")
    assert 0 < of_others <= drafted_by_others <= k * of_others
    assert 0 <= accepted_by_others <= drafted_by_others
    assert of_others + accepted_by_others <= tokens + 2 * k  # each of its two outputs may end within a draft


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_a_row_that_contradicts_itself_cannot_be_explained(tmp_path: Path, folder: str) -> None:
    rows = rows_of(folder, "edges")
    rows[1]["response"]["body"]["metrics"]["speculative_decoding"]["num_accepted_draft_tokens"] += 1
    document = reconciled(folder, "edges", write_lines(tmp_path / "faulty.jsonl", rows))
    assert document["verdict"] == "unexplained"
    assert document["responses"]["faults"][0].startswith("n1: ")
    assert any("n1: " in sentence for sentence in document["sentences"])
