"""Responses as AIPerf's per-request records: its names, units, definitions and identities."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from batchspec.convert.aiperf import aiperf_record
from batchspec.convert.responses import to_aiperf
from batchspec.errors import RequestError, UsageError

ORACLE = Path(__file__).parents[1] / "data" / "oracle"


def record(*, timing: dict[str, float] | None = None, k: int = 4) -> dict[str, Any]:
    """A request with the worked example of AIPerf's own documentation: eight steps of full drafts, k = 4."""
    per_step = [2, 3, 1, 4, 2, 0, 3, 3]
    stated = {
        "mean_acceptance_length": 3.25,
        "draft_acceptance_rate": 0.5625,
        "acceptance_histogram": [per_step.count(j) for j in range(k + 1)],
        "num_spec_steps": 8,
        "num_accepted_draft_tokens": 18,
        "num_draft_tokens": 32,
        "num_spec_tokens": k,
        "per_step_accepted": per_step,
        "per_step_drafted": [4] * 8,
    }
    body = {
        "id": "cmpl-1",
        "created": 1_800_000_000,
        "choices": [{"index": 0, "text": "x", "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 27},
        "metrics": {**(timing or {}), "speculative_decoding": stated},
    }
    response = {"status_code": 200, "request_id": "req_1", "body": body}
    return {"id": "b", "custom_id": "a", "response": response, "error": None}


def test_the_worked_example() -> None:
    timing = {"queue_time_ms": 5.0, "time_to_first_token_ms": 20.0, "generation_time_ms": 260.0}
    line = aiperf_record(record(timing=timing), index=7)
    assert list(line) == ["metadata", "metrics", "spec_decode_acceptance", "error"]
    metadata = line["metadata"]
    assert (metadata["session_num"], metadata["conversation_id"], metadata["x_request_id"]) == (7, "a", "req_1")
    assert metadata["request_end_ns"] - metadata["request_start_ns"] == 285_000_000
    assert metadata["request_start_ns"] == 1_800_000_000 * 10**9
    assert {name: (metric["value"], metric["unit"]) for name, metric in line["metrics"].items()} == {
        "input_sequence_length": (9, "tokens"),
        "output_sequence_length": (27, "tokens"),
        "time_to_first_token": (25.0, "ms"),
        "request_latency": (285.0, "ms"),
        "inter_token_latency": (10.0, "ms"),
        "output_token_throughput_per_user": (100.0, "tokens/sec/user"),
        "spec_decode_acceptance_length": (3.25, "ratio"),
        "spec_decode_draft_acceptance_rate": (56.25, "%"),
        "spec_decode_accepted_per_verified": (0.65, "ratio"),
        "spec_decode_steps": (8, "count"),
        "spec_decode_accepted_draft_tokens": (18, "tokens"),
        "spec_decode_draft_tokens": (32, "tokens"),
    }
    acceptance = line["spec_decode_acceptance"]
    assert acceptance["acceptance_histogram"] == {"0": 1, "1": 1, "2": 2, "3": 3, "4": 1}
    assert acceptance["engine"] == "vllm"
    assert acceptance["completion_tokens"] == 27
    assert line["error"] is None


def test_without_timing_fields_there_are_no_times() -> None:
    line = aiperf_record(record(), index=0)
    assert line["metadata"]["request_end_ns"] == line["metadata"]["request_start_ns"]
    assert not {"request_latency", "time_to_first_token", "inter_token_latency"} & set(line["metrics"])


def test_a_request_without_a_step_has_no_draft_metrics() -> None:
    source = record()
    source["response"]["body"]["metrics"]["speculative_decoding"] |= {
        "acceptance_histogram": [0] * 5,
        "num_spec_steps": 0,
        "num_accepted_draft_tokens": 0,
        "num_draft_tokens": 0,
        "per_step_accepted": [],
        "per_step_drafted": [],
    }
    line = aiperf_record(source, index=0)
    assert "spec_decode_acceptance" not in line
    assert not any(name.startswith("spec_decode") for name in line["metrics"])


def test_an_error_is_a_record_too() -> None:
    error = {"message": "too long", "type": "invalid_request_error", "param": "prompt", "code": "context"}
    response = {"status_code": 400, "request_id": "req_2", "body": {"error": error}}
    line = aiperf_record({"custom_id": "b", "response": response, "error": error}, index=1)
    assert line["metrics"] == {}
    assert line["error"] == {"code": 400, "type": "invalid_request_error", "message": "too long"}
    broken = {"custom_id": "c", "response": None, "error": {"message": "gone", "code": "abort"}}
    assert aiperf_record(broken, index=2)["error"] == {"code": None, "type": None, "message": "gone"}


def test_contradictory_metrics_are_not_passed_on() -> None:
    source = record()
    source["response"]["body"]["metrics"]["speculative_decoding"]["num_accepted_draft_tokens"] = 19
    with pytest.raises(RequestError, match="19 draft tokens accepted, but the acceptance histogram tells 18"):
        aiperf_record(source, index=0)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"prompt": "a"}, "the row is no response"),
        ({"response": {"status_code": 200, "body": 3}}, "the response is the number 3, not an object"),
        ({"id": "c", "object": "chat.completion.chunk", "choices": []}, "one chunk of a stream"),
    ],
)
def test_what_is_no_response_is_named(row: dict[str, Any], expected: str) -> None:
    with pytest.raises(RequestError, match=expected):
        aiperf_record(row, index=0)


