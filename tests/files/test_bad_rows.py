"""Every way a row can be wrong: which field is named, with what code, and what remedy ends the sentence."""

from typing import Any

import pytest

from batchspec.files import Columns

from .feeding import batch_line, chat_line, error_of, user

INF = float("inf")


FIELDS = [
    ("max_tokens", 0, "an integer of at least 1"),
    ("max_tokens", -1, "an integer of at least 1"),
    ("max_tokens", "16", 'the string "16": give an integer'),
    ("max_tokens", 1.5, "the number 1.5: give an integer"),
    ("max_tokens", True, "the boolean true: give an integer"),
    ("max_tokens", [], "an empty array: give an integer"),
    ("temperature", -0.1, "a number from 0 to 2"),
    ("temperature", 2.1, "a number from 0 to 2"),
    ("temperature", "0", "a number from 0 to 2"),
    ("temperature", False, "a number from 0 to 2"),
    ("temperature", INF, "the number inf: give a number from 0 to 2"),
    ("temperature", INF - INF, "the number nan: give a number from 0 to 2"),
    ("top_p", 0, "a number above 0 and up to 1"),
    ("top_p", 1.01, "a number above 0 and up to 1"),
    ("top_p", {}, "an empty object: give a number above 0"),
    ("top_k", -2, "an integer from -1"),
    ("top_k", 2**31, "an integer from -1"),
    ("min_p", -0.1, "a number from 0 to 1"),
    ("min_p", 1.1, "a number from 0 to 1"),
    ("seed", 2**63, "an integer from -9223372036854775808"),
    ("seed", 1e30, "an integer from -9223372036854775808"),
    ("seed", INF, "an integer from -9223372036854775808"),
    ("seed", "1", "an integer"),
    ("n", 0, "an integer from 1 to 128"),
    ("n", 129, "an integer from 1 to 128"),
    ("ignore_eos", 1, "the number 1: give true or false"),
    ("return_token_ids", "yes", "true or false"),
    ("stop_token_ids", 5, "an array of token ids"),
    ("stop_token_ids", "5", "an array of token ids"),
]


@pytest.mark.parametrize(("name", "value", "words"), FIELDS)
def test_a_sampling_field_of_wrong_type_or_range(name: str, value: Any, words: str) -> None:
    for row in (batch_line(**{name: value}), chat_line(**{name: value}), {"prompt": "Hi", name: value}):
        error = error_of(row)
        assert error.param == name
        assert f'"{name}" is ' in error.message
        assert words in error.message


SHAPES: list[tuple[dict[str, Any], str, str, str]] = [
    (batch_line() | {"custom_id": None}, "custom_id", "missing_required_parameter", "is null: give a string"),
    (batch_line() | {"custom_id": 5}, "custom_id", "invalid_type", "is the number 5: give a string"),
    (batch_line() | {"custom_id": ""}, "custom_id", "invalid_type", "is an empty string"),
    (batch_line() | {"method": "GET"}, "method", "invalid_method", '"GET": give "POST"'),
    (batch_line() | {"method": None}, "method", "invalid_method", 'null: give "POST"'),
    (batch_line() | {"url": "/v1/embeddings"}, "url", "invalid_url", '"/v1/chat/completions" or "/v1/completions"'),
    (batch_line() | {"url": "/v1/completions/"}, "url", "invalid_url", 'give "/v1/chat/completions" or'),
    (batch_line() | {"url": "http://x/v1/completions"}, "url", "invalid_url", 'give "/v1/chat/completions" or'),
    (batch_line() | {"url": ["/v1/completions"]}, "url", "invalid_url", "the array"),
    (batch_line() | {"url": None}, "url", "invalid_url", "null: give"),
    (batch_line() | {"body": None}, "body", "invalid_type", "null: give an object"),
    (batch_line() | {"body": "{}"}, "body", "invalid_type", 'the string "{}": give an object'),
    (batch_line() | {"body": []}, "body", "invalid_type", "an empty array: give an object"),
    (batch_line() | {"body": {}}, "prompt", "missing_required_parameter", '"prompt" is missing from "body"'),
    (chat_line() | {"body": {}}, "messages", "missing_required_parameter", '"messages" is missing from "body"'),
    (batch_line(prompt="a", messages=[user("b")]), "messages", "invalid_value", "remove it"),
    (chat_line(prompt="a", messages=[user("b")]), "prompt", "invalid_value", "remove it"),
    (batch_line() | {"max_tokens": 5}, "max_tokens", "invalid_value", 'move it into "body"'),
    (batch_line() | {"category": 3}, "category", "invalid_type", "the number 3: give a string"),
    ({"prompt": "a", "category": 3.5}, "category", "invalid_type", "give a string"),
    (batch_line(model=3), "model", "invalid_type", "give a string"),
    (batch_line(max_completion_tokens=3), "max_completion_tokens", "unsupported_parameter", 'give "max_tokens"'),
    (chat_line(max_completion_tokens=3, max_tokens=4), "max_tokens", "invalid_value", "give one of them"),
    ({"prompt": "a", "id": True}, "id", "invalid_type", "the boolean true: give a string or an integer"),
    ({"prompt": "a", "id": 1.5}, "id", "invalid_type", "give a string or an integer"),
    ({"prompt": "a", "id": 1e23}, "id", "invalid_type", "give a string or an integer"),
    ({"prompt": "a", "messages": [user("b")]}, "messages", "invalid_value", "--prompt-column"),
    ({"text": "a", "x": 1}, "prompt", "missing_required_parameter", '(it has "text", "x"): add it'),
    ({}, "prompt", "missing_required_parameter", "(it has nothing)"),
    ({"turns": ["a", "b"], "n": 2}, "n", "invalid_value", "the number 2: give 1"),
    ({"turns": []}, "turns", "invalid_value", "an empty array: give an array of strings"),
    ({"turns": "a"}, "turns", "invalid_type", "give an array of strings"),
    ({"turns": ["a", 2]}, "turns[1]", "invalid_type", "the number 2: give a string"),
]


