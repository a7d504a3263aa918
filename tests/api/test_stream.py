"""Streams: the chunks of a run's record, but as they come."""

from typing import Any

import pytest

from batchspec import Engine
from batchspec.errors import RequestError
from batchspec.files import Columns, RowDefaults, parse_row
from batchspec.report import Aggregate

from .conftest import MakeEngine, prompt, without_time

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "List the days of the week."}], "max_tokens": 20}
REQUESTS = [
    prompt("p", temperature=0, stream=True, stream_options={"include_usage": True}),
    prompt("n", temperature=0.9, n=2, stream=True),
    {**CHAT, "stream": True, "stream_options": {"include_usage": True}},
    {"turns": ["Say hello.", "Say it again."], "max_tokens": 6, "stream": True},
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_stream_is_the_body_of_the_same_requests_record(engine: Engine, request_: Any) -> None:
    (record,) = engine.run([request_])
    chunks = list(engine.stream(request_))
    assert without_time(chunks) == without_time(record["response"]["body"])
    assert len(chunks) > 2


def test_a_stream_is_told_step_by_step(engine: Engine) -> None:
    chunks = engine.stream(prompt("p", max_tokens=40))
    next(chunks)
    assert engine.progress.num_steps < 5
    assert sum(1 for _ in chunks) > 5


def test_a_request_need_not_ask_to_be_streamed(engine: Engine) -> None:
    asked, unasked = prompt("p", stream=True), prompt("p")
    parsed = parse_row(unasked, index=0, line=1, columns=Columns(), defaults=engine.defaults)
    streams = [without_time(list(engine.stream(each))) for each in (asked, unasked, parsed)]
    assert streams[0] == streams[1] == streams[2]


def test_a_request_that_cannot_be_served_is_an_error(engine: Engine) -> None:
    with pytest.raises(RequestError, match="temperature"):
        engine.stream(prompt("p", temperature=9))
    long = engine.stream(prompt("p", prompt="word " * 4000))
    with pytest.raises(RequestError, match="context"):
        next(long)
    assert len(list(engine.stream(prompt("p")))) > 1


def test_a_stream_that_was_left_is_named_in_the_accounts(make_engine: MakeEngine) -> None:
    engine, aggregate = make_engine(defaults=RowDefaults(force_include_usage=True)), Aggregate()
    left = engine.stream(prompt("p", temperature=0, max_tokens=40))
    for _ in range(9):
        next(left)
    left.close()
    assert list(engine.stream(prompt("p", temperature=0)))[-1]["metrics"]["speculative_decoding"]["num_spec_steps"] > 0
    for record in engine.run([prompt("p", stream=True), prompt("q", n=2)]):
        aggregate.add(record)
    reconciliation = engine.reconcile(aggregate.sums())
    assert reconciliation is not None
    assert reconciliation.is_exact
    assert {"aborted", "live stream"} <= set(reconciliation.rows[0].unreported)
    assert engine.counters.request_success["abort"]._value.get() == 1
    assert aggregate.document()["tokens"]["num_requests_without_usage"] == 0


def test_streams_without_usage_are_set_aside_by_name(engine: Engine) -> None:
    aggregate = Aggregate()
    for record in engine.run([prompt("p", stream=True, temperature=0), prompt("q", temperature=0)]):
        aggregate.add(record)
    document = aggregate.document()
    assert document["tokens"]["num_requests_without_usage"] == 1
    assert document["requests"]["finish_reasons"] == {"length": 2}
    reconciliation = engine.reconcile(aggregate.sums())
    assert reconciliation is not None
    assert reconciliation.is_exact
    assert reconciliation.rows[0].unreported["stream without usage"] > 0
