"""What a drafter may need of the engine that it drafts for."""

from collections.abc import Callable, Sequence as Many
from dataclasses import dataclass
from typing import Protocol

from batchspec.sequence import Sequence

__all__ = ["DraftModel", "Means"]


class DraftModel(Protocol):
    """A small model of the target's vocabulary, with pages of its own."""

    def propose(self, decoding: Many[Sequence], *, num_tokens: int) -> list[list[int]]:
        """Return up to ``num_tokens`` tokens to follow each sequence, none where its pages have not caught up."""

    def end(self, sequence: Sequence) -> None:
        """Give back the pages of a sequence that has ended."""


@dataclass(frozen=True, kw_only=True)
class Means:
    """What a drafter may need of the engine that it drafts for.

    Attributes:
        encode: the token ids of an answer's text, which may be spelled otherwise than the model did.
        max_num_seqs: the most sequences in the running batch.
        draft_model: loads and returns the draft model that a path names; None for the embedded one.
    """

    encode: Callable[[str], list[int]]
    max_num_seqs: int
    draft_model: Callable[[str | None], DraftModel]
