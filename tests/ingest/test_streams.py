"""Streamed responses: whatever way their chunks are kept, they give what the whole response would."""

import json
from pathlib import Path
from typing import Any

import pytest

from batchspec.ingest import LogRecord, SkippedRow, SkipReason, read_logs
from batchspec.ingest.streams import OpenStreams, is_chunk, merge_chunks

from .logs import ORACLE, SUMMARY, batch_line, body, read_rows

CAPTURED = json.loads((ORACLE / "ngram_k3_n1-3" / "stream.json").read_text())
STREAMS: dict[str, list[dict[str, Any]]] = {
    name: [chunk for chunk in chunks if chunk != "[DONE]"] for name, chunks in CAPTURED.items()
}
WITH_USAGE = [name for name in STREAMS if name != "no_usage"]


def as_lines(chunks: list[dict[str, Any]]) -> list[Any]:
    return list(chunks)


def as_events(chunks: list[dict[str, Any]]) -> list[Any]:
    events = [b"event: message\n: keep-alive\ndata: " + json.dumps(chunk).encode() + b"\n" for chunk in chunks]
    return [*events, b"data: [DONE]\n"]


def as_body(chunks: list[dict[str, Any]]) -> list[Any]:
    return [batch_line(chunks)]


def as_response(chunks: list[dict[str, Any]]) -> list[Any]:
    return [{"custom_id": "a", "response": chunks, "error": None}]


def as_captured(chunks: list[dict[str, Any]]) -> list[Any]:
    return [batch_line([*chunks, "[DONE]"])]


def as_text(chunks: list[dict[str, Any]]) -> list[Any]:
    return [batch_line("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n")]


FORMS = [as_lines, as_events, as_body, as_response, as_captured, as_text]


def only(entries: list[LogRecord | SkippedRow]) -> LogRecord:
    (record,) = entries
    assert isinstance(record, LogRecord)
    return record


def test_the_captures_hold_what_is_expected() -> None:
    assert len(WITH_USAGE) >= 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", WITH_USAGE)
def test_every_form_gives_the_last_chunks_numbers(tmp_path: Path, name: str, form: Any) -> None:
    stated = STREAMS[name][-1]["metrics"]["speculative_decoding"]
    record = only(read_rows(tmp_path / "log.jsonl", form(STREAMS[name])))
    assert record.acceptance is not None
    assert record.acceptance.acceptance_histogram == stated["acceptance_histogram"]
    assert record.acceptance.per_step_drafted == stated["per_step_drafted"]
    assert record.completion_tokens == STREAMS[name][-1]["usage"]["completion_tokens"]
    assert (record.engine, record.line, record.num_choices) == ("vllm", 1 if form not in (as_events,) else 3, 1)


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_that_does_not_tell_is_null(tmp_path: Path, form: Any) -> None:
    record = only(read_rows(tmp_path / "log.jsonl", form(STREAMS["no_usage"])))
    assert (record.acceptance, record.completion_tokens) == (None, None)


def test_interleaved_streams_are_told_apart(tmp_path: Path) -> None:
    one, other = (STREAMS[name] for name in WITH_USAGE[:2])
    pairs = [chunk for pair in zip(one, other, strict=False) for chunk in pair]
    rest = one[len(other) :] + other[len(one) :]
    first, second = read_rows(tmp_path / "log.jsonl", [*pairs, *rest])
    assert isinstance(first, LogRecord)
    assert isinstance(second, LogRecord)
    for record, chunks in ((first, one), (second, other)):
        assert record.acceptance is not None
        stated = chunks[-1]["metrics"]["speculative_decoding"]["acceptance_histogram"]
        assert record.acceptance.acceptance_histogram == stated
        assert record.custom_id == chunks[0]["id"]


def test_done_ends_what_is_finished_so_that_an_id_can_come_again(tmp_path: Path) -> None:
    rows = as_events(STREAMS[WITH_USAGE[0]])
    assert len(read_rows(tmp_path / "log.jsonl", rows + rows)) == 2


