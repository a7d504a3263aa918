"""What prompts become tokens with: special tokens, templates, tools, calls and their results."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.request import ChatPrompt, TextPrompt, TokenPrompt

from .feeding import batch_line, chat_line, error_of, parse, user

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}, "extra": [1]}


def chat_of(row: dict[str, Any]) -> ChatPrompt:
    [prompt] = parse(row).prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ({"add_special_tokens": True}, {"add_special_tokens": True}),
        ({"add_special_tokens": False}, {}),
        ({"chat_template_kwargs": {"enable_thinking": False, "x": None}},) * 2,
        ({"chat_template_kwargs": {"tools": None}}, {}),
        ({"add_generation_prompt": False}, {"add_generation_prompt": False}),
        ({"add_generation_prompt": True, "continue_final_message": False}, {}),
        ({"continue_final_message": True}, {"continue_final_message": True, "add_generation_prompt": False}),
        (
            {"continue_final_message": True, "add_generation_prompt": False},
            {"continue_final_message": True, "add_generation_prompt": False},
        ),
        ({"tools": [TOOL]}, {"tools": (TOOL,)}),
        ({"tools": [TOOL], "tool_choice": "none", "parallel_tool_calls": False}, {"tools": (TOOL,)}),
        ({"tools": [], "tool_choice": "auto"}, {}),
    ],
)
def test_what_a_chat_is_rendered_with(body: dict[str, Any], changed: dict[str, Any]) -> None:
    changed = {{"chat_template_kwargs": "template_kwargs"}.get(name, name): value for name, value in changed.items()}
    expected = ChatPrompt(messages=(user("Hi"),), **changed)
    assert chat_of(chat_line(**body)) == chat_of({"messages": [user("Hi")]} | body) == expected
    nulls: dict[str, Any] = dict.fromkeys(body)
    assert parse(chat_line(**nulls)) == parse(chat_line())


@pytest.mark.parametrize("given", [None, True, False])
def test_special_tokens_of_completions(given: bool | None) -> None:
    texts = tuple(TextPrompt(text=text, add_special_tokens=given is not False) for text in "ab")
    assert parse(batch_line(prompt=["a", "b"], add_special_tokens=given)).prompts == texts
    tokens = batch_line(prompt=[1], add_special_tokens=given)
    if given:
        assert error_of(tokens).param == "add_special_tokens"
    else:
        assert parse(tokens).prompts == (TokenPrompt(token_ids=(1,)),)


RESERVED = (
    "messages tools documents chat_template tokenize add_generation_prompt continue_final_message return_dict "
    "return_tensors padding truncation max_length conversation tokenizer_kwargs return_assistant_tokens_mask"
)
CHAT: list[tuple[dict[str, Any], str, str]] = [
    ({"add_special_tokens": 1}, "add_special_tokens", "true or false"),
    ({"chat_template_kwargs": []}, "chat_template_kwargs", "give an object"),
    *(
        ({"chat_template_kwargs": {name: 0}}, f"chat_template_kwargs.{name}", "is reserved (found 0)")
        for name in RESERVED.split()
    ),
    ({"add_generation_prompt": "no"}, "add_generation_prompt", "true or false"),
    ({"continue_final_message": 1}, "continue_final_message", "true or false"),
    ({"continue_final_message": True, "add_generation_prompt": True}, "continue_final_message", "both true"),
    ({"continue_final_message": True, "messages": [user(" ")]}, "continue_final_message", "a text to continue"),
    ({"tools": {}}, "tools", "an array of tools"),
    ({"tools": ["f"]}, "tools[0]", "give an object, as in"),
    ({"tools": [TOOL, {"type": "custom"}]}, "tools[1].type", 'give "function"'),
    ({"tools": [{"type": "function"}]}, "tools[0].function", "give an object"),
    ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name", "the name of the function"),
    ({"tool_choice": "required", "tools": [TOOL]}, "tool_choice", 'give "none" or give "auto"'),
    ({"tool_choice": {"type": "function"}}, "tool_choice", "not supported yet"),
    ({"echo": True}, "echo", "belongs to /v1/completions (found true)"),
]


@pytest.mark.parametrize(("body", "param", "words"), CHAT)
def test_what_a_chat_refuses(body: dict[str, Any], param: str, words: str) -> None:
    for row in (chat_line(**body), {"messages": [user("Hi")]} | body):
        error = error_of(row)
        assert error.param == param
        assert words in error.message


@pytest.mark.parametrize(
    ("name", "value", "off"),
    [
        ("add_generation_prompt", False, True),
        ("chat_template_kwargs", {"a": 1}, {}),
        ("continue_final_message", True, False),
        ("tools", [TOOL], []),
        ("tool_choice", "required", "auto"),
        ("top_logprobs", 1, 0),
    ],
)
def test_what_a_completion_does_not_have(name: str, value: Any, off: Any) -> None:
    for row in (batch_line(**{name: value}), {"prompt": "Hi", name: value}):
        error = error_of(row)
        assert (error.param, error.code) == (name, "unsupported_parameter")
    assert parse(batch_line(**{name: off})) == parse(batch_line())


def test_a_conversation_is_not_continued_within_a_message() -> None:
    assert error_of({"turns": ["a", "b"], "continue_final_message": True}).param == "continue_final_message"
    assert chat_of({"turns": ["a"], "continue_final_message": True}).continue_final_message
    assert parse({"turns": ["a", "b"], "continue_final_message": False, "n": 1}).turns == ("b",)


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}} | more


def asked(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": list(calls)} | more


def test_calls_and_their_results_go_to_the_template() -> None:
    result = {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": t} for t in "ab"]}
    messages = [
        {"role": "developer", "content": "d"},
        asked(call('{"x": 1}'), content=None),
        result,
        asked(content="e"),
    ]
    assert chat_of(chat_line(messages=messages)).messages == (
        {"role": "developer", "content": "d"},
        {"role": "assistant", "content": None, "tool_calls": [call({"x": 1})]},
        {"role": "tool", "content": "a\nb", "tool_call_id": "c"},
        {"role": "assistant", "content": "e"},
    )


@pytest.mark.parametrize("arguments", [None, "", "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    [message] = chat_of(chat_line(messages=[asked(call(arguments, index=0), content="")])).messages
    assert message == {"role": "assistant", "content": "", "tool_calls": [call({}, index=0)]}


@given(st.dictionaries(st.text(), st.integers(-(2**63), 2**63) | st.text() | st.none() | st.booleans()))
def test_arguments_as_text_and_as_an_object_are_the_same(arguments: dict[str, Any]) -> None:
    text, value = (
        chat_of(chat_line(messages=[asked(call(given))])).messages[0]["tool_calls"][0]["function"]["arguments"]
        for given in (orjson.dumps(arguments).decode(), arguments)
    )
    assert text == value == arguments


CALLS: list[tuple[Any, str, str]] = [
    (asked(), "content", "null: give a string"),
    (asked(tool_calls="f"), "tool_calls", "an array of tool calls"),
    (asked("f"), "tool_calls[0]", "give an object, as in"),
    (asked({}), "tool_calls[0].type", 'give "function"'),
    (asked(call("{}"), call("{}", type="custom")), "tool_calls[1].type", 'give "function"'),
    (asked(call("{}", id=1)), "tool_calls[0].id", "a string"),
    (asked(call("{}", function={})), "tool_calls[0].function.name", "the name of the function"),
    (asked(call("{")), "tool_calls[0].function.arguments", 'the string "{": give an object'),
    (asked(call("[1]")), "tool_calls[0].function.arguments", "the JSON text of one"),
    (asked(call([1])), "tool_calls[0].function.arguments", "the JSON text of one"),
    (user("a") | {"tool_call_id": 1}, "tool_call_id", "a string"),
    (user("a") | {"refusal": "b"}, "refusal", 'give "role", "content"'),
]


@pytest.mark.parametrize(("message", "key", "words"), CALLS)
def test_calls_that_are_refused(message: Any, key: str, words: str) -> None:
    error = error_of(chat_line(messages=[user("Hi"), message]))
    assert error.param == f"messages[1].{key}"
    assert words in error.message


def test_a_message_of_calls_alone_is_not_continued() -> None:
    error = error_of(chat_line(messages=[asked(call("{}"))], continue_final_message=True))
    assert error.param == "continue_final_message"
