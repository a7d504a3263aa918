"""Who is asked for a default: the user, then the model, then OpenAI."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.files import RowDefaults

from .feeding import batch_line, chat_line, parse

OPENAI = RowDefaults(temperature=1.0, top_p=1.0, top_k=0, min_p=0.0, repetition_penalty=1.0)
MODEL: dict[str, Any] = {
    "max_new_tokens": 9,
    "temperature": 0.6,
    "top_p": 0.95,
    "top_k": 20,
    "min_p": 0.05,
    "repetition_penalty": 1.05,
    "do_sample": True,
    "eos_token_id": [1],
}
OF_MODEL = RowDefaults(max_tokens=9, temperature=0.6, top_p=0.95, top_k=20, min_p=0.05, repetition_penalty=1.05)
USER = RowDefaults(max_tokens=0, temperature=0.0, top_p=0.5, top_k=0, min_p=0.0, repetition_penalty=2.0)


def test_each_level_fills_what_the_one_before_left() -> None:
    assert RowDefaults().over({}) == OPENAI
    assert RowDefaults().over(dict.fromkeys(MODEL)) == OPENAI
    assert RowDefaults().over(MODEL) == OF_MODEL
    assert USER.over(MODEL) == USER
    assert RowDefaults(top_k=3).over({"temperature": 0}) == replace(OPENAI, top_k=3, temperature=0)


@given(st.dictionaries(st.sampled_from(sorted(MODEL)), st.none() | st.integers(1, 9)))
def test_what_is_settled_stays(model: dict[str, Any]) -> None:
    settled = RowDefaults(run_seed=4, ignore_eos=True, force_include_usage=True).over(model)
    assert (settled.run_seed, settled.ignore_eos, settled.force_include_usage) == (4, True, True)
    assert settled.over(MODEL | {"max_new_tokens": None}) == settled


@pytest.mark.parametrize("row", [batch_line(), chat_line(), {"prompt": "a"}])
def test_rows_are_read_alike_with_defaults_that_nobody_settled(row: dict[str, Any]) -> None:
    assert parse(row) == parse(row, defaults=OPENAI)


def test_a_row_comes_before_all_defaults() -> None:
    silent = parse(chat_line(seed=0), defaults=OF_MODEL).sampling
    names = ("max_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty")
    assert [getattr(silent, name) for name in names] == [getattr(OF_MODEL, name) for name in names]
    said: dict[str, Any] = {
        "max_tokens": 1,
        "temperature": 0,
        "top_p": 1,
        "top_k": -1,
        "min_p": 0,
        "repetition_penalty": 1,
    }
    spoken = parse(chat_line(**said), defaults=OF_MODEL).sampling
    assert [getattr(spoken, name) for name in names] == [1, 0.0, 1.0, 0, 0.0, 1.0]
    assert parse(chat_line(), defaults=RowDefaults(top_k=-1)).sampling.top_k == 0
