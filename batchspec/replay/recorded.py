"""One recorded output, as replay needs it, and a row that has none."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOTHING", "NO_INDEX", "Cause", "LeftOut", "Recorded", "Tokens"]

Tokens = NDArray[np.int64]
"""Token ids, int64 (n,)."""

NOTHING: Tokens = np.zeros(0, dtype=np.int64)
NO_INDEX = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """The token ids of a prompt and of one output to it.

    Attributes:
        prompt: int64 (n,).
        output: int64 (m,), the stopping token included if it was generated; at least one token.
        cut: int64, what followed the output in the last step and was cut off by a stop, as far as it is known.
        custom_id: of the request.
        index: of the request in its input; ``NO_INDEX`` where the log does not tell.
        line: of the response in its log, from 1.
        row: of the response among all that are replayed, from 0.
        sample_index: which of the request's samples it is.
        category: of the request; None for none.
        is_retokenised: whether the ids are those of a text, which the model may have spelt otherwise.
        has_grammar: whether the request had a grammar, which may have cut drafts.
        sampling: the request's parameters as our records tell them; None where nobody asks, and in those of others.
    """

    prompt: Tokens
    output: Tokens
    cut: Tokens
    custom_id: str
    index: int
    line: int = 1
    row: int = 0
    sample_index: int = 0
    category: str | None = None
    is_retokenised: bool = False
    has_grammar: bool = False
    sampling: Mapping[str, Any] | None = None


class Cause(StrEnum):
    """Why a row cannot be replayed."""

    ERROR = "error"
    MALFORMED = "not a response"
    NO_TOKEN_IDS = "no token ids"
    NO_PROMPT = "no prompt"
    CHAT = "a chat as text"
    TURNS = "later turns without prompts"
    ECHO = "an echoed prompt"
    EMPTY = "no output"


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A row that cannot be replayed.

    Attributes:
        line: 1-based line or row.
        cause: what is missing.
        custom_id: where it could be read.
    """

    line: int
    cause: Cause
    custom_id: str | None = None
