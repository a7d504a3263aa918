"""The output's text as it grows, token by token: whole characters only, up to the first stop text."""

from collections.abc import Callable
from typing import Protocol

__all__ = ["Decoder", "IncrementalDecoder", "TextStream", "text_after"]

Decode = Callable[[list[int]], str]

_CONTEXT = 6  # prompt tokens decoded along, so that a leading space comes out right
_MARK = "\ufffd"  # what decoding writes for bytes that are no character, or not yet one
_MOST_HELD = 3  # a character of UTF-8 has at most four bytes, so at most that many tokens wait for its last


class Decoder(Protocol):
    """Turns one sequence's tokens into text, piece by piece."""

    def push(self, token_id: int) -> str:
        """Return the text that has become certain with this token; empty while a character is incomplete."""

    def flush(self) -> str:
        """Return what is left at the end; bytes that never became a character are replacement characters."""


class IncrementalDecoder:
    """Decodes a short window of tokens up to the newest, with any function from token ids to text.

    The window begins with tokens whose text is out, the context. Behind it stand the pending tokens, whose text ends
    in replacement characters: the beginning of a character, or bytes that will never be one. Three such marks at most
    are held back and three tokens at most stay pending, so that no token costs more than the window, whatever came
    before, and the model's own replacement character comes out with the next token that is none.

    Args:
        decode: the text of token ids; it may drop the first one's leading space, and leave out special tokens.
        prompt_ids: the tokens before the output; the last few are the first context.
    """

    def __init__(self, decode: Decode, prompt_ids: list[int]):
        self._decode = decode
        self._context, self._head = _context_of(decode, prompt_ids)
        self._pending: list[int] = []
        self._text = ""  # of the pending tokens
        self._num_shown = 0  # characters of it that are out

    def push(self, token_id: int) -> str:
        """Return the text that has become certain with this token."""
        text = self._text_behind_context([*self._pending, token_id])
        if text == self._text and self._decode([token_id, token_id]) == "":
            return ""  # a special token that is left out: not even the window keeps it
        self._pending.append(token_id)
        num_held = _num_marks(text)
        piece = text[self._num_shown : len(text) - num_held]
        self._text, self._num_shown = text, len(text) - num_held
        if len(self._pending) > _MOST_HELD and num_held:
            piece += self._give_up_oldest()
        if self._num_shown == len(self._text):
            self._context, self._head = self._pending, self._decode(self._pending)
            self._pending, self._text, self._num_shown = [], "", 0
        return piece

    def flush(self) -> str:
        """Return what is held back, as replacement characters."""
        rest, self._num_shown = self._text[self._num_shown :], len(self._text)
        return rest

    def _text_behind_context(self, token_ids: list[int]) -> str:
        whole = self._decode(self._context + token_ids)
        behind = whole[len(self._head) :] if whole.startswith(self._head) else None
        if behind is not None and _MARK not in behind:
            return behind
        # With byte tokens, as SentencePiece has them, a broken character takes whole ones before it along.
        alone = self._decode(token_ids)
        return alone if behind is None or alone.count(_MARK) < behind.count(_MARK) else behind

    def _give_up_oldest(self) -> str:
        """Go on with the newest three tokens, as no character began before them; return what that makes certain."""
        held = self._text[self._num_shown :]
        self._context, self._head, self._pending = [], "", self._pending[-_MOST_HELD:]
        self._text = self._decode(self._pending)
        num_held = min(len(held), _num_marks(self._text))
        self._num_shown = len(self._text) - num_held
        # Without the broken token before it, what was held may turn out to be a character.
        return held[: len(held) - num_held] if num_held else self._text


def text_after(decode: Decode, token_ids: list[int], *, prompt_ids: list[int]) -> str:
    """Return the text of tokens behind a prompt: what an ``IncrementalDecoder`` says in all, mostly in one step."""
    context, head = _context_of(decode, prompt_ids)
    whole = decode(context + token_ids)
    if _MARK not in whole and whole.startswith(head):
        return whole[len(head) :]
    decoder = IncrementalDecoder(decode, prompt_ids)
    return "".join([decoder.push(token_id) for token_id in token_ids]) + decoder.flush()


