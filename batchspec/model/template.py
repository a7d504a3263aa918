"""A model's chat template: which variables it reads, and a chat rendered with it."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import Environment, meta, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from batchspec.errors import RequestError
from batchspec.model.watchdog import TooSlow, Watchdog
from batchspec.prompt import ChatPrompt

__all__ = ["GENERATION_EXTENSIONS", "render_chat", "template_variables"]

_GIVEN = {"messages", "tools", "add_generation_prompt", "continue_final_message"}  # fields of ChatPrompt themselves
_LONGEST_REASON = 200
_FUNCTIONS = {"raise_exception", "strftime_now"}  # what transformers defines besides Jinja's own


class _Generation(Extension):
    """The block that transformers allows around the assistant's part; it renders as what it holds."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the block's content."""
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)


GENERATION_EXTENSIONS = ("jinja2.ext.loopcontrols", _Generation)


@lru_cache
def template_variables(source: str) -> frozenset[str]:
    """Return the names that a chat template reads and does not set itself.

    Raises:
        TemplateError: if the template is no Jinja template.
    """
    environment = Environment(extensions=list(GENERATION_EXTENSIONS))
    names = meta.find_undeclared_variables(environment.parse(source))
    return frozenset(names - _FUNCTIONS)


@lru_cache
def _fields_read(source: str) -> frozenset[str]:
    """Return the names that a chat template looks up in anything, be it a message, a call or a function."""
    tree = Environment(extensions=list(GENERATION_EXTENSIONS)).parse(source)
    attributes = {node.attr for node in tree.find_all(nodes.Getattr)}
    return frozenset(attributes | {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)})


def render_chat(tokenizer: Any, prompt: ChatPrompt, *, watchdog: Watchdog) -> str:
    """Return a chat as the text that the model continues.

    Args:
        tokenizer: a ``PreTrainedTokenizerBase`` with a chat template. Of several it takes the one for tools if tools
            are given, else the default one.
        prompt: what was asked.
        watchdog: ends a template that takes too long.

    Raises:
        RequestError: the template refuses the chat, fails at it, or would silently ignore the tools or a variable.
    """
    try:
        source = tokenizer.get_chat_template(tools=list(prompt.tools) or None)
        names = template_variables(source)
        _check_fields(prompt, read=_fields_read(source))
        _check_variables(prompt, names=names, special=frozenset(tokenizer.special_tokens_map))
        messages = [_as_templates_expect(message) for message in prompt.messages]
        with watchdog.watching():
            text: str = tokenizer.apply_chat_template(
                messages,
                tools=[dict(tool) for tool in prompt.tools] or None,
                add_generation_prompt=prompt.add_generation_prompt,
                continue_final_message=prompt.continue_final_message,
                tokenize=False,
                **prompt.template_kwargs,
            )
    except RequestError:
        raise
    except TooSlow as error:
        raise RequestError(
            f"the model's chat template takes more than {watchdog.seconds:g} s to render these messages; shorten them, "
            "or give a model with another template",
            param="messages",
        ) from error
    except Exception as error:  # a template is a program, and may fail in any way
        raise _refusal(prompt, error) from error
    return text


def _refusal(prompt: ChatPrompt, error: Exception) -> RequestError:
    """Return what is said of a chat that was not rendered; ValueErrors are of transformers, not of the template."""
    reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
    if prompt.continue_final_message and isinstance(error, ValueError):
        return RequestError(
            f"the final message cannot be continued with this model's chat template ({reason}); "
            "let the model begin a message of its own",
            param="continue_final_message",
        )
    return RequestError(
        f"the model's chat template refuses these messages ({reason}); change their roles or order", param="messages"
    )


def _check_fields(prompt: ChatPrompt, *, read: frozenset[str]) -> None:
    """Refuse what a template would drop of a message; ``tool_call_id`` only links messages, few templates show it."""
    for number, message in enumerate(prompt.messages):
        for field in ("tool_calls", "name"):
            if message.get(field) and field not in read:
                raise RequestError(
                    f'this model\'s chat template does not render the "{field}" of messages, so the model would not '
                    "see it; leave it away, or say it in the content",
                    param=f"messages[{number}].{field}",
                    code="unsupported_parameter",
                )


def _check_variables(prompt: ChatPrompt, *, names: frozenset[str], special: frozenset[str]) -> None:
    if prompt.tools and "tools" not in names:
        raise RequestError(
            "this model's chat template does not render tools, so the model would not see them; "
            f"it takes {_listed(names - special)}: leave tools away, or describe them in a message",
            param="tools",
            code="unsupported_parameter",
        )
    for name in prompt.template_kwargs:
        if name in _GIVEN:
            raise RequestError(
                f'"{name}" is a field of the request; give it there, not in chat_template_kwargs',
                param="chat_template_kwargs",
            )
        if name not in names:
            raise RequestError(
                f'this model\'s chat template has no variable "{name}"; '
                f"chat_template_kwargs may give {_listed(names - special - _GIVEN)}",
                param="chat_template_kwargs",
            )


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _as_templates_expect(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with a text as content, and the arguments of its tool calls as objects, not as JSON text.

    Raises:
        RequestError: if a call's arguments are not JSON.
    """
    whole = {**message, "content": message.get("content") or ""}
    if not message.get("tool_calls"):
        return whole
    return whole | {"tool_calls": [_with_parsed_call(call) for call in message["tool_calls"]]}


def _with_parsed_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            function["arguments"] = json.loads(arguments or "{}")
        except ValueError as error:
            raise RequestError(
                f'the arguments of the tool call "{function.get("name")}" are not JSON ({error}); give a JSON object',
                param="messages",
            ) from error
    return {**call, "function": function}
