"""Rows that cannot be believed: named with file and line, left out, never repaired."""

from pathlib import Path
from typing import Any

import pytest

from batchspec.ingest import Acceptance, LogRecord, SkippedRow, SkipReason
from batchspec.ingest.faults import RowFault
from batchspec.ingest.identities import contradictions
from batchspec.ingest.tokens import completion_tokens

from .logs import SUMMARY, batch_line, body, read_rows

DETAILED = {
    "acceptance_histogram": [1, 1, 2, 3, 1],
    "num_spec_steps": 8,
    "num_accepted_draft_tokens": 18,
    "num_draft_tokens": 32,
    "num_spec_tokens": 4,
    "per_step_accepted": [2, 3, 1, 4, 2, 0, 3, 3],
    "per_step_drafted": [4] * 8,
}
OWN = {"num_decode_steps": 9, "num_discarded_tokens": 0, "per_step_position": [1, 4, 8, 10, 15, 18, 19, 23]}


def skipped(tmp_path: Path, row: Any) -> SkippedRow:
    """The one fault of a row that stands on line 2, behind a good one."""
    good, found = read_rows(tmp_path / "log.jsonl", [batch_line(body(SUMMARY)), row])
    assert isinstance(good, LogRecord)
    assert isinstance(found, SkippedRow)
    assert (found.path, found.line) == (str(tmp_path / "log.jsonl"), 2)
    return found


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"num_spec_steps": 44}, "44 steps, but the acceptance histogram adds up to 43"),
    ({"num_accepted_draft_tokens": 11}, "11 draft tokens accepted, but the acceptance histogram tells 10"),
    ({"num_accepted_draft_tokens": 130}, "130 draft tokens accepted of 129 drafted"),
    ({"num_draft_tokens": 9}, "10 draft tokens accepted of 9 drafted"),
    ({"num_draft_tokens": 130}, "130 draft tokens in 43 steps of at most 3"),
    ({"acceptance_histogram": [39, 1, 0, 3, 0]}, "the acceptance histogram has 5 entries, not 4 as k = 3 asks for"),
    ({"acceptance_histogram": [40, 0, 0, 3]}, "10 draft tokens accepted, but the acceptance histogram tells 9"),
    ({"acceptance_histogram": [39, 1, 3]}, "10 draft tokens accepted, but the acceptance histogram tells 7"),
    ({"num_spec_tokens": 2000, "acceptance_histogram": None}, "k is 2000, more than the 1024 of any draft"),
    (
        {"acceptance_histogram": [39, 1, 0, 3] + [0] * 1100, "num_spec_tokens": None},
        "the acceptance histogram has 1104",
    ),
    ({"acceptance_histogram_by_draft_length": {"3": [39, 1, 0, 2]}}, "the histograms by draft length add up to"),
    ({"acceptance_histogram_by_draft_length": {"2": [39, 1, 0, 3]}}, "the drafts by length add up to 86 draft tokens"),
]


