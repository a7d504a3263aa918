"""What a body says, be it one object or a list of chunks; and the tables made of such bodies."""

from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from batchspec.files import read_responses, responses_to_parquet
from batchspec.records import Usage, metrics_document, stream_record
from batchspec.report import Aggregate, report_document, report_markdown, throughput_document
from batchspec.report.bodies import body_facts
from batchspec.report.layout import ABSENT
from batchspec.request import ChatPrompt, Endpoint, Request, TextPrompt
from batchspec.streaming import ChunkShape

from .records import emitted_by, recorder_of, served

RECORDER = recorder_of([(3, 2), (3, 0)], num_spec_tokens=3)
NUM_TOKENS = emitted_by(RECORDER)


def streamed(*, endpoint: Endpoint = Endpoint.COMPLETIONS, with_usage: bool = True, n: int = 1) -> dict[str, Any]:
    """Return a streamed record of two pieces for each choice, told in turn."""
    prompt = ChatPrompt(messages=({"role": "user", "content": "x"},))
    request = Request(
        index=0,
        line=1,
        custom_id="s",
        endpoint=endpoint,
        prompts=(prompt if endpoint is Endpoint.CHAT else TextPrompt(text="x"),),
        stream=True,
    )
    shape = ChunkShape(request, model_name="m", created=0)
    none: dict[str, Any] = {"logprobs": None, "token_ids": None, "stop_reason": None, "prompt_token_ids": None}
    chunks = [shape.role(index, prompt_token_ids=None) for index in range(n) if endpoint is Endpoint.CHAT]
    chunks += [shape.delta(index, text=f"one {index}", finish_reason=None, **none) for index in range(n)]
    reasons = ["length", "stop"]
    for index in reversed(range(n)):
        chunks.append(shape.delta(index, text=", two", finish_reason=reasons[index], **none))
    if with_usage:
        metrics = metrics_document(
            timing=None,
            speculative_decoding=RECORDER.speculative_decoding(),
            batchspec=RECORDER.emitted(completion_tokens=NUM_TOKENS),
        )
        chunks.append(shape.usage(Usage(prompt_tokens=5, completion_tokens=NUM_TOKENS), metrics if n == 1 else None))
    return stream_record(request, chunks=chunks)


@pytest.mark.parametrize("endpoint", Endpoint)
def test_a_stream_with_usage_says_what_a_body_says(endpoint: Endpoint) -> None:
    facts = body_facts(streamed(endpoint=endpoint)["response"]["body"])
    assert (facts.text, facts.finish_reason, list(facts.finish_reasons)) == ("one 0, two", "length", ["length"])
    assert facts.usage is not None
    assert facts.usage["completion_tokens"] == NUM_TOKENS
    assert facts.speculative_decoding == RECORDER.speculative_decoding()
    assert facts.batchspec is not None


@pytest.mark.parametrize("endpoint", Endpoint)
def test_the_first_choice_is_told_from_the_others(endpoint: Endpoint) -> None:
    facts = body_facts(streamed(endpoint=endpoint, n=2)["response"]["body"])
    assert (facts.text, facts.finish_reason) == ("one 0, two", "length")
    assert sorted(facts.finish_reasons) == ["length", "stop"]
    assert facts.speculative_decoding is None


def test_a_stream_without_usage_leaves_the_counts_unknown() -> None:
    facts = body_facts(streamed(with_usage=False)["response"]["body"])
    assert (facts.usage, facts.speculative_decoding, facts.batchspec) == (None, None, None)
    assert facts.text == "one 0, two"


@pytest.mark.parametrize("body", [[], {}, {"choices": []}, {"error": {"message": "no"}}])
def test_a_body_without_choices_says_nothing(body: Any) -> None:
    facts = body_facts(body)
    assert (facts.text or None, facts.finish_reason, list(facts.finish_reasons), facts.usage) == (None, None, [], None)


def test_the_report_counts_streams_and_says_whose_tokens_it_does_not_know() -> None:
    aggregate = Aggregate()
    for record in (streamed(), streamed(with_usage=False), streamed(with_usage=False), served(RECORDER)):
        aggregate.add(record)
    document = aggregate.document()
    assert document["requests"]["num_served"] == 4
    assert document["requests"]["finish_reasons"] == {"length": 3, "stop": 1}
    assert document["tokens"]["completion_tokens"] == 2 * NUM_TOKENS
    assert document["acceptance"]["pooled"]["num_requests"] == 2
    assert document["acceptance"]["num_inconsistent_requests"] == 0
    assert aggregate.sums().num_spec_steps == 2 * RECORDER.num_spec_steps
    throughput = throughput_document(num_prompt_tokens=None, num_output_tokens=None, elapsed_seconds=2.0)
    text = report_markdown(report_document(document, reconciliation=None, totals=None, run={}, throughput=throughput))
    assert "not known for 2 streamed without usage" in text
    assert f"Throughput: prompt {ABSENT} tok/s, output {ABSENT} tok/s, elapsed 2.0 s" in text


def test_nothing_is_said_where_every_token_is_known() -> None:
    aggregate = Aggregate()
    aggregate.add(streamed())
    text = report_markdown(
        report_document(aggregate.document(), reconciliation=None, totals=None, run={}, throughput=None)
    )
    assert "without usage" not in text


def test_streams_and_sampling_survive_parquet(tmp_path: Path) -> None:
    records = [streamed(), streamed(endpoint=Endpoint.CHAT, with_usage=False), served(None)]
    jsonl, parquet = tmp_path / "responses.jsonl", tmp_path / "responses.parquet"
    jsonl.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    responses_to_parquet(jsonl_path=jsonl, parquet_path=parquet)
    assert [orjson.dumps(record) for record in read_responses(parquet)] == [orjson.dumps(record) for record in records]
    told, untold, _ = pq.read_table(parquet).to_pylist()
    assert (told["text"], told["finish_reason"]) == ("one 0, two", "length")
    assert (told["prompt_tokens"], told["completion_tokens"]) == (5, NUM_TOKENS)
    assert (untold["text"], untold["prompt_tokens"], untold["completion_tokens"]) == ("one 0, two", None, None)
    assert orjson.loads(told["sampling"])["temperature"] == 1.0
