"""Batch lines and bare rows that are good."""

from typing import Any

import pytest

from batchspec.errors import RequestError
from batchspec.files import Columns, RowDefaults, derive_seed
from batchspec.request import ChatPrompt, Endpoint, Request, SamplingParams, TextPrompt, TokenPrompt

from .feeding import batch_line, chat_line, parse, user


def test_a_batch_line_is_read_field_by_field() -> None:
    row = chat_line(
        "c-1",
        model="m",
        messages=[{"role": "system", "content": "Be brief."}, user([{"type": "text", "text": t} for t in "ab"])],
        max_completion_tokens=7,
        temperature=0,
        top_p=0.5,
        top_k=-1,
        min_p=0.25,
        seed=-3,
        n=2,
        stop_token_ids=[0, 5],
        ignore_eos=True,
        return_token_ids=True,
    )
    assert parse(row | {"category": "qa"}) == Request(
        index=0,
        line=1,
        custom_id="c-1",
        endpoint=Endpoint.CHAT,
        prompts=(ChatPrompt(messages=({"role": "system", "content": "Be brief."}, user("a\nb"))),),
        sampling=SamplingParams(
            max_tokens=7,
            temperature=0.0,
            top_p=0.5,
            top_k=0,
            min_p=0.25,
            seed=-3,
            n=2,
            stop_token_ids=(0, 5),
            ignore_eos=True,
            return_token_ids=True,
        ),
        category="qa",
        model="m",
    )


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Hi", (TextPrompt(text="Hi"),)),
        ("", (TextPrompt(text=""),)),
        (["a", ""], (TextPrompt(text="a"), TextPrompt(text=""))),
        ([1, 0], (TokenPrompt(token_ids=(1, 0)),)),
        ([[1], [2, 3]], (TokenPrompt(token_ids=(1,)), TokenPrompt(token_ids=(2, 3)))),
    ],
)
def test_the_forms_of_a_prompt(prompt: Any, expected: tuple[Any, ...]) -> None:
    for row in (batch_line(prompt=prompt), {"prompt": prompt}):
        request = parse(row)
        assert (request.endpoint, request.prompts) == (Endpoint.COMPLETIONS, expected)


def test_turns_become_a_chat_and_the_questions_that_follow() -> None:
    request = parse({"question_id": 81, "category": "writing", "turns": ["one", "two", "three"], "reference": [1]})
    assert request.custom_id == "81"
    assert (request.endpoint, request.category) == (Endpoint.CHAT, "writing")
    assert request.prompts == (ChatPrompt(messages=(user("one"),)),)
    assert request.turns == ("two", "three")
    assert parse({"turns": ["one"], "n": 2}).turns == ()


def test_bare_messages_are_a_chat() -> None:
    request = parse({"messages": [user("Hi") | {"name": "Ana"}], "prompt": None})
    assert request.endpoint is Endpoint.CHAT
    assert request.prompts == (ChatPrompt(messages=({"role": "user", "content": "Hi", "name": "Ana"},)),)


@pytest.mark.parametrize(
    ("row", "columns", "custom_id"),
    [
        ({"custom_id": "a", "id": "b", "question_id": 3}, Columns(), "a"),
        ({"custom_id": None, "id": "b", "question_id": 3}, Columns(), "b"),
        ({"question_id": 3}, Columns(), "3"),
        ({"question_id": 3.0}, Columns(), "3"),
        ({}, Columns(), "line-1"),
        ({"id": "b", "key": 0}, Columns(id="key"), "0"),
    ],
)
def test_where_an_id_comes_from(row: dict[str, Any], columns: Columns, custom_id: str) -> None:
    assert parse(row | {"prompt": "Hi"}, columns=columns).custom_id == custom_id


def test_a_named_prompt_column_wins_over_everything() -> None:
    row = {"question": "Why?", "prompt": "not this", "body": "nor this", "url": "http://x"}
    assert parse(row, columns=Columns(prompt="question")).prompts == (TextPrompt(text="Why?"),)
    chat = parse({"conversation": [user("Hi")]}, columns=Columns(prompt="conversation"))
    assert (chat.endpoint, chat.prompts) == (Endpoint.CHAT, (ChatPrompt(messages=(user("Hi"),)),))


