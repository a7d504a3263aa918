import json
import tracemalloc
from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.errors import UsageError
from batchspec.report import Aggregate

from .records import PROMPT_TOKENS, failed, recorder_of, served


def document_of(*records: dict[str, Any]) -> dict[str, Any]:
    aggregate = Aggregate()
    for record in records:
        aggregate.add(record)
    return aggregate.document()


def test_nothing_is_absent_not_zero() -> None:
    document = document_of()
    assert document["requests"]["num_requests"] == 0
    assert document["acceptance"] is None
    assert document["categories"] == {}


def test_requests_and_tokens() -> None:
    document = document_of(
        served(None, index=0), served(None, index=1), failed(code="b"), failed(code="a"), failed(code="b")
    )
    assert document["requests"] == {
        "num_requests": 5,
        "num_served": 2,
        "num_failed": 3,
        "failed_by_code": {"a": 1, "b": 2},
        "finish_reasons": {"length": 1, "stop": 1},
    }
    assert document["tokens"] == {
        "prompt_tokens": 2 * PROMPT_TOKENS,
        "completion_tokens": 14,
        "num_requests_without_usage": 0,
    }
    assert document["acceptance"] is None


def test_an_error_without_a_code_is_counted_by_its_status() -> None:
    status_only = {"response": {"status_code": 503, "body": {}}, "error": None}
    no_response = {"response": None, "error": {"message": "gone", "code": None}}
    assert document_of(status_only, no_response)["requests"]["failed_by_code"] == {"503": 1, "None": 1}


def test_requests_without_a_step_are_left_out_of_the_mean_and_counted() -> None:
    never_drafted = recorder_of([(0, 0)], num_spec_tokens=3)
    one_token = recorder_of([], num_spec_tokens=3)
    drafted = recorder_of([(3, 2)], num_spec_tokens=3)
    acceptance = document_of(served(never_drafted), served(one_token), served(drafted))["acceptance"]
    assert acceptance["pooled"]["num_requests"] == 3
    assert acceptance["mean_over_requests"] == {
        "mean_acceptance_length": 3.0,
        "draft_acceptance_rate": 2 / 3,
        "tokens_per_decode_step": 3.0,
        "num_requests": 1,
        "num_requests_without_step": 2,
    }
    assert acceptance["pooled"]["tokens_per_decode_step"] == 4 / 2


def test_without_any_step_every_ratio_is_absent() -> None:
    acceptance = document_of(served(recorder_of([], num_spec_tokens=2)))["acceptance"]
    assert acceptance["pooled"]["mean_acceptance_length"] is None
    assert acceptance["pooled"]["draft_acceptance_rate"] is None
    assert acceptance["pooled"]["tokens_per_decode_step"] is None
    assert acceptance["mean_over_requests"]["mean_acceptance_length"] is None
    assert [entry["marginal_rate"] for entry in acceptance["per_position"]] == [None, None]
    assert [entry["conditional_rate"] for entry in acceptance["per_position"]] == [None, None]
    assert acceptance["pooled"]["acceptance_histogram"] == [0, 0, 0]


def test_conditional_rates_divide_by_the_drafts_that_reached_the_position() -> None:
    recorder = recorder_of([(3, 3), (1, 1), (2, 0), (1, 0)], num_spec_tokens=3)
    per_position = document_of(served(recorder))["acceptance"]["per_position"]
    assert [entry["num_drafted"] for entry in per_position] == [4, 2, 1]
    assert [entry["marginal_rate"] for entry in per_position] == [2 / 4, 1 / 4, 1 / 4]
    assert [entry["conditional_rate"] for entry in per_position] == [2 / 4, 1 / 2, 1 / 1]


def test_a_summary_of_short_drafts_leaves_the_conditional_rate_unknown() -> None:
    recorder = recorder_of([(3, 3), (1, 1)], num_spec_tokens=3, level=Level.SUMMARY)
    per_position = document_of(served(recorder))["acceptance"]["per_position"]
    assert [entry["num_drafted"] for entry in per_position] == [2, None, None]
    assert [entry["conditional_rate"] for entry in per_position] == [1.0, None, None]
    assert [entry["marginal_rate"] for entry in per_position] == [1.0, 0.5, 0.5]


def test_what_a_stop_cut_off_counts_as_accepted_but_not_as_emitted() -> None:
    recorder = recorder_of([(3, 3)], num_spec_tokens=3, num_discarded=3)
    pooled = document_of(served(recorder))["acceptance"]["pooled"]
    assert pooled["mean_acceptance_length"] == 4.0
    assert pooled["tokens_per_decode_step"] == 1.0
    assert pooled["num_discarded_tokens"] == 3


def test_a_conversation_has_one_prefill_token_for_each_turn() -> None:
    recorder = recorder_of([(3, 2), (3, 0)], num_spec_tokens=3)
    record = served(recorder)
    record["response"]["body"]["metrics"]["batchspec"]["num_turns"] = 2
    record["response"]["body"]["usage"]["completion_tokens"] += 1
    acceptance = document_of(record)["acceptance"]
    assert acceptance["pooled"]["tokens_per_decode_step"] == 4 / 2
    assert acceptance["num_inconsistent_requests"] == 0


def test_records_of_another_writer_leave_the_emitted_numbers_unknown() -> None:
    foreign = served(recorder_of([(3, 2)], num_spec_tokens=3))
    del foreign["response"]["body"]["metrics"]["batchspec"]
    acceptance = document_of(foreign, served(recorder_of([(3, 1)], num_spec_tokens=3)))["acceptance"]
    assert acceptance["pooled"]["mean_acceptance_length"] == 2.5
    for key in ("num_decode_steps", "num_discarded_tokens", "tokens_per_decode_step"):
        assert acceptance["pooled"][key] is None
    assert acceptance["mean_over_requests"]["tokens_per_decode_step"] is None


def test_categories_add_up_and_stand_in_the_order_of_their_names() -> None:
    records = [
        served(recorder_of([(3, 2)], num_spec_tokens=3), category="prose"),
        served(recorder_of([(3, 3)], num_spec_tokens=3), category="copy"),
        failed(category="copy"),
        served(recorder_of([(3, 1)], num_spec_tokens=3)),
    ]
    document = document_of(*records)
    assert list(document["categories"]) == ["copy", "prose"]
    assert document["categories"]["copy"] == {
        key: value for key, value in document_of(*records[1:3]).items() if key != "categories"
    }
    assert document["acceptance"]["pooled"]["num_requests"] == 3


def test_different_settings_are_not_mixed() -> None:
    aggregate = Aggregate()
    aggregate.add(served(recorder_of([(3, 2)], num_spec_tokens=3)))
    with pytest.raises(UsageError, match="num_spec_tokens 3 and 4"):
        aggregate.add(served(recorder_of([(4, 2)], num_spec_tokens=4)))


def test_the_document_is_json() -> None:
    document = document_of(served(recorder_of([(3, 2)], num_spec_tokens=3), category="c"), failed())
    assert json.loads(json.dumps(document)) == document


def test_memory_does_not_grow_with_the_number_of_records() -> None:
    aggregate = Aggregate()
    records = [served(recorder_of([(3, j % 4)] * (j + 1), num_spec_tokens=3), index=j) for j in range(20)]

    def feed(num_rounds: int) -> None:
        for _ in range(num_rounds):
            for record in records:
                aggregate.add(record)

    feed(10)
    tracemalloc.start()
    try:
        feed(100)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 4096
