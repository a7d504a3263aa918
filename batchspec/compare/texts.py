"""Where two answers to one request part."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from batchspec.compare.answers import Output

__all__ = ["Divergence", "find_divergence"]

_AROUND = 24


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The first difference between two answers.

    Attributes:
        choice: 0-based choice in which they differ first.
        character: 0-based index of the first character that differs; None when the texts are equal.
        token: 0-based index of the first token that differs; None when ids are not told or are equal.
        is_cut: one text is the beginning of the other.
        texts: both texts around the place.
        finish_reasons: why each ended.
    """

    choice: int
    character: int | None
    token: int | None
    is_cut: bool
    texts: tuple[str, str]
    finish_reasons: tuple[str | None, str | None]

    def document(self) -> dict[str, Any]:
        """Return the difference for JSON."""
        return {
            "choice": self.choice,
            "character": self.character,
            "token": self.token,
            "is_cut": self.is_cut,
            "texts": list(self.texts),
            "finish_reasons": list(self.finish_reasons),
        }


def find_divergence(ours: Sequence[Output], theirs: Sequence[Output]) -> Divergence | None:
    """Return where two answers part first, None for equal texts of equal tokens.

    A choice that only one answer has counts as an empty text in the other.
    """
    for choice, (one, other) in enumerate(zip_longest(ours, theirs, fillvalue=Output(text=""))):
        character = _first_difference(one.text, other.text)
        is_told = one.token_ids is not None and other.token_ids is not None
        token = _first_difference(one.token_ids or (), other.token_ids or ()) if is_told else None
        if character is None and token is None:
            continue
        place = len(one.text) if character is None else character
        return Divergence(
            choice=choice,
            character=character,
            token=token,
            is_cut=character is not None and character == min(len(one.text), len(other.text)),
            texts=(_around(one.text, place), _around(other.text, place)),
            finish_reasons=(one.finish_reason, other.finish_reason),
        )
    return None


def _first_difference(one: Sequence[Any], other: Sequence[Any]) -> int | None:
    """Return the first index at which two sequences differ, the end of the shorter included; None when equal."""
    differing: Iterator[int] = (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    index = next(differing, min(len(one), len(other)))
    return None if index == len(one) == len(other) else index


def _around(text: str, place: int) -> str:
    """Return the text around a place, with a mark where something was left out."""
    start, end = max(0, place - _AROUND), place + _AROUND
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