def test_chunks_and_whole_responses_in_one_log(tmp_path: Path) -> None:
    whole = body(SUMMARY)
    records = read_rows(tmp_path / "log.jsonl", [whole, *STREAMS[WITH_USAGE[0]], batch_line(whole)])
    engines = [record.engine for record in records if isinstance(record, LogRecord)]
    assert engines == ["vllm"] * 3


def test_responses_without_id_are_not_taken_for_chunks(tmp_path: Path) -> None:
    whole = {name: value for name, value in body(SUMMARY).items() if name not in ("id", "usage")}
    assert not is_chunk(whole)
    assert len(read_rows(tmp_path / "log.jsonl", [whole, whole])) == 2


def test_llama_cpps_own_stream_has_no_ids_and_no_done(tmp_path: Path) -> None:
    last = {"content": "", "stop": True, "timings": {"predicted_n": 9, "draft_n": 6, "draft_n_accepted": 3}}
    events = [f"data: {json.dumps(chunk)}\n".encode() for chunk in ({"content": "x", "stop": False}, last)]
    records = read_rows(tmp_path / "log.jsonl", events + events)
    assert [record.engine for record in records if isinstance(record, LogRecord)] == ["llama.cpp"] * 2


def test_sglangs_own_stream_repeats_its_numbers_and_the_last_count(tmp_path: Path) -> None:
    chunks = [
        {"text": "x" * number, "meta_info": {"id": "q", "completion_tokens": number, "spec_verify_ct": number}}
        for number in (1, 2, 3)
    ]
    events = [f"data: {json.dumps(chunk)}\n".encode() for chunk in chunks]
    record = only(read_rows(tmp_path / "log.jsonl", [*events, b"data: [DONE]"]))
    assert record.acceptance is not None
    assert (record.completion_tokens, record.acceptance.num_spec_steps) == (3, 3)


def test_an_error_in_a_stream_is_an_error(tmp_path: Path) -> None:
    events = [b'data: {"error": {"message": "lost", "code": 503}}', b"data: [DONE]"]
    (found,) = read_rows(tmp_path / "log.jsonl", events)
    assert isinstance(found, SkippedRow)
    assert (found.reason, found.code) == (SkipReason.ERROR, "503")


def test_a_list_behind_data_is_no_chunk(tmp_path: Path) -> None:
    rows = [b'data: [{"meta_info": {"spec_verify_ct": 4}}, {"meta_info": {"spec_verify_ct": 5}}]']
    assert len(read_rows(tmp_path / "log.jsonl", rows)) == 2


def test_only_so_many_streams_are_kept_open() -> None:
    streams = OpenStreams()
    ended: list[tuple[int, dict[str, Any]]] = []
    for index in range(5000):
        finished = {"index": 0, "finish_reason": "stop" if index % 2 else None}
        ended += streams.add({"id": f"{index}", "choices": [finished]}, line=index + 1)
    assert len(ended) == 5000 - 4096
    assert all(line % 2 == 0 for line, _ in ended)
    assert len(list(streams.end())) == 4096


def test_texts_are_let_go() -> None:
    merged = merge_chunks(STREAMS[WITH_USAGE[0]])
    assert "text" not in merged["choices"][0]
    assert "token_ids" not in merged["choices"][0]


def test_the_capture_of_a_streamed_chat_names_its_file_and_first_line(tmp_path: Path) -> None:
    rows = [batch_line(body(SUMMARY)), *STREAMS[WITH_USAGE[1]]]
    entries = read_rows(tmp_path / "log.jsonl", rows)
    assert [entry.line for entry in entries] == [1, 2]
    assert list(read_logs([tmp_path / "log.jsonl"])) == entries


def test_choices_without_a_proper_index_are_one() -> None:
    merged = merge_chunks([{"choices": [{"index": []}, {"index": None, "finish_reason": "stop"}, {}]}])
    assert len(merged["choices"]) == 1


