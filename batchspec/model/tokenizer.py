"""Prompts to token ids, token ids to text."""

import sys
from typing import Any

from jinja2.exceptions import TemplateError

from batchspec.errors import RequestError
from batchspec.request import ChatPrompt, Prompt, TextPrompt

__all__ = ["Tokenizer"]

_CONTEXT = 6  # prompt tokens decoded along, so that a leading space or a split character comes out right


class Tokenizer:
    """A transformers tokenizer behind the two methods that the engine calls.

    Args:
        tokenizer: any ``PreTrainedTokenizerBase``.
    """

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer
        self._tokenizer.model_max_length = sys.maxsize  # the engine has its own limit, and its own sentence about it

    @property
    def has_chat_template(self) -> bool:
        """Whether chats can be rendered."""
        return bool(self._tokenizer.chat_template)

    def encode(self, prompt: Prompt) -> list[int]:
        """Return the token ids of a prompt; token prompts pass through unchanged.

        Raises:
            RequestError: for a chat without a template, a chat that the template refuses, or an unknown token id.
        """
        if isinstance(prompt, TextPrompt):
            ids: list[int] = self._tokenizer(prompt.text).input_ids
            return ids
        if isinstance(prompt, ChatPrompt):
            return self._encode_chat(prompt)
        size = len(self._tokenizer)
        for token in prompt.token_ids:
            if not 0 <= token < size:
                raise RequestError(
                    f"token id {token} is not in the vocabulary; give ids from 0 to {size - 1}", param="prompt"
                )
        return list(prompt.token_ids)

    def _encode_chat(self, prompt: ChatPrompt) -> list[int]:
        if not self.has_chat_template:
            raise RequestError(
                "this model has no chat template, so a chat cannot be rendered; "
                "give a model that has one, or send the text to /v1/completions",
                param="messages",
                code="unsupported_model",
            )
        try:
            ids: list[int] = self._tokenizer.apply_chat_template(
                [dict(message) for message in prompt.messages],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
            )
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise RequestError(
                f"the model's chat template refuses these messages ({error}); change their roles or order",
                param="messages",
            ) from error
        return ids

    def decode(self, token_ids: list[int], *, prompt_ids: list[int]) -> str:
        """Return the text of generated tokens, special tokens left out.

        Args:
            token_ids: the tokens to show.
            prompt_ids: the tokens before them; the last few are decoded along and cut off again.
        """
        context = prompt_ids[-_CONTEXT:]
        head = self._text(context)
        whole = self._text(context + token_ids)
        if whole.startswith(head) and not head.endswith("\ufffd"):
            return whole[len(head) :]
        return self._text(token_ids)

    def _text(self, token_ids: list[int]) -> str:
        text: str = self._tokenizer.decode(token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text
