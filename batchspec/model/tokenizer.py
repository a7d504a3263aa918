"""Prompts to token ids, token ids to text."""

import sys
from functools import partial
from typing import Any

from batchspec.errors import RequestError
from batchspec.model.template import render_chat
from batchspec.model.vocabulary import TokenBytes
from batchspec.model.watchdog import Watchdog
from batchspec.request import ChatPrompt, Prompt, TextPrompt
from batchspec.text import Decoder, IncrementalDecoder, text_after

__all__ = ["Tokenizer"]

_PIECE = 2**16  # characters


class Tokenizer:
    """A transformers tokenizer behind the methods that the engine calls.

    Args:
        tokenizer: any ``PreTrainedTokenizerBase``.
        num_embeddings: token ids that the model can read, which may be fewer or more than the tokenizer's; None if
            that does not matter.
        template_seconds: that the chat template may take for one chat.
        most_tokens: texts of more are refused before all of their tokens are in memory at once.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        num_embeddings: int | None = None,
        template_seconds: float = 10.0,
        most_tokens: int = 1_000_000,
    ):
        self._tokenizer = tokenizer
        self._watchdog = Watchdog(template_seconds)
        self._most_tokens = most_tokens
        self._num_embeddings = len(tokenizer) if num_embeddings is None else num_embeddings
        self._tokenizer.model_max_length = sys.maxsize  # the engine has its own limit, and its own sentence about it
        self._token_bytes = TokenBytes(tokenizer)
        self._num_vocabulary = min(len(tokenizer), self._num_embeddings)  # counting takes a millisecond

    @property
    def inner(self) -> Any:
        """The transformers tokenizer."""
        return self._tokenizer

    @property
    def has_chat_template(self) -> bool:
        """Whether chats can be rendered."""
        return bool(self._tokenizer.chat_template)

    @property
    def num_vocabulary(self) -> int:
        """Token ids are below this."""
        return self._num_vocabulary

    def encode(self, prompt: Prompt) -> list[int]:
        """Return the token ids of a prompt; token prompts pass through unchanged.

        Raises:
            RequestError: for a chat without a template, a chat that the template refuses or of which it would ignore a
                part, or a token that the model cannot read.
        """
        if isinstance(prompt, TextPrompt):
            self._check_length(prompt.text, param="prompt")
            token_ids, param = self._ids(prompt.text, add_special_tokens=prompt.add_special_tokens), "prompt"
        elif isinstance(prompt, ChatPrompt):
            token_ids, param = self._encode_chat(prompt), "messages"
        else:
            token_ids, param = list(prompt.token_ids), "prompt"
        for token in token_ids:
            if not 0 <= token < self.num_vocabulary:
                raise RequestError(
                    f"token id {token} is not in the vocabulary; give ids from 0 to {self.num_vocabulary - 1}",
                    param=param,
                )
        return token_ids

    def _encode_chat(self, prompt: ChatPrompt) -> list[int]:
        if not self.has_chat_template:
            raise RequestError(
                "this model has no chat template, so a chat cannot be rendered; "
                "give a model that has one, or send the text to /v1/completions",
                param="messages",
                code="unsupported_model",
            )
        text = render_chat(self._tokenizer, prompt, watchdog=self._watchdog)
        self._check_length(text, param="messages")
        return self._ids(text, add_special_tokens=prompt.add_special_tokens)

    def _check_length(self, text: str, *, param: str) -> None:
        """Count the tokens of a very long text piece by piece: those of megabytes at once would take gigabytes.

        Raises:
            RequestError: there are more than any request may have.
        """
        num_tokens = 0
        for start in range(0, len(text) if len(text) > _PIECE else 0, _PIECE):
            num_tokens += len(self._ids(text[start : start + _PIECE], add_special_tokens=False))
            if num_tokens > self._most_tokens:
                raise RequestError(
                    f"the prompt has more than {self._most_tokens:,} tokens, which is beyond the context of this model "
                    f"and too many to truncate; shorten it, for its text has {len(text):,} characters",
                    param=param,
                    code="context_length_exceeded",
                )

    def encode_plain(self, text: str) -> list[int]:
        """Return the token ids of a text, with no special tokens added."""
        return self._ids(text, add_special_tokens=False)

    def encode_bad_word(self, word: str) -> list[tuple[int, ...]]:
        """Return the ways in which a word may be generated: at the beginning of a text, and after a space.

        These are, as in vLLM, the tokens of the word without leading blanks, with and without one space before it. A
        word of blanks alone stands for itself.
        """
        bare = word.lstrip()
        ways = [tuple(self.encode_plain(way)) for way in ((bare, " " + bare) if bare else (word,))]
        return list(dict.fromkeys(way for way in ways if way))

    def decode(self, token_ids: list[int], *, prompt_ids: list[int], skip_special_tokens: bool = True) -> str:
        """Return the text of generated tokens: what a ``decoder`` says in all.

        Args:
            token_ids: the tokens to show.
            prompt_ids: the tokens before them; the last few are decoded along and cut off again.
            skip_special_tokens: leave special tokens out.
        """
        text_of = partial(self._text, skip_special_tokens=skip_special_tokens)
        return text_after(text_of, token_ids, prompt_ids=prompt_ids)

    def decoder(self, *, prompt_ids: list[int], skip_special_tokens: bool = True) -> Decoder:
        """Return what turns the tokens behind ``prompt_ids`` into text one by one."""
        return IncrementalDecoder(partial(self._text, skip_special_tokens=skip_special_tokens), prompt_ids)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes that a token stands for; none for an id that the tokenizer does not have."""
        return self._token_bytes(token_id)

    def _ids(self, text: str, *, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=add_special_tokens).input_ids
        return ids

    def _text(self, token_ids: list[int], *, skip_special_tokens: bool) -> str:
        text: str = self._tokenizer.decode(
            token_ids, skip_special_tokens=skip_special_tokens, clean_up_tokenization_spaces=False
        )
        return text