def test_a_list_of_responses_is_no_stream(tmp_path: Path) -> None:
    other = body(SUMMARY) | {"id": "cmpl-2"}
    records = read_rows(tmp_path / "log.jsonl", [[body(SUMMARY), other], batch_line([body(SUMMARY), other])])
    assert [record.custom_id for record in records] == ["cmpl-1", "cmpl-2", "a", "a"]


def test_chunks_that_tell_their_usage_all_along_are_chunks(tmp_path: Path) -> None:
    chunks = [chunk | {"usage": chunk.get("usage") or {"completion_tokens": 1}} for chunk in STREAMS["usage"]]
    record = only(read_rows(tmp_path / "log.jsonl", chunks))
    assert record.acceptance is not None
    assert record.completion_tokens == STREAMS["usage"][-1]["usage"]["completion_tokens"]


def test_what_stands_beside_chunks_is_kept(tmp_path: Path) -> None:
    chunks = [chunk | {"category": "code", "custom_id": "mine"} for chunk in STREAMS["usage"]]
    record = only(read_rows(tmp_path / "log.jsonl", chunks))
    assert (record.category, record.custom_id) == ("code", "mine")


def test_a_response_with_its_usage_that_says_nothing_of_its_end_is_whole() -> None:
    whole = body(SUMMARY)
    unsaid = whole | {"choices": [{"index": 0, "text": "x"}]}
    assert [is_chunk(one) for one in (whole, unsaid)] == [False, False]
    assert is_chunk(whole | {"choices": [{"index": 0, "text": "x", "finish_reason": None}]})
    assert is_chunk(whole | {"choices": []})


def chat_chunks(*choices: dict[str, Any], **last: Any) -> list[dict[str, Any]]:
    """Chunks of a streamed chat; the last holds what an engine adds."""
    head = {"id": "chat-1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    chunks = [head | {"choices": [choice]} for choice in choices]
    return [*chunks[:-1], chunks[-1] | last]


@pytest.mark.parametrize("form", FORMS)
def test_llama_cpps_timings_of_every_chunk_are_those_of_the_last(tmp_path: Path, form: Any) -> None:
    said = {"index": 0, "delta": {"content": "x"}, "finish_reason": None}
    ended = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = chat_chunks(said, said, ended, timings={"predicted_n": 256, "draft_n": 259, "draft_n_accepted": 167})
    chunks[0]["timings"] = {"predicted_n": 3}
    chunks[1]["timings"] = {"predicted_n": 9, "draft_n": 6, "draft_n_accepted": 3}
    record = only(read_rows(tmp_path / "log.jsonl", form(chunks)))
    assert record.acceptance is not None
    assert (record.engine, record.completion_tokens) == ("llama.cpp", 256)
    assert (record.acceptance.num_draft_tokens, record.acceptance.num_accepted_draft_tokens) == (259, 167)
    assert "num_spec_steps" in record.acceptance.estimated
    assert record.acceptance.acceptance_histogram is None


@pytest.mark.parametrize("form", FORMS)
def test_tensorrt_tells_its_numbers_where_a_choice_ends(tmp_path: Path, form: Any) -> None:
    told: dict[str, Any] = {"total_accepted_draft_tokens": 30, "total_draft_tokens": 60, "num_spec_steps": 20}
    told |= {"acceptance_histogram": [8, 0, 6, 6], "num_spec_tokens": 3}
    said = {"index": 1, "delta": {"content": "x"}, "finish_reason": None}
    other = {"index": 0, "delta": {"content": "y"}, "finish_reason": "stop"}
    ended = {"index": 1, "delta": {}, "finish_reason": "stop", "speculative_decoding": told}
    entries = read_rows(tmp_path / "log.jsonl", form(chat_chunks(said, other, ended)))
    records = [entry for entry in entries if isinstance(entry, LogRecord)]
    stated = [record.acceptance.num_spec_steps if record.acceptance else None for record in records]
    assert stated == [20, None]
    assert records[0].engine == "tensorrt-llm"
