"""What a finished or growing sequence looks like to the caller: its text, log probabilities and ids."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from batchspec.logprobs import chat_logprobs, completion_logprobs, prompt_logprobs_document
from batchspec.prompt import Prompt, TextPrompt
from batchspec.records import Choice
from batchspec.request import Endpoint, Request
from batchspec.sequence import Sequence, TokenLogprobs
from batchspec.text import Decoder, TextStream

__all__ = ["Answer", "TokenizerLike", "text_stream"]


class TokenizerLike(Protocol):
    """What the engine asks of a tokenizer."""

    @property
    def num_vocabulary(self) -> int:
        """Token ids are below this."""

    def encode(self, prompt: Prompt) -> list[int]:
        """Return the prompt's token ids; RequestError if it cannot be encoded."""

    def encode_bad_word(self, word: str) -> list[tuple[int, ...]]:
        """Return the token ids of a text in the middle of a sentence and at its beginning, without special tokens."""

    def decode(self, token_ids: list[int], *, prompt_ids: list[int], skip_special_tokens: bool = True) -> str:
        """Return the text of generated tokens that follow ``prompt_ids``."""

    def decoder(self, *, prompt_ids: list[int], skip_special_tokens: bool = True) -> Decoder:
        """Return what turns the tokens that follow ``prompt_ids`` into text one by one."""

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes that a token stands for."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One sequence of a request, seen by the caller.

    Attributes:
        request: what was asked.
        prompt: the prompt that the sequence answers.
        sequence: its tokens.
        tokenizer: text to tokens and back.
    """

    request: Request
    prompt: Prompt
    sequence: Sequence
    tokenizer: TokenizerLike

    def stream(self) -> TextStream:
        """Return a fresh stream for the sequence's text."""
        return text_stream(self.request, tokenizer=self.tokenizer, prompt_ids=self.sequence.prompt_ids)

    @property
    def echoed(self) -> str:
        """What is to stand before the output: the prompt's text as given, else its tokens or what is left of them."""
        if not self.request.echo:
            return ""
        if isinstance(self.prompt, TextPrompt) and self.request.truncate_prompt_tokens is None:
            return self.prompt.text
        return self.tokenizer.decode(
            self.sequence.prompt_ids,
            prompt_ids=[],
            skip_special_tokens=self.request.sampling.skip_special_tokens,
        )

    @property
    def text(self) -> str:
        """The output's text up to its stop."""
        sequence = self.sequence
        if sequence.text is not None:
            return sequence.text.text
        return self.tokenizer.decode(
            self._shown(sequence.output_ids),
            prompt_ids=sequence.prompt_ids,
            skip_special_tokens=sequence.sampling.skip_special_tokens,
        )

    def choice(self) -> Choice:
        """Return the finished sequence as a choice."""
        sequence, wants_ids = self.sequence, self.request.sampling.return_token_ids
        return Choice(
            text=self.echoed + self.text,
            finish_reason=sequence.finish_reason or "length",
            stop_reason=sequence.stop_reason,
            prompt_token_ids=sequence.prompt_ids if wants_ids else None,
            token_ids=sequence.output_ids if wants_ids else None,
            logprobs=self.logprobs(first=0, last=sequence.num_output_tokens, lengths=self._lengths),
            prompt_logprobs=self._prompt_logprobs(),
        )

    def logprobs(self, *, first: int, last: int, lengths: Callable[[], list[int]]) -> dict[str, Any] | None:
        """Return the log probabilities of output tokens ``[first, last)`` in the endpoint's shape, the echoed before.

        Args:
            first: 0 lets the prompt's tokens come along under ``echo``.
            last: behind the last token.
            lengths: the length of the output's text behind each of its tokens.
        """
        if self.request.sampling.logprobs is None:
            return None
        entries: list[TokenLogprobs | None] = [*self.sequence.logprobs[first:last]]
        if self.request.endpoint is Endpoint.CHAT:
            known = [entry for entry in entries if entry is not None]
            return chat_logprobs(known, token_bytes=self.tokenizer.token_bytes)
        ids = self.sequence.output_ids[first:last]
        num_echoed = len(self.echoed)
        offsets = [num_echoed + length for length in [0, *lengths()][first:last]]
        if self.request.echo and first == 0:
            ids = self.sequence.prompt_ids + ids
            entries = [None, *self.sequence.prompt_logprobs, *entries]
            offsets = [min(offset, num_echoed) for offset in self._prompt_offsets()] + offsets
        return completion_logprobs(entries, offsets=offsets, token_ids=ids, token_bytes=self.tokenizer.token_bytes)

    def _shown(self, token_ids: list[int]) -> list[int]:
        """Return the output without the token that stopped it, unless that is to be kept."""
        sequence = self.sequence
        is_cut = sequence.finish_reason == "stop" and not sequence.sampling.include_stop_str_in_output
        return token_ids[:-1] if is_cut and token_ids[-1] in sequence.stop_ids else token_ids

    def _lengths(self) -> list[int]:
        text = self.sequence.text
        if text is None:
            text = self.stream()
            for token in self.sequence.output_ids:
                text.push(token)
        length = len(text.text)
        known = [min(known, length) for known in text.lengths]
        return known + [length] * (self.sequence.num_output_tokens - len(known))

    def _prompt_offsets(self) -> list[int]:
        """Return where the text of each prompt token begins in the echoed text; tokens not in it begin at its edge.

        In a text prompt special tokens stand by name, but not those that the tokenizer added.
        """
        is_verbatim = isinstance(self.prompt, TextPrompt) and self.request.truncate_prompt_tokens is None
        skips = not is_verbatim and self.request.sampling.skip_special_tokens
        text = TextStream(self.tokenizer.decoder(prompt_ids=[], skip_special_tokens=skips))
        for token in self.sequence.prompt_ids:
            text.push(token)
        text.finish()
        num_added = max(0, text.text.find(self.echoed)) if is_verbatim else 0
        return [max(0, length - num_added) for length in [0, *text.lengths[:-1]]]

    def _prompt_logprobs(self) -> list[Any] | None:
        if self.request.sampling.prompt_logprobs is None:
            return None
        return prompt_logprobs_document(self.sequence.prompt_logprobs, token_bytes=self.tokenizer.token_bytes)


def text_stream(request: Request, *, tokenizer: TokenizerLike, prompt_ids: list[int]) -> TextStream:
    """Return a fresh stream for the text of a sequence that begins with ``prompt_ids``."""
    sampling = request.sampling
    return TextStream(
        tokenizer.decoder(prompt_ids=prompt_ids, skip_special_tokens=sampling.skip_special_tokens),
        stop=sampling.stop,
        include_stop=sampling.include_stop_str_in_output,
        min_tokens=sampling.min_tokens,
    )
