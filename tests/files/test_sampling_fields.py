"""What every sampling parameter becomes, and every way it is refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.request import SamplingParams

from .feeding import batch_line, chat_line, error_of, parse

BOTH: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"min_tokens": 3, "max_tokens": 3}, {"min_tokens": 3, "max_tokens": 3}),
    ({"min_tokens": 4.0}, {"min_tokens": 4}),
    ({"min_tokens": 0, "max_tokens": 1}, {"max_tokens": 1}),
    ({"stop": "\n"}, {"stop": ("\n",)}),
    ({"stop": ["b", "a", "b", " "]}, {"stop": ("b", "a", " ")}),
    ({"stop": [str(i) for i in range(40)]}, {"stop": tuple(str(i) for i in range(40))}),
    ({"stop": []}, {}),
    ({"include_stop_str_in_output": True}, {"include_stop_str_in_output": True}),
    ({"skip_special_tokens": False}, {"skip_special_tokens": False}),
    ({"skip_special_tokens": True, "spaces_between_special_tokens": True}, {}),
    ({"presence_penalty": -2}, {"presence_penalty": -2.0}),
    ({"frequency_penalty": 2.0}, {"frequency_penalty": 2.0}),
    ({"repetition_penalty": 0.01}, {"repetition_penalty": 0.01}),
    ({"repetition_penalty": 100}, {"repetition_penalty": 100.0}),
    ({"logit_bias": {"10": -100, "9": 0.5, "007": 100}}, {"logit_bias": ((7, 100.0), (9, 0.5), (10, -100.0))}),
    ({"logit_bias": {}}, {}),
    ({"bad_words": ["b", "a", "b"]}, {"bad_words": ("b", "a")}),
    ({"bad_words": []}, {}),
    ({"allowed_token_ids": [5, 3, 5]}, {"allowed_token_ids": (5, 3)}),
    ({"allowed_token_ids": []}, {}),
    ({"prompt_logprobs": 0}, {"prompt_logprobs": 0}),
    ({"prompt_logprobs": 20.0, "stream": False}, {"prompt_logprobs": 20}),
    ({"logprobs": False}, {}),
    ({"top_k": -1}, {}),
    ({"seed": 5.0, "n": 2.0}, {"seed": 5, "n": 2}),
]


@pytest.mark.parametrize(("body", "changed"), BOTH)
def test_what_a_parameter_becomes(body: dict[str, Any], changed: dict[str, Any]) -> None:
    for row in (batch_line, chat_line):
        assert parse(row(**body)).sampling == replace(parse(row()).sampling, **changed)
    assert parse({"prompt": "Hi"} | body).sampling == replace(parse({"prompt": "Hi"}).sampling, **changed)


@pytest.mark.parametrize("body", [body for body, _ in BOTH])
def test_null_is_not_given(body: dict[str, Any]) -> None:
    nulls: dict[str, Any] = dict.fromkeys(body)
    assert parse(batch_line(**nulls)) == parse(batch_line())
    assert parse(chat_line(**nulls)) == parse(chat_line())


@pytest.mark.parametrize(
    ("body", "logprobs"),
    [
        ({"logprobs": True}, 0),
        ({"logprobs": True, "top_logprobs": None}, 0),
        ({"logprobs": True, "top_logprobs": 0}, 0),
        ({"logprobs": True, "top_logprobs": 20}, 20),
        ({"logprobs": False, "top_logprobs": 0}, None),
        ({"top_logprobs": 0}, None),
    ],
)
def test_log_probabilities_of_a_chat(body: dict[str, Any], logprobs: int | None) -> None:
    assert parse(chat_line(**body)).sampling.logprobs == logprobs
    assert parse({"turns": ["Hi"]} | body).sampling.logprobs == logprobs


@pytest.mark.parametrize(("value", "logprobs"), [(0, 0), (20, 20), (5.0, 5), (False, None)])
def test_log_probabilities_of_a_completion(value: Any, logprobs: int | None) -> None:
    assert parse(batch_line(logprobs=value, top_logprobs=0)).sampling.logprobs == logprobs
    assert parse({"prompt": "Hi", "logprobs": value}).sampling.logprobs == logprobs


ANY_ENDPOINT: list[tuple[dict[str, Any], str, str]] = [
    ({"min_tokens": -1}, "min_tokens", "an integer of at least 0"),
    ({"min_tokens": "2"}, "min_tokens", "an integer of at least 0"),
    ({"min_tokens": 6, "max_tokens": 5}, "min_tokens", '"min_tokens" is 6 while "max_tokens" is 5'),
    ({"stop": ""}, "stop", "an empty string"),
    ({"stop": ["a", ""]}, "stop[1]", "an empty string"),
    ({"stop": [1]}, "stop[0]", "the number 1"),
    ({"stop": 1}, "stop", "a string or an array of strings"),
    ({"include_stop_str_in_output": 1}, "include_stop_str_in_output", "true or false"),
    ({"skip_special_tokens": "no"}, "skip_special_tokens", "true or false"),
    ({"presence_penalty": 2.1}, "presence_penalty", "a number from -2 to 2"),
    ({"frequency_penalty": -2.1}, "frequency_penalty", "a number from -2 to 2"),
    ({"frequency_penalty": True}, "frequency_penalty", "a number from -2 to 2"),
    ({"repetition_penalty": 0}, "repetition_penalty", "a number above 0 and up to 100"),
    ({"repetition_penalty": 101}, "repetition_penalty", "a number above 0 and up to 100"),
    ({"logit_bias": []}, "logit_bias", "give an object"),
    ({"logit_bias": {"123": 101}}, 'logit_bias["123"]', "the number 101: give a number from -100 to 100"),
    ({"logit_bias": {"123": True}}, 'logit_bias["123"]', "a number from -100 to 100"),
    ({"logit_bias": {"123": None}}, 'logit_bias["123"]', "null: give a number"),
    ({"logit_bias": {"7": 1, "07": 1}}, 'logit_bias["07"]', '"7" and "07"'),
    *(
        ({"logit_bias": {key: 1}}, f'logit_bias["{key}"]', "a token id in digits")
        for key in ("", " 7", "7 ", "-1", "+1", "1.0", "1_0", "\u0667", "²", str(2**31), "9" * 20)
    ),
    ({"bad_words": "a"}, "bad_words", "an array of strings"),
    ({"bad_words": ["a", ""]}, "bad_words[1]", "an empty string"),
    ({"bad_words": [["a"]]}, "bad_words[0]", "a string"),
    ({"allowed_token_ids": 5}, "allowed_token_ids", "an array of token ids"),
    ({"allowed_token_ids": [-1]}, "allowed_token_ids[0]", "a token id from 0"),
    ({"allowed_token_ids": [True]}, "allowed_token_ids[0]", "a token id"),
    ({"prompt_logprobs": 21}, "prompt_logprobs", "an integer from 0 to 20"),
    ({"prompt_logprobs": -1}, "prompt_logprobs", "an integer from 0 to 20"),
    ({"prompt_logprobs": True}, "prompt_logprobs", "an integer from 0 to 20"),
    ({"prompt_logprobs": 0, "stream": True}, "prompt_logprobs", "chunks cannot carry them"),
    ({"logprobs": "5"}, "logprobs", 'the string "5"'),
]


@pytest.mark.parametrize(("body", "param", "words"), ANY_ENDPOINT)
def test_what_is_refused(body: dict[str, Any], param: str, words: str) -> None:
    for row in (batch_line(**body), chat_line(**body), {"prompt": "Hi"} | body):
        error = error_of(row)
        assert error.param == param
        assert words in error.message


@pytest.mark.parametrize(
    ("row", "param", "words"),
    [
        (batch_line(logprobs=True), "logprobs", "an integer from 0 to 20, as completions do"),
        (batch_line(logprobs=21), "logprobs", "an integer from 0 to 20"),
        (batch_line(logprobs=1, top_logprobs=1), "top_logprobs", "belongs to /v1/chat/completions"),
        (batch_line(min_tokens=17), "min_tokens", '"min_tokens" is 17 while "max_tokens" is 16'),
        (chat_line(min_tokens=6, max_completion_tokens=5), "min_tokens", "at most 5"),
        (chat_line(logprobs=0), "logprobs", 'true or false, and the number as "top_logprobs"'),
        (chat_line(logprobs=True, top_logprobs=21), "top_logprobs", "an integer from 0 to 20"),
        (chat_line(top_logprobs=1), "top_logprobs", 'give "logprobs" true'),
        (chat_line(logprobs=False, top_logprobs=1), "top_logprobs", 'give "logprobs" true'),
        ({"prompt": "Hi", "logprobs": True}, "logprobs", "as completions do"),
        ({"turns": ["Hi"], "logprobs": 1}, "logprobs", "true or false"),
    ],
)
def test_what_one_endpoint_refuses(row: dict[str, Any], param: str, words: str) -> None:
    error = error_of(row)
    assert error.param == param
    assert words in error.message


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.floats(-100, 100)))
def test_a_bias_is_taken_over_exactly(bias: dict[int, float]) -> None:
    sampling = parse(batch_line(logit_bias={str(token): value for token, value in bias.items()})).sampling
    assert sampling.logit_bias == tuple(sorted(bias.items()))


@given(st.lists(st.text(min_size=1)), st.lists(st.integers(0, 2**31 - 1), min_size=1))
def test_lists_keep_their_order_and_lose_their_repetitions(texts: list[str], tokens: list[int]) -> None:
    sampling = parse(batch_line(stop=texts, bad_words=texts, allowed_token_ids=tokens)).sampling
    assert sampling.stop == sampling.bad_words == tuple(dict.fromkeys(texts))
    assert sampling.allowed_token_ids == tuple(dict.fromkeys(tokens))


def test_a_silent_row_has_the_parameters_of_silence() -> None:
    sampling = parse(chat_line(seed=0)).sampling
    assert sampling == SamplingParams()
