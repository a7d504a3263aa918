"""What a drafter may need of the engine that it drafts for."""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from batchspec.errors import UsageError
from batchspec.sequence import Sequence
from batchspec.step import Draft

__all__ = ["DraftModel", "EarlierAnswers", "Means"]


class DraftModel(Protocol):
    """A small model of the target's vocabulary, with pages of its own."""

    def propose(self, decoding: Many[Sequence], *, num_tokens: int) -> list[Draft]:
        """Return drafts of 1 to ``num_tokens`` tokens for those of the sequences whose context has room."""

    def end(self, sequence: Sequence) -> None:
        """Give back the pages of a sequence that has ended."""


class EarlierAnswers(Protocol):
    """The answers of an earlier run, as token ids of the target's vocabulary."""

    def answer_to(self, custom_id: str, sample_index: int) -> NDArray[np.int64] | None:
        """Return the answer to a request, int64 (n,); None where there is none."""

    def latest(self, most: int) -> Iterator[NDArray[np.int64]]:
        """Yield the last so many answers, in their order; -1 for all."""


def _no_draft_model() -> NoReturn:
    raise UsageError("a draft model needs an engine with a model: it cannot be had here.")


def _no_answers(_: str) -> NoReturn:
    raise UsageError("earlier answers need an engine with a tokenizer: they cannot be had here.")


@dataclass(frozen=True, kw_only=True)
class Means:
    """What a drafter may need of the engine that it drafts for.

    Attributes:
        max_num_seqs: the most sequences in the running batch.
        draft_model: returns the draft model that the configuration names.
        answers: reads the responses of an earlier run.
    """

    max_num_seqs: int = 1
    draft_model: Callable[[], DraftModel] = _no_draft_model
    answers: Callable[[str], EarlierAnswers] = _no_answers