def test_other_engines_and_odd_times() -> None:
    """What llama.cpp tells is passed on as far as it is counted: it has no steps."""
    timings = {"predicted_n": 9, "prompt_n": 4, "draft_n": 6, "draft_n_accepted": 4}
    line = aiperf_record({"id": "x", "choices": [{"text": "a"}], "created": "now", "timings": timings}, index=0)
    assert line["metadata"]["conversation_id"] == "x"
    assert line["metadata"]["request_start_ns"] == 0
    assert line["metrics"] == {"output_sequence_length": {"value": 9, "unit": "tokens"}}
    odd: dict[str, Any] = {"queue_time_ms": -1.0, "time_to_first_token_ms": [], "generation_time_ms": True}
    assert "request_latency" not in aiperf_record(record(timing=odd), index=0)["metrics"]


@pytest.mark.parametrize("folder", ["ngram_k1_n1-1", "ngram_k3_n1-3", "ngram_k5_n2-4"])
def test_a_real_servers_responses_keep_their_sums(folder: str) -> None:
    said: list[str] = []
    path = ORACLE / folder / "edges.responses.jsonl"
    lines = list(to_aiperf(str(path), say=said.append).lines())
    stated = [orjson.loads(line)["response"]["body"]["metrics"] for line in path.read_bytes().splitlines()]
    steps = sum(
        metrics["speculative_decoding"]["num_spec_steps"]
        for metrics in stated
        if metrics and metrics["speculative_decoding"]
    )
    assert sum(line["metrics"].get("spec_decode_steps", {"value": 0})["value"] for line in lines) == steps > 0
    for line in lines:
        acceptance = line.get("spec_decode_acceptance")
        if acceptance is not None:
            histogram = {int(j): count for j, count in acceptance["acceptance_histogram"].items()}
            assert sum(histogram.values()) == acceptance["num_spec_steps"]
            assert sum(j * count for j, count in histogram.items()) == acceptance["num_accepted_draft_tokens"]
            assert 0 not in histogram.values()
    assert [line["metadata"]["session_num"] for line in lines] == list(range(15))
    assert said == []


def test_streams_are_read_as_one(tmp_path: Path) -> None:
    source = record()
    body = source["response"]["body"]
    chunk = {"id": "cmpl-1", "created": 5, "choices": [{"index": 0, "text": "x", "finish_reason": "length"}]}
    last = {"id": "cmpl-1", "created": 5, "choices": [], "usage": body["usage"], "metrics": body["metrics"]}
    source["response"]["body"] = [chunk, last]
    (tmp_path / "r.jsonl").write_bytes(orjson.dumps(source) + b"\n")
    (line,) = to_aiperf(str(tmp_path / "r.jsonl"), say=print).lines()
    assert line["metrics"]["spec_decode_steps"]["value"] == 8
    assert line["metadata"]["request_start_ns"] == 5 * 10**9
    with pytest.raises(UsageError, match="cannot be read"):
        to_aiperf(str(tmp_path / "none.jsonl"), say=print)
