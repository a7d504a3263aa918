"""From requests to records: limits, stops, samples, prompts, turns, metrics, and lines taken in only as needed."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.request import Intake, RejectedLine, Request, TextPrompt
from batchspec.testing import ByteTokenizer, TableModel

from .runs import ask, ask_chat, body_of, checked_engine, reconciliation_of, sample_of, serve, spec_of, token_ids_of
from .scripts import counting_drafter

EOS = ByteTokenizer.eos_id
TIMING = ["time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms", "tokens_per_second"]


def counting_engine(**kwargs: Any) -> Any:
    return checked_engine(**{"model": TableModel.counting()} | kwargs)


def one(request: Request, **kwargs: Any) -> dict[str, Any]:
    """Serve one request by a counting model and return its record."""
    return serve(counting_engine(**kwargs), [request])[0]


def choice_of(record: dict[str, Any], index: int = 0) -> dict[str, Any]:
    choice: dict[str, Any] = body_of(record)["choices"][index]
    return choice


def test_a_completion_record_from_end_to_end() -> None:
    request = replace(ask(list(b"AB"), max_tokens=3), category="letters", prompts=(TextPrompt(text="AB"),))
    record = one(request)
    body = body_of(record)
    assert (record["custom_id"], record["category"]) == ("r0", "letters")
    assert record["response"]["status_code"] == 200
    assert body["object"] == "text_completion"
    assert body["model"] == "table"
    assert body["usage"]["prompt_tokens"] == 2
    assert body["usage"]["completion_tokens"] == 3
    assert body["usage"]["total_tokens"] == 5
    choice = choice_of(record)
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("CDE", "length", None)
    assert (choice["prompt_token_ids"], choice["token_ids"]) == ([65, 66], [67, 68, 69])


def test_a_chat_record_has_a_message() -> None:
    body = body_of(one(ask_chat("A", max_tokens=2)))
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"]["role"] == "assistant"
    assert body["choices"][0]["message"]["content"] == "\x0b\x0c"  # behind the newline


def test_ids_are_left_out_unless_asked_for() -> None:
    request = ask([65], max_tokens=2)
    record = one(replace(request, sampling=replace(request.sampling, return_token_ids=False)))
    assert choice_of(record)["token_ids"] is None
    assert choice_of(record)["prompt_token_ids"] is None
    assert choice_of(record)["text"] == "BC"


def test_the_model_that_the_line_named_is_echoed() -> None:
    assert body_of(one(replace(ask([65], max_tokens=1), model="theirs")))["model"] == "theirs"


def test_a_prompt_that_leaves_one_place_gets_one_token() -> None:
    record = one(ask([65] * 15), max_model_len=16)
    assert token_ids_of(record) == [[66]]
    assert choice_of(record)["finish_reason"] == "length"


@pytest.mark.parametrize(("length", "excess"), [(16, 1), (20, 5)])
def test_a_prompt_that_leaves_no_place_is_refused(length: int, excess: int) -> None:
    record = one(ask([65] * length), max_model_len=16)
    assert record["response"]["status_code"] == 400
    assert record["error"]["code"] == "context_length_exceeded"
    assert record["error"]["param"] == "prompt"
    assert f"line 1: the prompt has {length} tokens" in record["error"]["message"]
    assert f"shorten it by {excess}, " in record["error"]["message"]


def test_max_tokens_up_to_the_context_is_served_and_one_more_is_refused() -> None:
    assert len(token_ids_of(one(ask([65] * 4, max_tokens=12), max_model_len=16))[0]) == 12
    error = one(ask([65] * 4, max_tokens=13), max_model_len=16)["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "max_tokens")
    assert "leaves 12 of the context of 16" in error["message"]


def test_an_empty_prompt_is_refused() -> None:
    assert "no tokens" in one(ask([]))["error"]["message"]


def test_one_prompt_of_several_that_does_not_fit_refuses_the_whole_line() -> None:
    engine = counting_engine(max_model_len=16)
    records = serve(engine, [ask([65], [65] * 16, index=0), ask([65], index=1, max_tokens=1)])
    assert [token_ids_of(record) for record in records] == ["context_length_exceeded", [[66]]]
    assert engine.progress.num_failed == 1
    assert engine.progress.num_requests == 2


def test_the_stop_token_is_no_text_but_is_counted() -> None:
    record = one(ask([65], max_tokens=9, stop_token_ids=(68,)))
    choice = choice_of(record)
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("BC", "stop", 68)
    assert choice["token_ids"] == [66, 67, 68]
    assert body_of(record)["usage"]["completion_tokens"] == 3


def test_a_stop_token_in_the_prompt_stops_nothing() -> None:
    assert token_ids_of(one(ask([68, 65], max_tokens=2, stop_token_ids=(68,)))) == [[66, 67]]


def test_a_stop_token_as_the_last_allowed_one_is_a_stop() -> None:
    assert choice_of(one(ask([65], max_tokens=3, stop_token_ids=(68,))))["finish_reason"] == "stop"


def test_end_of_sequence_ends_unless_ignored() -> None:
    record = one(ask([254], max_tokens=9))
    assert token_ids_of(record) == [[255, EOS]]
    assert (choice_of(record)["finish_reason"], choice_of(record)["stop_reason"]) == ("stop", None)
    ignored = one(ask([254], max_tokens=4, ignore_eos=True))
    assert token_ids_of(ignored) == [[255, EOS, 0, 1]]
    assert choice_of(ignored)["finish_reason"] == "length"


def test_ignoring_end_of_sequence_does_not_ignore_it_as_a_stop_token() -> None:
    record = one(ask([254], max_tokens=4, ignore_eos=True, stop_token_ids=(EOS,)))
    assert choice_of(record)["stop_reason"] == EOS


def test_samples_are_independent_streams_of_which_the_first_is_that_of_one_sample() -> None:
    model = TableModel.random(seed=2, scale=1.0)
    request = ask([65, 66], max_tokens=8, temperature=1.0, n=3)
    record = serve(checked_engine(model=model, level=Level.SUMMARY, timing=True), [request])[0]
    single = serve(checked_engine(model=model), [ask([65, 66], max_tokens=8, temperature=1.0)])[0]
    answers = token_ids_of(record)
    assert len({tuple(answer) for answer in answers}) == 3
    assert answers[0] == token_ids_of(single)[0]
    assert [choice["index"] for choice in body_of(record)["choices"]] == [0, 1, 2]
    assert body_of(record)["metrics"] is None
    assert body_of(record)["usage"]["prompt_tokens"] == 2


def test_several_prompts_give_their_choices_in_order_and_no_metrics() -> None:
    record = one(ask([65], [75, 76], max_tokens=2, n=2), level=Level.DETAILED, drafter=counting_drafter(2), timing=True)
    assert token_ids_of(record) == [[66, 67], [66, 67], [77, 78], [77, 78]]
    assert body_of(record)["metrics"] is None
    assert body_of(record)["usage"]["prompt_tokens"] == 3


def test_turns_are_asked_one_after_another_and_their_metrics_summed() -> None:
    engine = counting_engine(level=Level.DETAILED, drafter=counting_drafter(3))
    records = serve(engine, [ask_chat("a", "b", "c", max_tokens=6)])
    record = records[0]
    contents = [choice["message"]["content"] for choice in body_of(record)["choices"]]
    assert contents == ["\x0b\x0c\r\x0e\x0f\x10"] * 3
    usage, spec = body_of(record)["usage"], spec_of(record)
    prompts = [
        "user: a\n",
        f"user: a\nassistant: {contents[0]}\nuser: b\n",
        f"user: a\nassistant: {contents[0]}\nuser: b\nassistant: {contents[1]}\nuser: c\n",
    ]
    assert usage["prompt_tokens"] == sum(map(len, prompts))
    assert usage["completion_tokens"] == 18
    assert spec["num_turns"] == 3
    assert spec["num_spec_steps"] == 6
    assert spec["per_step_drafted"] == [3] * 6
    assert spec["num_decode_steps"] + spec["num_accepted_draft_tokens"] - spec["num_discarded_tokens"] == 18 - 3
    assert spec["tokens_per_decode_step"] == 15 / 6
    assert reconciliation_of(engine, records).is_exact


def test_a_request_without_turns_has_no_number_of_turns() -> None:
    assert "num_turns" not in spec_of(
        one(ask_chat("a", max_tokens=2), level=Level.SUMMARY, drafter=counting_drafter(2))
    )


def test_a_conversation_that_outgrows_the_context_is_an_error_and_its_counts_unreported() -> None:
    engine = counting_engine(level=Level.SUMMARY, drafter=counting_drafter(3), max_model_len=40)
    records = serve(engine, [ask_chat("a", "b" * 20, max_tokens=6, index=0), ask([65], index=1, max_tokens=2)])
    assert [token_ids_of(record) for record in records] == ["context_length_exceeded", [[66, 67]]]
    assert records[0]["error"]["param"] == "messages"
    assert engine.desk.unreported["error"].num_spec_steps > 0
    assert reconciliation_of(engine, records).is_exact


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("timing", [False, True])
def test_metrics_hold_what_the_two_flags_ask_for(level: Level, timing: bool) -> None:
    metrics = body_of(one(ask([65], max_tokens=5), level=level, timing=timing, drafter=counting_drafter(2)))["metrics"]
    if level is Level.NONE and not timing:
        assert metrics is None
        return
    assert [key for key in metrics if key in TIMING] == TIMING
    assert all((metrics[key] is not None) is timing for key in TIMING)
    assert (metrics["speculative_decoding"] is not None) is (level is not Level.NONE)
    assert ("batchspec" in metrics) is (level is not Level.NONE)
    if level is not Level.NONE:
        assert ("per_step_accepted" in metrics["speculative_decoding"]) is (level is Level.DETAILED)


def test_the_level_none_makes_no_recorder() -> None:
    engine = counting_engine(drafter=counting_drafter(2))
    for _ in engine.run([ask([65], max_tokens=9)]):
        pass
    assert engine.counters.totals()["num_spec_steps"] == 3
    assert not engine.desk.unreported
    assert not engine.desk.in_flight()


def test_timing_from_a_clock_that_ticks_once_a_reading() -> None:
    """Readings: one at the start, one for the line taken in, then one a step; two steps give four tokens."""
    ticks = count(100.0, 0.25)
    engine = counting_engine(clock=lambda: next(ticks), timing=True, drafter=counting_drafter(2))
    metrics = body_of(serve(engine, [ask([65], max_tokens=4)])[0])["metrics"]
    assert metrics["queue_time_ms"] == 0.0
    assert metrics["time_to_first_token_ms"] == 250.0
    assert metrics["generation_time_ms"] == 250.0
    assert metrics["mean_itl_ms"] == pytest.approx(250 / 3)
    assert metrics["tokens_per_second"] == 4 / 0.5


def test_waiting_for_a_place_is_queue_time() -> None:
    ticks = count(0.0, 1.0)
    engine = counting_engine(clock=lambda: next(ticks), timing=True, max_num_seqs=1)
    requests = [ask([65], index=0, max_tokens=5), ask([70], index=1, max_tokens=1)]
    first, second = (body_of(record)["metrics"] for record in serve(engine, requests))
    assert first["queue_time_ms"] == 0.0
    assert second["queue_time_ms"] >= 3000.0
    assert second["mean_itl_ms"] is None
    assert second["generation_time_ms"] == 0.0


def test_timing_is_never_negative_with_a_real_clock() -> None:
    engine = counting_engine(timing=True, max_num_seqs=2, drafter=counting_drafter(2))
    for record in serve(engine, [ask([65 + i], index=i, max_tokens=6) for i in range(6)]):
        metrics = body_of(record)["metrics"]
        assert all(metrics[key] >= 0 for key in TIMING)


def test_a_clock_that_stands_still_gives_no_rate() -> None:
    metrics = body_of(one(ask([65], max_tokens=3), timing=True, clock=lambda: 5.0))["metrics"]
    assert metrics["tokens_per_second"] is None
    assert metrics["mean_itl_ms"] == 0.0


def rejected(index: int) -> RejectedLine:
    return RejectedLine(index=index, line=index + 1, custom_id=f"bad{index}", message="no good", status_code=422)


def test_rejected_lines_take_their_places() -> None:
    intake: list[Intake] = [
        rejected(0),
        ask([65], index=1, max_tokens=5),
        rejected(2),
        ask([70], index=3, max_tokens=1),
    ]
    engine = counting_engine()
    records = serve(engine, intake)
    assert [record["custom_id"] for record in records] == ["bad0", "r1", "bad2", "r3"]
    assert records[0]["response"]["status_code"] == 422
    assert records[0]["error"]["message"] == "no good"
    assert engine.progress.num_failed == 2


def test_records_leave_as_they_are_done_when_order_does_not_matter() -> None:
    lengths = [9, 2, 5, 1]
    requests = [ask([65], index=i, max_tokens=length) for i, length in enumerate(lengths)]
    done = serve(counting_engine(), requests, in_order=False)
    assert [record["custom_id"] for record in done] == ["r3", "r1", "r2", "r0"]
    assert [record["custom_id"] for record in serve(counting_engine(), requests)] == ["r0", "r1", "r2", "r3"]


def test_lines_are_taken_in_only_as_there_is_room() -> None:
    taken = 0

    def lines() -> Iterator[Intake]:
        nonlocal taken
        for index in range(50):
            taken += 1
            yield ask([65], index=index, max_tokens=4)

    engine = counting_engine(max_num_seqs=2)
    for num_done, _ in enumerate(engine.run(lines()), start=1):
        assert taken <= num_done + 3 * engine.scheduler.max_num_seqs
    assert taken == 50


def test_an_empty_input_gives_no_records() -> None:
    assert serve(counting_engine(), []) == []


def test_gauges_show_what_runs_and_waits_now() -> None:
    """Two of five may run at a time: behind every step, what goes on or still waits, and at the end nothing."""
    engine = counting_engine(max_num_seqs=2)
    seen: list[tuple[float, float]] = []

    def look() -> None:
        seen.append((sample_of(engine, "num_requests_running"), sample_of(engine, "num_requests_waiting")))
        assert sample_of(engine, "kv_cache_usage_perc") == engine.scheduler.pool.usage

    requests = [ask([65], index=i, max_tokens=3) for i in range(5)]
    assert len(list(engine.run(requests, between_steps=look))) == 5
    assert (2, 0) in seen
    assert (0, 2) in seen, "both have ended, and the next ones join at the next step"
    assert max(running for running, _ in seen) == 2
    assert seen[-1] == (0, 0)


def test_gauges_show_that_dropped_requests_run_no_longer() -> None:
    engine = counting_engine(max_num_seqs=2)
    records = engine.run(iter([ask([65], index=0, max_tokens=1), ask([65], index=1, max_tokens=9)]))
    next(records)
    assert sample_of(engine, "num_requests_running") == 1
    records.close()
    assert sample_of(engine, "num_requests_running") == 0


def test_general_counters_say_what_the_records_say() -> None:
    engine = counting_engine(drafter=counting_drafter(2), max_num_seqs=2)
    records = serve(engine, [ask([65] * (1 + i), index=i, max_tokens=4 + i, stop_token_ids=(69,)) for i in range(4)])
    usage = [body_of(record)["usage"] for record in records]
    reasons = [choice_of(record)["finish_reason"] for record in records]
    assert sample_of(engine, "prompt_tokens_total") == engine.progress.prompt_tokens == 10
    num_output = sum(item["completion_tokens"] for item in usage)
    assert sample_of(engine, "generation_tokens_total") == engine.progress.output_tokens == num_output
    for reason in ("stop", "length"):
        assert sample_of(engine, "request_success_total", finished_reason=reason) == reasons.count(reason)
    assert sample_of(engine, "time_to_first_token_seconds_count") == 4
    assert sample_of(engine, "inter_token_latency_seconds_count") == num_output - 4
    assert sample_of(engine, "request_generation_tokens_sum") == num_output
    assert engine.progress.num_draft_tokens == engine.counters.totals()["num_draft_tokens"]
