"""Tools, variables and open endings of chats reach the template, or the request is refused."""

from typing import Any

import pytest
from tokenizers.processors import TemplateProcessing

from batchspec.errors import RequestError
from batchspec.model.template import template_variables
from batchspec.model.tokenizer import Tokenizer
from batchspec.request import ChatPrompt, TextPrompt

from .saved import byte_tokenizer

PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }};{% endfor %}{% if add_generation_prompt %}[a]{% endif %}"
TOOLS = (
    "{{ bos_token }}{% if tools %}{{ tools | tojson }}{% endif %}"
    "{% if thinking is defined and thinking %}(think){% endif %}" + PLAIN
)
CALLS = "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments.city }}{% endfor %}{% endfor %}"
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {}}}
HI = {"role": "user", "content": "hi"}


def rendered(template: str | dict[str, str], *messages: dict[str, Any], **changes: Any) -> str:
    tokenizer = Tokenizer(byte_tokenizer(chat_template=template))
    ids = tokenizer.encode(ChatPrompt(messages=messages or (HI,), **changes))
    return tokenizer.decode(ids, prompt_ids=[], skip_special_tokens=False)


def test_tools_are_rendered() -> None:
    assert rendered(TOOLS, tools=(TOOL,)).startswith('<s>[{"type": "function", "function": {"name": "look"')
    assert rendered(TOOLS) == "<s>[user]hi;[a]"


def test_template_for_tools_is_taken_where_there_is_one() -> None:
    both = {"default": PLAIN, "tool_use": "{{ tools | length }} tools"}
    assert rendered(both, tools=(TOOL,)) == "1 tools"
    assert rendered(both) == "[user]hi;[a]"


def test_tools_that_the_template_would_not_show() -> None:
    with pytest.raises(
        RequestError, match=r"does not render tools.*it takes add_generation_prompt, messages:"
    ) as caught:
        rendered(PLAIN, tools=(TOOL,))
    assert caught.value.param == "tools"


def test_variables_reach_the_template() -> None:
    assert rendered(TOOLS, template_kwargs={"thinking": True}) == "<s>(think)[user]hi;[a]"
    assert rendered(TOOLS, template_kwargs={"bos_token": "*"}) == "*[user]hi;[a]"


@pytest.mark.parametrize(
    ("template", "name", "sentence"),
    [
        (TOOLS, "thinkin", 'no variable "thinkin"; chat_template_kwargs may give thinking$'),
        (PLAIN, "thinking", 'no variable "thinking"; chat_template_kwargs may give none$'),
        (TOOLS, "tokenize", 'no variable "tokenize"'),
        (TOOLS, "add_generation_prompt", '"add_generation_prompt" is a field of the request'),
    ],
)
def test_variables_that_the_template_would_ignore(template: str, name: str, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence) as caught:
        rendered(template, template_kwargs={name: False})
    assert caught.value.param == "chat_template_kwargs"


def test_variables_of_a_template() -> None:
    template = (
        "{% if not a is defined %}{% set a = 1 %}{% endif %}{% for m in messages %}{{ m }}{{ loop.index }}{% break %}"
        "{% endfor %}{% generation %}{{ b }}{% set ns = namespace(x=range(2)) %}{{ ns.x }}{% endgeneration %}"
        "{{ raise_exception('c') }}{{ strftime_now('d') }}{% macro f(e) %}{{ e }}{{ g }}{% endmacro %}"
    )
    assert template_variables(template) == {"messages", "a", "b", "g"}


def test_opening_of_an_answer_can_be_left_out() -> None:
    assert rendered(PLAIN, add_generation_prompt=False) == "[user]hi;"


def test_final_message_is_left_open() -> None:
    answer = {"role": "assistant", "content": "Once upon"}
    text = rendered(PLAIN, HI, answer, add_generation_prompt=False, continue_final_message=True)
    assert text == "[user]hi;[assistant]Once upon"


@pytest.mark.parametrize(
    ("template", "changes"),
    [
        (PLAIN, {"add_generation_prompt": True}),
        ("{% for m in messages %}{{ m.role }}{% endfor %}", {"add_generation_prompt": False}),
    ],
)
def test_final_message_that_cannot_be_continued(template: str, changes: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=r"the final message cannot be continued .*begin a message of its own$") as e:
        rendered(template, continue_final_message=True, **changes)
    assert e.value.param == "continue_final_message"


def test_special_tokens_are_added_only_when_asked_for() -> None:
    inner = byte_tokenizer(chat_template=PLAIN)
    inner.backend_tokenizer.post_processor = _with_beginning(inner.bos_token_id)
    tokenizer = Tokenizer(inner)
    bare = ChatPrompt(messages=(HI,))
    assert tokenizer.encode(ChatPrompt(messages=(HI,), add_special_tokens=True)) == [256, *tokenizer.encode(bare)]
    assert tokenizer.encode(TextPrompt(text="a")) == [256, *tokenizer.encode_plain("a")]
    assert tokenizer.encode(TextPrompt(text="a", add_special_tokens=False)) == tokenizer.encode_plain("a")


def _with_beginning(token_id: int) -> TemplateProcessing:
    return TemplateProcessing(single="<s> $A", special_tokens=[("<s>", token_id)])


def _call(arguments: str) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def test_arguments_of_tool_calls_are_objects_to_the_template() -> None:
    message = _call('{"city": "Turin"}')
    assert rendered(CALLS, HI, message) == "Turin"
    assert message["tool_calls"][0]["function"]["arguments"] == '{"city": "Turin"}'
    assert rendered(CALLS, HI, _call("")) == ""


def test_arguments_of_tool_calls_that_are_not_json() -> None:
    with pytest.raises(RequestError, match=r'the arguments of the tool call "look" are not JSON') as caught:
        rendered(CALLS, HI, _call("{city"))
    assert caught.value.param == "messages"
