"""Prompt lookup over a whole recorded sequence at once, for every draft length.

What the drafter finds at a position depends on the tokens before it alone, not on the steps that led there. So one pass
over the sequence tells where each position's match goes on and how far it agrees with what was written, and each draft
length takes its steps over that.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.compiled import compiled, inner

__all__ = ["Lookups", "find_lookups"]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)

Lookups = tuple[NDArray[np.int32], NDArray[np.int32]]
"""By output position: tokens that a draft could have, 0 for no match; and how many of them agree with the output."""


def find_lookups(
    tokens: NDArray[np.int64],
    *,
    num_prompt_tokens: int,
    num_output_tokens: int,
    min_length: int,
    max_length: int,
    most: int,
) -> Lookups:
    """Return what the ``ngram`` drafter finds before each output token.

    Args:
        tokens: int64 (n,), prompt, output, and what is known of the text behind it.
        num_prompt_tokens: of them.
        num_output_tokens: of them.
        min_length: shortest suffix that is looked for.
        max_length: longest.
        most: tokens that a draft may have.
    """
    size = 1 << max(4, (2 * len(tokens)).bit_length())
    tables = np.full((max_length - min_length + 1, size), -1, dtype=np.int32)
    found = np.zeros((2, num_output_tokens), dtype=np.int32)
    drafted, agreed = found
    _find(tokens, num_prompt_tokens, min_length, max_length, most, tables, drafted, agreed)
    return drafted, agreed


@compiled()
def _find(
    tokens: Any, start: int, min_length: int, max_length: int, most: int, tables: Any, drafted: Any, agreed: Any
) -> None:
    for position in range(1, start + len(drafted)):
        end = _met(tokens, position, min_length, max_length, tables)
        if position >= start and end >= 0:
            length = min(most, position - end)
            drafted[position - start] = length
            same = 0
            limit = min(length, len(tokens) - position)
            while same < limit and tokens[end + same] == tokens[position + same]:
                same += 1
            agreed[position - start] = same


@inner
def _mixed(bits: Any, token: int) -> Any:
    return (bits ^ np.uint64(token + 1)) * _MULTIPLIER


@inner
def _place(tokens: Any, end: int, length: int, bits: Any, table: Any) -> Any:
    """Return where the n-gram that ends before ``end`` stands in the table of its length, or the free place for it."""
    mask = len(table) - 1
    place = np.int64((bits ^ (bits >> _SHIFT)) & np.uint64(mask))
    while table[place] >= 0:
        other = table[place]
        same = 0
        while same < length and tokens[other - 1 - same] == tokens[end - 1 - same]:
            same += 1
        if same == length:
            return place
        place = (place + 1) & mask
    return place


@inner
def _met(tokens: Any, position: int, min_length: int, max_length: int, tables: Any) -> int:
    """Return the position behind the earliest occurrence of the longest suffix, or -1; enter the suffixes that are new.

    A suffix that did not occur before is part of no longer one that did.
    """
    bits = np.uint64(0)
    best = -1
    for length in range(1, min(max_length, position) + 1):
        bits = _mixed(bits, tokens[position - length])
        if length >= min_length:
            table = tables[length - min_length]
            place = _place(tokens, position, length, bits, table)
            if table[place] < 0:
                table[place] = position
            else:
                best = table[place]
    return best