def _context_of(decode: Decode, prompt_ids: list[int]) -> tuple[list[int], str]:
    """Return the longest of the last few tokens that are whole characters, with their text."""
    for start in range(max(0, len(prompt_ids) - _CONTEXT), len(prompt_ids)):
        text = decode(prompt_ids[start:])
        if _MARK not in text:
            return prompt_ids[start:], text
    return [], ""


def _num_marks(text: str) -> int:
    return min(_MOST_HELD, len(text) - len(text.rstrip(_MARK)))


class TextStream:
    """Watches for stop texts and holds back what may turn out to be the beginning of one.

    The result depends on the tokens alone, not on how many of them came in one step.

    Args:
        decoder: of the sequence, fresh.
        stop: texts, not empty, that end the output where they first end; of several that end there the one that began
            first. The output is cut where it begins.
        include_stop: cut behind the stop text instead.
        min_tokens: stop texts that end within the text of the first ``min_tokens`` tokens do not count.

    Attributes:
        lengths: of the text behind each token, held back or not, and before a stop text cut it.
    """

    def __init__(
        self, decoder: Decoder, *, stop: tuple[str, ...] = (), include_stop: bool = False, min_tokens: int = 0
    ):
        self.decoder = decoder
        self.stop = stop
        self.include_stop = include_stop
        self.min_tokens = min_tokens
        self.lengths: list[int] = []
        self._pieces: list[str] = []  # joined only when asked for, so that a token's cost does not grow with the text
        self._untaken: list[str] = []
        self._length = 0
        self._longest = max(map(len, stop), default=1) - 1  # characters that may be the beginning of a stop text
        self._tail = ""  # the last so many
        self._has_ended = False

    @property
    def text(self) -> str:
        """The whole text so far, held back or not."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def push(self, token_id: int) -> str | None:
        """Append a token's text and return the stop text that this completed, if any; the text is then cut there."""
        piece = self.decoder.push(token_id)
        found = self._find(piece) if len(self.lengths) >= self.min_tokens else None
        self._append(piece)
        self.lengths.append(self._length)
        if found is None:
            return None
        begin, stop = found
        self._cut(begin + len(stop) if self.include_stop else begin)
        return stop

    def finish(self) -> None:
        """Append what the decoder still holds; called once, at the end, unless a stop text ended the output."""
        self._append(self.decoder.flush())
        self._has_ended = True

    def take(self) -> str:
        """Return the text that is new since the last call and can no longer change."""
        fresh = "".join(self._untaken)
        end = len(fresh) - self._num_held()
        self._untaken = [fresh[end:]]
        return fresh[:end]

    def _find(self, piece: str) -> tuple[int, str] | None:
        """Return where the stop text begins that ends first within the new piece, and which it is."""
        window = self._tail + piece
        hits = []
        for stop in self.stop:
            begin = window.find(stop, max(0, len(self._tail) - len(stop) + 1))
            if begin >= 0:
                hits.append((begin + len(stop), begin, stop))
        if not hits:
            return None
        _, begin, stop = min(hits)
        return self._length - len(self._tail) + begin, stop

    def _append(self, piece: str) -> None:
        self._pieces.append(piece)
        self._untaken.append(piece)
        self._length += len(piece)
        self._tail = (self._tail + piece)[-self._longest :] if self._longest else ""

    def _cut(self, length: int) -> None:
        fresh = "".join(self._untaken)
        self._untaken = [fresh[: len(fresh) - (self._length - length)]]
        self._pieces = [self.text[:length]]
        self._length = length
        self._has_ended = True

    def _num_held(self) -> int:
        """Return the length of the longest end of the text with which a stop text begins."""
        if self._has_ended or self.include_stop:
            return 0
        for size in range(len(self._tail), 0, -1):
            end = self._tail[-size:]
            if any(stop.startswith(end) and len(stop) > size for stop in self.stop):
                return size
        return 0