def test_named_columns_are_not_taken_for_parameters() -> None:
    row = {"stop": "Stop what?", "seed": "s-1"}
    request = parse(row, columns=Columns(prompt="stop", id="seed"))
    assert (request.prompts, request.custom_id) == ((TextPrompt(text="Stop what?"),), "s-1")


def test_a_batch_line_may_stand_among_rows_with_a_named_column() -> None:
    assert parse(batch_line("x"), columns=Columns(prompt="question")).custom_id == "x"


def test_bare_rows_carry_sampling_fields_and_data() -> None:
    row = {"prompt": "Hi", "max_tokens": 3, "temperature": 1, "seed": 7, "answer": {"x": 1}, "model": ["data"]}
    request = parse(row)
    assert (request.sampling.max_tokens, request.sampling.temperature, request.sampling.seed) == (3, 1.0, 7)
    assert request.model is None
    assert parse({"prompt": "Hi", "model": "m"}).model == "m"


def test_max_tokens_falls_back_to_the_run_and_then_to_the_endpoint() -> None:
    run = RowDefaults(max_tokens=5)
    assert parse(batch_line()).sampling.max_tokens == 16
    assert parse(chat_line()).sampling.max_tokens is None
    assert parse(batch_line(), defaults=run).sampling.max_tokens == 5
    assert parse(chat_line(), defaults=run).sampling.max_tokens == 5
    assert parse(batch_line(max_tokens=9), defaults=run).sampling.max_tokens == 9
    assert parse(chat_line(max_tokens=9, max_completion_tokens=9)).sampling.max_tokens == 9


def test_defaults_apply_where_a_row_is_silent_or_null() -> None:
    defaults = RowDefaults(temperature=0.8, top_p=0.9, top_k=4, min_p=0.1, ignore_eos=True)
    silent = parse(batch_line(temperature=None, ignore_eos=None), defaults=defaults).sampling
    assert (silent.temperature, silent.top_p, silent.top_k, silent.min_p, silent.ignore_eos) == (0.8, 0.9, 4, 0.1, True)
    zeros = batch_line(temperature=0, top_k=0, min_p=0, ignore_eos=False, seed=0)
    said = parse(zeros, defaults=defaults).sampling
    assert (said.temperature, said.top_k, said.min_p, said.ignore_eos, said.seed) == (0.0, 0, 0.0, False, 0)


def test_a_derived_seed_depends_on_run_seed_and_id_alone() -> None:
    def seed(custom_id: str, run_seed: int) -> int:
        return parse(batch_line(custom_id), defaults=RowDefaults(run_seed=run_seed)).sampling.seed

    # printf '0:a' | b2sum -l 64, shifted right by one bit
    assert seed("a", 0) == derive_seed(run_seed=0, custom_id="a") == 6841154156042874738
    assert len({seed("a", 0), seed("b", 0), seed("a", 1)}) == 3
    assert all(0 <= derive_seed(run_seed=0, custom_id=str(i)) < 2**63 for i in range(200))


OFF: dict[str, Any] = {
    "stream": False,
    "presence_penalty": 0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "logprobs": False,
    "echo": False,
    "best_of": 1,
    "logit_bias": {},
    "stop": [],
    "min_tokens": 0,
    "tools": [],
    "tool_choice": "none",
    "response_format": {"type": "text"},
    "user": "u",
    "metadata": {"a": "b"},
    "store": True,
    "service_tier": "auto",
    "anything": None,
}


def test_values_that_ask_for_nothing_are_accepted() -> None:
    assert parse(batch_line(**OFF)) == parse(batch_line())
    nulls: dict[str, Any] = dict.fromkeys(OFF)
    assert parse(batch_line(**nulls)) == parse(batch_line())
    assert parse({"prompt": "Hi"} | OFF) == parse({"prompt": "Hi"})


def test_a_row_error_carries_what_an_error_record_needs() -> None:
    with pytest.raises(RequestError) as caught:
        parse(batch_line(temperature=3.5))
    error = caught.value
    assert (error.param, error.code, error.status_code) == ("temperature", "invalid_value", 400)
    assert str(error) == error.message == '"temperature" is the number 3.5: give a number from 0 to 2'