@pytest.mark.parametrize(("changes", "sentence"), CONTRADICTIONS)
def test_counts_that_contradict_each_other(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    found = skipped(tmp_path, batch_line(body(SUMMARY | changes), custom_id="b", category="code"))
    assert found.reason is SkipReason.CONTRADICTION
    assert found.message.startswith(sentence)
    assert (found.custom_id, found.category) == ("b", "code")


STEPS: list[tuple[dict[str, Any], str]] = [
    ({"per_step_accepted": [2, 3, 1, 4, 2, 0, 3]}, "per_step_accepted has 7 entries for 8 steps"),
    ({"per_step_drafted": [4] * 9}, "per_step_drafted has 9 entries for 8 steps"),
    ({"per_step_accepted": [2, 3, 1, 4, 2, 0, 3, 2]}, "per_step_accepted adds up to 17, not to 18"),
    ({"per_step_drafted": [4] * 7 + [3]}, "per_step_drafted adds up to 31, not to 32"),
    ({"per_step_accepted": [2, 3, 1, 3, 3, 0, 3, 3]}, "per_step_accepted does not give the acceptance histogram"),
    (
        {"per_step_drafted": [4, 4, 4, 3, 5, 4, 4, 4], "num_spec_tokens": None},
        "a step accepted more draft tokens than it drafted",
    ),
    ({"per_step_drafted": [4, 4, 4, 4, 2, 5, 5, 4]}, "a step drafted 5 tokens, more than 4"),
    ({"per_step_drafted": [2000] + [4] * 7, "num_draft_tokens": None, "num_spec_tokens": None}, "a step drafted 2000"),
]


@pytest.mark.parametrize(("changes", "sentence"), STEPS)
def test_lists_of_steps_that_contradict_the_totals(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    found = skipped(tmp_path, body(DETAILED | changes, tokens=28))
    assert found.reason is SkipReason.CONTRADICTION
    assert found.message.startswith(sentence)


def test_what_was_emitted_must_fit_what_was_accepted(tmp_path: Path) -> None:
    (good,) = read_rows(tmp_path / "log.jsonl", [batch_line(body(DETAILED, tokens=28, batchspec=OWN))])
    assert isinstance(good, LogRecord)
    assert (good.engine, good.acceptance and good.acceptance.num_decode_steps) == ("batchspec", 9)
    found = skipped(tmp_path, batch_line(body(DETAILED, tokens=29, batchspec=OWN)))
    assert found.message == "completion_tokens is 29, but turns + decode steps + accepted - discarded is 28"
    found = skipped(tmp_path, batch_line(body(DETAILED, tokens=28, batchspec=OWN | {"per_step_position": [1]})))
    assert found.message == "per_step_position has 1 entries for 8 steps"


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"acceptance_histogram": [39, True, 0, 3]}, '"acceptance_histogram[1]" must be an integer from 0'),
    ({"acceptance_histogram": [39, 1, 0, 3.0]}, '"acceptance_histogram[3]" must be an integer from 0'),
    ({"acceptance_histogram": [39, 1, 0, "3"]}, '"acceptance_histogram[3]"'),
    ({"acceptance_histogram": [39, 1, 0, None]}, '"acceptance_histogram[3]"'),
    ({"acceptance_histogram": [39, 1, -1, 4]}, '"acceptance_histogram[2]"'),
    ({"acceptance_histogram": {"0": 39}}, '"acceptance_histogram" must be a list of integers, not the object'),
    ({"num_spec_steps": True}, '"num_spec_steps" must be an integer from 0 to 2147483647, not the boolean true'),
    ({"num_spec_steps": 43.0}, '"num_spec_steps" must be an integer'),
    ({"num_draft_tokens": -1}, '"num_draft_tokens" must be an integer'),
    ({"num_draft_tokens": 2**31}, '"num_draft_tokens" must be an integer'),
    ({"num_draft_tokens": 2**63}, '"num_draft_tokens" must be an integer'),
    ({"num_accepted_draft_tokens": "10"}, '"num_accepted_draft_tokens" must be an integer'),
    ({"acceptance_histogram_by_draft_length": [1]}, '"acceptance_histogram_by_draft_length" must be an object'),
    ({"acceptance_histogram_by_draft_length": {"x": [1]}}, '"acceptance_histogram" must be an object whose keys'),
]


