"""The numbers of a report of logs: the worked vector, a server's counters, and what is not known."""

import statistics
from pathlib import Path
from typing import Any

import pytest

from batchspec.report.logs import Grouping, survey_logs
from batchspec.report.logs.lengths_and_rates import length_table
from tests.ingest.logs import FOREIGN, ORACLE, SUMMARY, batch_line, body
from tests.report.test_oracle import SPECULATIVE, counted

from .made import line, report_of, request, steps_of

VECTOR = ([2, 3, 1, 4, 2, 0, 3, 3], [1, 1, 0])


def values(weighting: dict[str, Any]) -> dict[str, Any]:
    """The values alone."""
    return {name: measure["value"] for name, measure in weighting.items() if isinstance(measure, dict)}


@pytest.fixture(params=[True, False], ids=["detailed", "summary"])
def vector(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    rows = [line([(4, number) for number in accepted], is_detailed=request.param) for accepted in VECTOR]
    overall: dict[str, Any] = report_of(tmp_path, rows)["overall"]
    return overall


def test_the_worked_vector_pooled(vector: dict[str, Any]) -> None:
    pooled = vector["pooled"]
    assert pooled["acceptance_histogram"] == [2, 3, 2, 3, 1]
    assert (pooled["num_spec_steps"], pooled["num_accepted_draft_tokens"], pooled["num_draft_tokens"]) == (11, 20, 44)
    assert pooled["mean_acceptance_length"]["value"] == 1 + 20 / 11
    assert pooled["draft_acceptance_rate"]["value"] == 20 / 44


def test_the_worked_vector_as_mean_over_requests(vector: dict[str, Any]) -> None:
    mean = vector["mean_over_requests"]
    assert f"{mean['mean_acceptance_length']['value']:.4f}" == "2.4583"
    assert f"{mean['draft_acceptance_rate']['value']:.4f}" == "0.3646"
    assert mean["mean_acceptance_length"]["value"] == statistics.mean([1 + 18 / 8, 1 + 2 / 3])
    assert mean["draft_acceptance_rate"]["num_requests"] == 2


def test_the_worked_vector_by_position(vector: dict[str, Any]) -> None:
    assert [entry["num_accepted"] for entry in vector["per_position"]] == [9, 6, 4, 1]
    assert [entry["num_drafted"] for entry in vector["per_position"]] == [11] * 4
    for entry in vector["per_position"]:
        assert entry["marginal_rate"]["value"] == entry["conditional_rate"]["value"] == entry["num_accepted"] / 11


@pytest.mark.parametrize("folder", SPECULATIVE)
def test_the_greedy_captures_give_the_difference_of_the_counters(folder: str) -> None:
    document = survey_logs([ORACLE / folder / "greedy.responses.jsonl"])
    overall, counters = document["overall"], counted(folder, "greedy")
    assert overall["pooled"]["num_spec_steps"] == counters.num_spec_steps
    assert overall["pooled"]["num_draft_tokens"] == counters.num_draft_tokens
    assert overall["pooled"]["num_accepted_draft_tokens"] == counters.num_accepted_draft_tokens
    accepted = tuple(entry["num_accepted"] for entry in overall["per_position"])
    assert accepted == counters.num_accepted_tokens_per_pos
    assert document["rows"]["num_rows"] == document["rows"]["num_with_acceptance"] == 24


def test_nulls_errors_and_faults_are_counted_and_left_out(tmp_path: Path) -> None:
    bad = SUMMARY | {"num_spec_steps": 44}
    rows = [
        request([1, 2]),
        request([]),
        batch_line(body(None)),
        {"usage": {}, "choices": [{}, {}]},
        {"error": {"code": "expired", "message": "x"}},
        {"error": {"code": 500, "message": "x"}},
        batch_line(body(bad), custom_id="bad"),
        b"no json",
    ]
    document = report_of(tmp_path, rows)
    assert document["rows"] == {
        "num_rows": 8,
        "num_with_acceptance": 2,
        "num_null": 2,
        "num_null_with_several_choices": 1,
        "num_errors": 2,
        "errors_by_code": {"500": 1, "expired": 1},
        "num_malformed": 1,
        "num_contradictory": 1,
    }
    assert [(one["line"], one["reason"], one["custom_id"]) for one in document["left_out"]] == [
        (7, "contradiction", "bad"),
        (8, "malformed", None),
    ]
    overall = document["overall"]
    assert (overall["num_requests"], overall["num_requests_without_step"]) == (2, 1)
    assert overall["pooled"]["num_spec_steps"] == 2


def test_a_request_without_a_step_is_in_the_sums_and_in_no_mean(tmp_path: Path) -> None:
    overall = report_of(tmp_path, [request([1, 2]), request([])])["overall"]
    assert overall["mean_over_requests"]["mean_acceptance_length"]["num_requests"] == 1
    assert overall["mean_over_requests"]["mean_acceptance_length"]["value"] == 2.5
    assert overall["pooled"]["mean_acceptance_length"] == {"value": 2.5, "low": 2.5, "high": 2.5, "num_requests": 2}


def test_an_empty_denominator_gives_no_number(tmp_path: Path) -> None:
    overall = report_of(tmp_path, [request([])])["overall"]
    assert set(values(overall["pooled"]).values()) == {None}
    assert set(values(overall["mean_over_requests"]).values()) == {None}
    assert overall["per_position"][0]["marginal_rate"]["value"] is None


def test_no_request_with_numbers_gives_no_slice(tmp_path: Path) -> None:
    document = report_of(tmp_path, [batch_line(body(None))])
    assert document["overall"] is None
    assert document["over_output"] is None
    assert (document["lowest"], document["highest"]) == ([], [])


def test_conditional_rates_are_of_the_steps_that_drafted_so_far(tmp_path: Path) -> None:
    positions = report_of(tmp_path, [line([(1, 1), (3, 2), (2, 0), (4, 4)])])["overall"]["per_position"]
    assert [entry["num_drafted"] for entry in positions] == [4, 3, 2, 1]
    assert [entry["num_accepted"] for entry in positions] == [3, 2, 1, 1]
    assert [entry["conditional_rate"]["value"] for entry in positions] == [3 / 4, 2 / 3, 1 / 2, 1.0]
    assert [entry["marginal_rate"]["value"] for entry in positions] == [3 / 4, 2 / 4, 1 / 4, 1 / 4]


def test_drafts_by_length_give_conditional_rates_too() -> None:
    positions = survey_logs([FOREIGN / "vllm_by_length.jsonl"])["overall"]["per_position"]
    assert [entry["num_drafted"] for entry in positions] == [8, 5, 4]
    assert [entry["num_accepted"] for entry in positions] == [5, 2, 1]


def test_conditional_rates_are_absent_where_one_request_does_not_tell_its_drafts(tmp_path: Path) -> None:
    rows = [line([(4, 1), (4, 2)]), line([(4, 1), (3, 2)], is_detailed=False)]
    positions = report_of(tmp_path, rows)["overall"]["per_position"]
    assert [entry["num_drafted"] for entry in positions] == [4, None, None, None]
    assert positions[1]["conditional_rate"]["value"] is None
    assert positions[1]["marginal_rate"]["value"] == 2 / 4


@pytest.mark.parametrize("is_detailed", [True, False])
def test_with_k_of_two_the_totals_tell_the_second_position(tmp_path: Path, is_detailed: bool) -> None:
    rows = [line([(2, 1), (1, 1), (2, 2)], longest=2, is_detailed=is_detailed)]
    positions = report_of(tmp_path, rows)["overall"]["per_position"]
    assert [entry["num_drafted"] for entry in positions] == [3, 2]


def test_nothing_is_concluded_from_a_drafted_total_that_the_engine_made_up() -> None:
    positions = survey_logs([FOREIGN / "sglang.jsonl"])["overall"]["per_position"]
    assert [entry["num_drafted"] for entry in positions] == [21, None, None]
    assert [entry["num_accepted"] for entry in positions] == [18, 13, 12]


def test_sglangs_length_stands_apart_from_one_plus_accepted_by_steps() -> None:
    document = survey_logs([FOREIGN / "sglang.jsonl"])
    pooled = document["overall"]["pooled"]
    assert pooled["mean_acceptance_length"]["value"] == 1 + 43 / 21
    assert pooled["completion_tokens_per_step"]["value"] == 64 / 21
    assert pooled["tokens_per_decode_step"]["value"] is None
    (stated,) = document["stated_lengths"]
    assert (stated["engine"], stated["field"], stated["mean"]) == ("sglang", "spec_accept_length", 3.0476)


def test_the_oldest_sglang_has_its_length_and_no_other() -> None:
    document = survey_logs([FOREIGN / "sglang_native.jsonl"])
    assert document["origins"]["num_accepted_draft_tokens"] == {"exact": 3, "derived": 0, "estimated": 0, "absent": 1}
    pooled = document["overall"]["pooled"]
    assert pooled["mean_acceptance_length"]["num_requests"] == 3
    assert pooled["completion_tokens_per_step"]["num_requests"] == 4


def test_llama_cpp_does_not_tell_its_steps_and_the_report_says_so() -> None:
    document = survey_logs([FOREIGN / "llama_cpp.jsonl"])
    overall = document["overall"]
    assert overall["num_requests_without_step_count"] == 1
    assert overall["pooled"]["num_spec_steps"] is None
    assert overall["pooled"]["mean_acceptance_length"]["value"] is None
    assert overall["pooled"]["acceptance_histogram"] is None
    assert overall["per_position"] == []
    assert overall["pooled"]["draft_acceptance_rate"]["value"] == 167 / 259
    assert overall["estimated"]["mean_acceptance_length"]["value"] == 1 + 167 / 88
    assert document["origins"]["num_spec_steps"] == {"exact": 0, "derived": 0, "estimated": 1, "absent": 0}


def test_estimates_are_added_to_nothing(tmp_path: Path) -> None:
    paths = [FOREIGN / f"{name}.jsonl" for name in ("vllm", "llama_cpp", "predictions", "tokenspeed", "mlc_llm")]
    pooled = survey_logs(paths)["overall"]["pooled"]
    alone = survey_logs(paths[:1])["overall"]["pooled"]
    assert pooled["mean_acceptance_length"]["value"] == alone["mean_acceptance_length"]["value"]
    assert pooled["num_spec_steps"] == 43 + 19  # tokenspeed counts its steps
    assert pooled["num_accepted_draft_tokens"] == 10 + 167  # and llama.cpp its tokens
    assert pooled["draft_acceptance_rate"]["value"] == (10 + 167) / (129 + 259)


def test_steps_that_may_have_had_no_draft_give_no_conditional_rate() -> None:
    positions = survey_logs([FOREIGN / "spec_bench.jsonl"])["overall"]["per_position"]
    assert [entry["num_drafted"] for entry in positions] == [None, None, None]
    assert [entry["num_accepted"] for entry in positions] == [6, 2, 1]


def test_both_lengths_where_the_record_tells_its_decode_steps(tmp_path: Path) -> None:
    own = {"num_decode_steps": 12, "num_discarded_tokens": 3}
    rows = [
        line([(4, 2), (4, 4)], tokens=1 + 12 + 6 - 3, batchspec=own),
        line([(4, 1)], tokens=2 + 5 + 1, batchspec={"num_decode_steps": 5, "num_discarded_tokens": 0, "num_turns": 2}),
        line([], tokens=9, batchspec={"num_decode_steps": 8, "num_discarded_tokens": 0}),
    ]
    document = report_of(tmp_path, rows)
    pooled, mean = document["overall"]["pooled"], document["overall"]["mean_over_requests"]
    assert pooled["tokens_per_decode_step"]["value"] == (15 + 6 + 8) / (12 + 5 + 8)
    assert mean["tokens_per_decode_step"]["value"] == statistics.mean([15 / 12, 6 / 5])
    assert (pooled["num_decode_steps"], pooled["num_discarded_tokens"]) == (25, 3)
    assert document["engines"] == {"batchspec": 3}


def test_requests_of_different_k_are_added_where_they_have_entries(tmp_path: Path) -> None:
    document = report_of(tmp_path, [request([1, 2], longest=2), request([0, 4], longest=4), request([1], longest=1)])
    assert document["num_spec_tokens"] == {"1": 1, "2": 1, "4": 1}
    assert document["overall"]["pooled"]["acceptance_histogram"] == [1, 2, 1, 0, 1]
    positions = document["overall"]["per_position"]
    assert [entry["num_drafted"] for entry in positions] == [5, 4, 2, 2]
    assert [entry["marginal_rate"]["value"] for entry in positions] == [4 / 5, 2 / 5, 1 / 5, 1 / 5]


@pytest.mark.parametrize(
    ("sizes", "note", "has_interval"),
    [
        ((2, 2), None, True),
        ((2, 1, 1), "macro: 2 of 3 groups have one request and cannot vary, so its interval is too narrow", True),
        ((1, 1), "macro: 2 of 2 groups have one request and cannot vary, so there is no interval", False),
    ],
)
def test_the_macro_mean_says_which_groups_cannot_vary(
    tmp_path: Path, sizes: tuple[int, ...], note: str | None, has_interval: bool
) -> None:
    rows = [request([i, i + 1], category=f"g{group}") for group, size in enumerate(sizes) for i in range(size)]
    document = report_of(tmp_path, rows, by=Grouping.CATEGORY)
    length = document["macro"]["pooled"]["mean_acceptance_length"]
    assert (length["num_groups"], length["num_fixed_groups"]) == (len(sizes), sizes.count(1))
    assert (length["low"] is not None, length["high"] is not None) == (has_interval, has_interval)
    notes = length_table(document).notes
    assert [text for text in notes if "cannot vary" in text] == ([] if note is None else [note])


def test_groups_and_their_macro_mean(tmp_path: Path) -> None:
    rows = [
        request([4, 4, 4, 4], category="code"),
        request([2], category="code"),
        request([0, 0], category="prose"),
        request([1]),
        request([], category="idle"),
    ]
    document = report_of(tmp_path, rows, by=Grouping.CATEGORY)
    assert list(document["groups"]) == ["code", "idle", "prose"]
    assert document["num_requests_without_group"] == 1
    code = document["groups"]["code"]
    assert code["pooled"]["mean_acceptance_length"]["value"] == 1 + 18 / 5
    assert code["mean_over_requests"]["mean_acceptance_length"]["value"] == 4.0
    macro = document["macro"]
    assert macro["pooled"]["mean_acceptance_length"]["value"] == ((1 + 18 / 5) + 1) / 2
    assert macro["mean_over_requests"]["mean_acceptance_length"]["value"] == (4.0 + 1.0) / 2
    assert macro["pooled"]["mean_acceptance_length"]["num_groups"] == 2
    assert macro["pooled"]["tokens_per_decode_step"] == {
        "value": None,
        "low": None,
        "high": None,
        "num_groups": 0,
        "num_fixed_groups": 0,
    }
    assert document["overall"]["pooled"]["num_spec_steps"] == 8


def test_groups_by_engine_and_by_file() -> None:
    paths = [FOREIGN / "vllm.jsonl", FOREIGN / "sglang.jsonl"]
    assert list(survey_logs(paths, by=Grouping.ENGINE)["groups"]) == ["sglang", "vllm"]
    by_file = survey_logs(paths, by=Grouping.FILE)
    assert list(by_file["groups"]) == sorted(map(str, paths))
    assert by_file["groups"][str(paths[0])]["pooled"]["num_spec_steps"] == 43


def test_spread_over_requests(tmp_path: Path) -> None:
    spread = report_of(tmp_path, [request([number % 5]) for number in range(100)])["overall"]["distribution"]
    lengths = spread["mean_acceptance_length"]
    assert (lengths["p10"], lengths["p50"], lengths["p90"], lengths["num_requests"]) == (1.0, 3.0, 5.0, 100)
    assert sum(lengths["bins"]["num_requests"]) == 100
    assert spread["tokens_per_decode_step"]["bins"] is None


def test_the_requests_at_both_ends(tmp_path: Path) -> None:
    rows = [request([index % 5] * (1 + index // 5), custom_id=f"r{index}") for index in range(20)]
    document = report_of(tmp_path, rows)
    assert [one["custom_id"] for one in document["lowest"]] == ["r15", "r10", "r5", "r0", "r16"]
    assert [one["custom_id"] for one in document["highest"]] == ["r19", "r14", "r9", "r4", "r18"]
    assert document["lowest"][0] | {"path": ""} == {
        "custom_id": "r15",
        "path": "",
        "line": 16,
        "choice": None,
        "mean_acceptance_length": 1.0,
        "draft_acceptance_rate": 0.0,
        "num_spec_steps": 4,
        "num_accepted_draft_tokens": 0,
        "num_draft_tokens": 16,
    }


def test_nobody_is_at_both_ends(tmp_path: Path) -> None:
    document = report_of(tmp_path, [request([index]) for index in range(3)])
    assert (len(document["lowest"]), len(document["highest"])) == (1, 1)


def test_the_order_of_rows_and_the_way_they_are_read_change_no_sum(tmp_path: Path) -> None:
    rows = [line([(4, 3), (3, 1)], category="a"), line([(4, 4)], category="b"), line([], category="a")] * 3
    detailed = report_of(tmp_path, rows, by=Grouping.CATEGORY)
    plain = [batch_line(body(_summary(row), tokens=9), category=row["category"]) for row in reversed(rows)]
    summary = report_of(tmp_path, plain, by=Grouping.CATEGORY)
    for name in ("a", "b"):
        for key in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "acceptance_histogram"):
            assert summary["groups"][name]["pooled"][key] == detailed["groups"][name]["pooled"][key]


def _summary(row: dict[str, Any]) -> dict[str, Any]:
    block = row["response"]["body"]["metrics"]["speculative_decoding"]
    return {name: value for name, value in block.items() if not name.startswith("per_step")}


def test_a_summary_of_steps_is_what_the_recorder_would_write() -> None:
    assert steps_of([(3, 1)], longest=3, is_detailed=False)["acceptance_histogram"] == [0, 1, 0, 0]


def test_the_documented_example_to_the_last_digit() -> None:
    pooled = survey_logs([FOREIGN / "vllm.jsonl"])["overall"]["pooled"]
    assert pooled["mean_acceptance_length"]["value"] == 1.2325581395348837
    assert pooled["draft_acceptance_rate"]["value"] == 0.07751937984496124
