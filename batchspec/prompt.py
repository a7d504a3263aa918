"""What a model is asked to continue: text, token ids, or a chat."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["ChatPrompt", "Prompt", "TextPrompt", "TokenPrompt"]


@dataclass(frozen=True, kw_only=True)
class TextPrompt:
    """A completion prompt given as text.

    Attributes:
        text: as it was given.
        add_special_tokens: let the tokenizer add its own, such as the beginning of the sequence.
    """

    text: str
    add_special_tokens: bool = True


@dataclass(frozen=True, kw_only=True)
class TokenPrompt:
    """A completion prompt given as token ids; nothing is added."""

    token_ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ChatPrompt:
    """The messages of a chat, to be rendered by the model's chat template.

    Attributes:
        messages: in OpenAI's form, every content one string, or None beside tool calls.
        tools: OpenAI's tool definitions, for the template to render.
        template_kwargs: further variables of the template.
        add_generation_prompt: end with the opening of the assistant's answer.
        continue_final_message: leave the last message open, so that the model continues it.
        add_special_tokens: let the tokenizer add its own to the rendered text; templates mostly write them themselves.
    """

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    add_special_tokens: bool = False

    def answered(self, *, answer: str, question: str) -> "ChatPrompt":
        """Return the chat continued by the assistant's answer and the user's next question."""
        more = ({"role": "assistant", "content": answer}, {"role": "user", "content": question})
        return replace(self, messages=(*self.messages, *more))


Prompt = TextPrompt | TokenPrompt | ChatPrompt
