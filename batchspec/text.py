"""The output's text as it grows, token by token: whole characters only, up to the first stop text."""

from typing import Protocol

__all__ = ["Decoder", "TextStream"]


class Decoder(Protocol):
    """Turns one sequence's tokens into text, piece by piece."""

    def push(self, token_id: int) -> str:
        """Return the text that has become certain with this token; empty while a character is incomplete."""

    def flush(self) -> str:
        """Return what is left at the end; bytes that never became a character are replacement characters."""


class TextStream:
    """Watches for stop texts and holds back what may turn out to be the beginning of one.

    The result depends on the tokens alone, not on how many of them came in one step.

    Args:
        decoder: of the sequence, fresh.
        stop: texts that end the output where they first end; of several that end there the one that began first.
        include_stop: keep the stop text in the output.
        min_tokens: stop texts that end within the first ``min_tokens`` tokens do not count.
    """

    def __init__(
        self, decoder: Decoder, *, stop: tuple[str, ...] = (), include_stop: bool = False, min_tokens: int = 0
    ):
        self.decoder = decoder
        self.stop = stop
        self.include_stop = include_stop
        self.min_tokens = min_tokens
        self.text = ""
        self.lengths: list[int] = []
        self._num_taken = 0

    def push(self, token_id: int) -> str | None:
        """Append a token's text and return the stop text that this completed, if any; the text is then cut there."""
        self.text += self.decoder.push(token_id)
        self.lengths.append(len(self.text))
        return None

    def finish(self) -> None:
        """Append what the decoder still holds; called once, at the end, unless a stop text ended the output."""
        self.text += self.decoder.flush()

    def take(self) -> str:
        """Return the text that is new since the last call and can no longer change."""
        taken, self._num_taken = self.text[self._num_taken :], len(self.text)
        return taken
