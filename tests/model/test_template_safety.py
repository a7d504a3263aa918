"""A chat template is a program of the model's maker: it stays in its sandbox, and a request is refused if it fails."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from batchspec.errors import RequestError
from batchspec.model.plain_tokenizer import PlainTokenizer, _compiled
from batchspec.model.tokenizer import Tokenizer
from batchspec.model.watchdog import TooSlow, Watchdog
from batchspec.request import ChatPrompt

from .saved import byte_tokenizer

HI: dict[str, Any] = {"role": "user", "content": "hi"}
Open = Callable[[str], Tokenizer]


@pytest.fixture(params=["our own", "transformers"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return what makes a tokenizer of a template, by either way of rendering."""

    def open_it(template: str) -> Tokenizer:
        whole = byte_tokenizer(chat_template=template)
        if request.param == "transformers":
            return Tokenizer(whole, template_seconds=0.4)
        whole.save_pretrained(tmp_path)
        return Tokenizer(PlainTokenizer(tmp_path), template_seconds=0.4)

    return open_it


def refusal(tokenizer: Tokenizer) -> RequestError:
    with pytest.raises(RequestError) as caught:
        tokenizer.encode(ChatPrompt(messages=(HI,)))
    assert caught.value.param == "messages"
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__.__mro__[1].__subclasses__()",
        "messages.__class__.__base__.__subclasses__()",
        "raise_exception.__globals__['os'].system('true')",
        "messages.append({})",
        "messages[0].update({'role': 'x'})",
        "cycler.__init__.__globals__.os.popen('id').read()",
        "('%s' | format(messages)).__class__.__mro__",
        "lipsum.__globals__",
    ],
)
def test_nothing_leaves_the_sandbox(opened: Open, expression: str) -> None:
    tokenizer, text = opened("{{ " + expression + " }}{% for m in messages %}{{ m.content }}{% endfor %}"), "hi"
    with suppress(RequestError):  # an attribute that the sandbox hides is refused, or undefined and shown as nothing
        text = tokenizer.decode(tokenizer.encode(ChatPrompt(messages=(HI,))), prompt_ids=[])
    assert text == "hi"


def test_our_own_way_is_the_sandbox_of_transformers() -> None:
    assert type(_compiled("x").environment) is ImmutableSandboxedEnvironment


@pytest.mark.parametrize(
    "template",
    [
        "{{ 1 / 0 }}",
        "{{ range(10 ** 9) | list }}",
        "{{ messages[7].content.x }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ '%d' | format('x') }}",
        "{{ [1, 'a'] | sort }}",
        "{{ raise_exception('never\nthis') }}",
    ],
)
def test_a_template_that_fails_refuses_the_request(opened: Open, template: str) -> None:
    assert "the model's chat template refuses these messages (" in refusal(opened(template)).message


def test_a_template_without_end_is_ended(opened: Open) -> None:
    began = time.monotonic()
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{{ messages | length }}"
    assert "takes more than 0.4 s to render" in refusal(opened(endless)).message
    assert time.monotonic() - began < 20


def test_who_is_in_time_is_left_alone() -> None:
    watchdog = Watchdog(0.2)
    for _ in range(3):
        with watchdog.watching():
            pass
    time.sleep(0.5)
    with pytest.raises(TooSlow), watchdog.watching():
        spin()
    time.sleep(0.3)


def spin() -> None:
    while True:
        pass
