"""Prompt lookup: the text so far, searched for an earlier occurrence of its own end.

Rules (those of vLLM's ``ngram`` method): among the suffixes of length ``prompt_lookup_min`` to ``prompt_lookup_max``
take the longest that also occurs earlier, overlap allowed; of its occurrences the earliest; propose the up to k
tokens that followed it. The idea is from "Prompt Lookup Decoding" (A. Saxena, 2023).
"""

from collections.abc import Sequence as Many
from typing import cast

import numpy as np
from numpy.typing import NDArray

from batchspec.compiled import compiled
from batchspec.drafting.none import NoDrafter
from batchspec.sequence import Sequence
from batchspec.step import Draft

__all__ = ["NgramDrafter", "lookup"]


@compiled()
def _find(tokens: NDArray[np.int64], min_length: int, max_length: int) -> tuple[int, int]:
    """Return the position behind the earliest occurrence of the longest repeated suffix, or -1; and its length."""
    num_tokens = len(tokens)
    best_length, best_end = min_length - 1, -1
    for end in range(min_length, num_tokens):
        length = 0
        while length < max_length and length < end and tokens[end - 1 - length] == tokens[num_tokens - 1 - length]:
            length += 1
        if length > best_length:
            best_length, best_end = length, end
            if length == max_length:
                break
    return best_end, best_length


def lookup(tokens: NDArray[np.int64], *, min_length: int, max_length: int, num_tokens: int) -> tuple[list[int], int]:
    """Return the up to ``num_tokens`` tokens that followed the earlier occurrence, and its length.

    Without an earlier occurrence there are no tokens.

    Args:
        tokens: int64 (length,), prompt and output so far.
        min_length: shortest suffix to look for, at least 1.
        max_length: longest suffix to look for.
        num_tokens: the most tokens to propose.
    """
    end, length = _find(tokens, min_length, max_length)
    return ([] if end < 0 else cast(list[int], tokens[end : end + num_tokens].tolist())), length


class NgramDrafter(NoDrafter):
    """Proposes what followed the longest earlier occurrence of the current suffix.

    Args:
        num_spec_tokens: the most tokens in one draft (k), at least 1.
        prompt_lookup_min: shortest suffix to look for, at least 1.
        prompt_lookup_max: longest suffix to look for, at least ``prompt_lookup_min``.
    """

    def __init__(self, *, num_spec_tokens: int, prompt_lookup_min: int, prompt_lookup_max: int):
        self.num_spec_tokens = num_spec_tokens
        self.prompt_lookup_min = prompt_lookup_min
        self.prompt_lookup_max = prompt_lookup_max

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        """Return a draft for every sequence whose suffix occurred before and whose context has room."""
        drafts = []
        for sequence in decoding:
            token_ids, length = lookup(
                sequence.tokens[: sequence.num_tokens],
                min_length=self.prompt_lookup_min,
                max_length=self.prompt_lookup_max,
                num_tokens=min(self.num_spec_tokens, sequence.num_draft_slots),
            )
            if token_ids:
                drafts.append(Draft(sequence=sequence, token_ids=token_ids, source="ngram", match_length=length))
        return drafts
