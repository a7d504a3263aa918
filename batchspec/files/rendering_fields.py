"""How prompts become tokens: what the tokenizer adds, and what the chat template is told."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.fields import flag, object_, wrong
from batchspec.files.functions import parse_function
from batchspec.files.wording import shown
from batchspec.request import ChatPrompt, Prompt, TextPrompt

__all__ = ["apply_rendering"]

# What transformers' apply_chat_template takes for itself: as variables of the template they would change the call.
_RESERVED = frozenset(
    {
        "add_generation_prompt",
        "chat_template",
        "continue_final_message",
        "conversation",
        "documents",
        "max_length",
        "messages",
        "padding",
        "return_assistant_tokens_mask",
        "return_dict",
        "return_tensors",
        "sanitize_control_tokens",
        "tokenize",
        "tokenizer_kwargs",
        "tools",
        "truncation",
    }
)


def apply_rendering(prompts: tuple[Prompt, ...], fields: Mapping[str, Any]) -> tuple[Prompt, ...]:
    """Return the prompts with the rendering that the fields ask for.

    Raises:
        RequestError: a field is malformed, or asks for what cannot be done with these prompts.
    """
    is_special = flag(fields, "add_special_tokens")
    return tuple(_apply(prompt, fields, is_special=is_special) for prompt in prompts)


def _apply(prompt: Prompt, fields: Mapping[str, Any], *, is_special: bool | None) -> Prompt:
    if isinstance(prompt, ChatPrompt):
        return replace(_apply_chat(prompt, fields), add_special_tokens=is_special or False)
    if isinstance(prompt, TextPrompt):
        return prompt if is_special is None else replace(prompt, add_special_tokens=is_special)
    if is_special:
        raise wrong("add_special_tokens", is_special, "false, as nothing is added to a prompt of token ids")
    return prompt


def _apply_chat(chat: ChatPrompt, fields: Mapping[str, Any]) -> ChatPrompt:
    """Return the chat as its template is to see it; a message that is continued gets no opening behind it."""
    continues = flag(fields, "continue_final_message") or False
    opens = flag(fields, "add_generation_prompt")
    if continues and opens:
        raise RequestError(
            '"continue_final_message" and "add_generation_prompt" are both true: set one of them to false',
            param="continue_final_message",
        )
    last = chat.messages[-1]
    if continues and not (last["content"] or "").strip():
        raise RequestError(
            f'"continue_final_message" is true, but the last message is {shown(last)}: give it a text to continue',
            param="continue_final_message",
        )
    return replace(
        chat,
        tools=_tools(fields.get("tools")),
        template_kwargs=_template_kwargs(fields),
        add_generation_prompt=not continues if opens is None else opens,
        continue_final_message=continues,
    )


def _tools(value: Any) -> tuple[dict[str, Any], ...]:
    """Return the tool definitions as they were given."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong("tools", value, "an array of tools", code="invalid_type")
    for position, tool in enumerate(value):
        parse_function(tool, name=f"tools[{position}]")
    return tuple(value)


def _template_kwargs(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the further variables of the template."""
    given = object_(fields, "chat_template_kwargs") or {}
    for name, value in given.items():
        if name in _RESERVED and value is not None:
            raise RequestError(
                f'"chat_template_kwargs.{name}" is reserved (found {shown(value)}): remove it, or give it beside'
                ' "messages" where that is a parameter',
                param=f"chat_template_kwargs.{name}",
                code="unsupported_parameter",
            )
    return {name: value for name, value in given.items() if name not in _RESERVED}