@pytest.mark.parametrize(("changes", "sentence"), MALFORMED)
def test_what_is_no_count(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    found = skipped(tmp_path, batch_line(body(SUMMARY | changes)))
    assert found.reason is SkipReason.MALFORMED
    assert found.message.startswith(sentence)


ROWS: list[tuple[Any, str]] = [
    (b"not json", "the line is not JSON"),
    (b'"text"', "the response is the string"),
    (b"5", "the response is the number 5"),
    (b"[1]", "the response is the array [1]"),
    (b"[]", "the response is an empty array"),
    (b"null", "the response is null"),
    (b"\xff{}", "byte 1 of the line (0xff) is not UTF-8"),
    (b"data: {", "the line is not JSON"),
    ({"prompt": "once"}, "the row is no response"),
    ({"custom_id": "a", "response": None, "error": None}, '"response" must be an object, not null'),
    ({"custom_id": "a", "response": "x"}, 'the response is the string "x", which is not JSON'),
    (batch_line(7), "the response is the number 7"),
    (batch_line(body("x")), '"metrics.speculative_decoding" must be an object or null, not the string "x"'),
    (batch_line(body(SUMMARY, tokens=-1)), '"completion_tokens" must be an integer'),
]


@pytest.mark.parametrize(("row", "sentence"), ROWS)
def test_what_is_no_response(tmp_path: Path, row: Any, sentence: str) -> None:
    found = skipped(tmp_path, row)
    assert found.reason is SkipReason.MALFORMED
    assert found.message.startswith(sentence)


def test_numbers_beyond_any_response_are_refused_wherever_they_come_from() -> None:
    for told in ({"new_tokens": 2**40}, {"new_tokens": -1}, {"tokens_predicted": 2**31}):
        with pytest.raises(RowFault, match="must be an integer from 0 to 2147483647"):
            completion_tokens(told)
    assert completion_tokens({"new_tokens": 5, "tokens_predicted": 7}) == 5
    steps = Acceptance(num_spec_steps=2**30, num_draft_tokens=2**31)
    assert list(contradictions(steps, completion_tokens=2**31)) == [
        f"{name} come to 2147483648, more than the 2147483647 of any response" for name in ("drafted", "tokens")
    ]


SPARSE: list[tuple[Any, SkipReason]] = [
    ({"0": 39, "1": 1, "4": 3}, SkipReason.CONTRADICTION),
    ({"0": 39, "1": 1, "x": 3}, SkipReason.MALFORMED),
    ({"0": 39, "1": 1, "99999": 3}, SkipReason.MALFORMED),
    ({"0": 39, "1": True, "3": 3}, SkipReason.MALFORMED),
    ({"0": 39, "1": 1, "3": 2}, SkipReason.CONTRADICTION),
]


@pytest.mark.parametrize(("histogram", "reason"), SPARSE)
def test_a_sparse_histogram_is_held_to_the_same(tmp_path: Path, histogram: Any, reason: SkipReason) -> None:
    choice = {"index": 0, "speculative_decoding_stats": SUMMARY | {"acceptance_histogram": histogram}}
    assert skipped(tmp_path, {"choices": [choice]}).reason is reason


def test_a_fault_of_one_choice_leaves_out_that_choice(tmp_path: Path) -> None:
    good = {"total_draft_tokens": 9, "total_accepted_draft_tokens": 3, "num_spec_steps": 3}
    choices = [{"speculative_decoding": good}, {"speculative_decoding": good | {"total_draft_tokens": 2}}]
    first, second = read_rows(tmp_path / "log.jsonl", [{"id": "x", "choices": choices}])
    assert isinstance(first, LogRecord)
    assert isinstance(second, SkippedRow)


OTHERS: list[tuple[Any, str | None]] = [
    (
        {"usage": {"total_draft_tokens_count": 5, "accepted_draft_tokens_count": 2, "rejected_draft_tokens_count": 2}},
        "accepted, rejected and ignored draft tokens add up to 4, not to the total of 5",
    ),
    (
        {"meta_info": {"spec_verify_ct": 5, "spec_num_correct_drafts": 9, "spec_num_proposed_drafts": 8}},
        "9 draft tokens accepted of 8 drafted",
    ),
    (
        {"meta_info": {"spec_verify_ct": 5, "spec_num_correct_drafts": 9, "spec_correct_drafts_histogram": [0, 1, 4]}},
        None,
    ),
    (
        {"meta_info": {"spec_verify_ct": 5, "spec_num_correct_drafts": 8, "spec_correct_drafts_histogram": [0, 1, 4]}},
        "8 draft tokens accepted, but the acceptance histogram tells 9",
    ),
    (
        {
            "meta_info": {
                "spec_verify_ct": 5,
                "spec_num_correct_drafts": 9,
                "spec_num_proposed_drafts": 10,
                "spec_correct_drafts_histogram": [0, 2, 2, 1],
            }
        },
        "the acceptance histogram has 4 entries, not 3 as k = 2 asks for",
    ),
    ({"timings": {"draft_n": 5, "draft_n_accepted": 6}}, "6 draft tokens accepted of 5 drafted"),
    ({"choices": [{"accept_lengths": [2, 0]}]}, '"accept_lengths" must be a list of integers from 1 to 1025'),
    ({"meta_info": {"spec_verify_ct": 1, "spec_accept_length": "x"}}, '"spec_accept_length" must be a number'),
]


@pytest.mark.parametrize(("row", "sentence"), OTHERS)
def test_other_engines_are_held_to_the_identities_too(tmp_path: Path, row: Any, sentence: str | None) -> None:
    (found,) = read_rows(tmp_path / "log.jsonl", [row])
    if sentence is None:
        assert isinstance(found, LogRecord)
    else:
        assert isinstance(found, SkippedRow)
        assert found.message.startswith(sentence)


ERRORS: list[tuple[Any, str, str]] = [
    (
        batch_line(None) | {"response": None, "error": {"code": "expired", "message": "too\nlate"}},
        "expired",
        "too late",
    ),
    (batch_line({"error": {"message": "no", "code": None}}) | {"error": {"message": "no"}}, "error", "no"),
    ({"custom_id": "a", "response": {"status_code": 400, "body": {"error": {"message": "bad"}}}}, "400", "bad"),
    ({"custom_id": "a", "response": {"status_code": 500}}, "500", "the request was not served"),
    ({"error": {"message": "bad", "code": 404}}, "404", "bad"),
    ({"error": "bad"}, "error", "bad"),
    ({"object": "error", "message": "bad", "code": 400}, "400", "bad"),
]


@pytest.mark.parametrize(("row", "code", "message"), ERRORS)
def test_rows_of_requests_that_were_not_served(tmp_path: Path, row: Any, code: str, message: str) -> None:
    found = skipped(tmp_path, row)
    assert (found.reason, found.code, found.message) == (SkipReason.ERROR, code, message)