@pytest.mark.parametrize(("row", "param", "code", "words"), SHAPES)
def test_a_row_of_wrong_shape(row: dict[str, Any], param: str, code: str, words: str) -> None:
    error = error_of(row)
    assert (error.param, error.code) == (param, code)
    assert words in error.message


PROMPTS: list[tuple[Any, str]] = [
    ([], "prompt"),
    ({}, "prompt"),
    (5, "prompt"),
    (True, "prompt"),
    ([[]], "prompt[0]"),
    ([[1], []], "prompt[1]"),
    ([[1], ["a"]], "prompt[1][0]"),
    ([[1, True]], "prompt[0][1]"),
    (["a", 1], "prompt[1]"),
    (["a", None], "prompt[1]"),
    ([None], "prompt[0]"),
    ([True], "prompt[0]"),
    ([1.0], "prompt[0]"),
    ([1, "a"], "prompt[1]"),
    ([1, True], "prompt[1]"),
    ([1, 2.0], "prompt[1]"),
    ([1, -1], "prompt[1]"),
    ([2**31], "prompt[0]"),
]


@pytest.mark.parametrize(("prompt", "param"), PROMPTS)
def test_a_prompt_of_no_known_form(prompt: Any, param: str) -> None:
    assert error_of(batch_line(prompt=prompt)).param == param
    assert error_of({"prompt": prompt}).param == param


IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
MESSAGES: list[tuple[Any, str, str]] = [
    ([], "messages", "an empty array"),
    ("Hi", "messages", "give an array of messages"),
    ({"role": "user"}, "messages", "give an array of messages"),
    (["Hi"], "messages[0]", "give an object"),
    ([user("a"), {}], "messages[1].role", "give a role"),
    ([{"role": 1, "content": "a"}], "messages[0].role", "give a role"),
    ([{"role": "user"}], "messages[0].content", "null: give a string"),
    ([user(None)], "messages[0].content", "null: give a string"),
    ([user(5)], "messages[0].content", "give a string or an array of text parts"),
    ([user([])], "messages[0].content", "give a string or an array of text parts"),
    ([user(["a"])], "messages[0].content[0]", "give a text part"),
    ([user([{"type": "text"}])], "messages[0].content[0].text", "give a string"),
    (
        [user([{"type": "text", "text": "a"}, IMAGE])],
        "messages[0].content[1].type",
        '"image_url", which is not supported',
    ),
    ([user("a") | {"reasoning_content": "b"}], "messages[0].reasoning_content", "not supported yet"),
    ([user("a") | {"name": 3}], "messages[0].name", "give a string"),
]


@pytest.mark.parametrize(("messages", "param", "words"), MESSAGES)
def test_messages_that_cannot_be_rendered(messages: Any, param: str, words: str) -> None:
    for row in (chat_line(messages=messages), {"messages": messages}):
        error = error_of(row)
        assert error.param == param
        assert words in error.message


REFUSED: dict[str, Any] = {
    "audio": {},
    "best_of": 2,
    "chat_template": "{{ messages }}",
    "detokenize": False,
    "documents": [{}],
    "functions": [{}],
    "guided_decoding_backend": "xgrammar",
    "length_penalty": 0.5,
    "moderation": {},
    "parallel_tool_calls": "yes",
    "reasoning_effort": "high",
    "spaces_between_special_tokens": False,
    "suffix": "end",
    "tool_choice": "required",
    "use_beam_search": True,
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_parameter_that_is_not_honoured_is_refused_by_name(name: str) -> None:
    for row in (batch_line(**{name: REFUSED[name]}), {"prompt": "Hi", name: REFUSED[name]}):
        error = error_of(row)
        assert (error.param, error.code) == (name, "unsupported_parameter")
        assert error.message.startswith(f'"{name}" is not supported yet (found ')
        assert "remove it" in error.message


@pytest.mark.parametrize(
    ("name", "value"), [("echo", 0), ("presence_penalty", False), ("stream", 0), ("best_of", True)]
)
def test_zero_is_not_false(name: str, value: Any) -> None:
    assert error_of(batch_line(**{name: value})).param == name


def test_an_unknown_field_of_a_body_is_refused_and_a_near_name_suggested() -> None:
    error = error_of(batch_line(max_token=5))
    assert (error.param, error.code) == ("max_token", "unsupported_parameter")
    assert error.message == '"max_token" is not supported yet (found 5): did you mean "max_tokens"?'
    assert error_of(batch_line(turns=["a"])).param == "turns"


def test_named_columns_that_are_missing() -> None:
    error = error_of({"prompt": "a"}, columns=Columns(prompt="question"))
    assert (error.param, error.code) == ("question", "missing_required_parameter")
    assert error_of({"prompt": "a", "id": 1}, columns=Columns(id="key")).param == "key"
    assert error_of({"q": 5}, columns=Columns(prompt="q")).message.startswith('"q" is the number 5')


def test_a_message_stays_short_whatever_the_value() -> None:
    assert len(error_of(batch_line(temperature="x" * 10_000)).message) < 200
    assert len(error_of({f"column-{i}": i for i in range(1000)}).message) < 400
