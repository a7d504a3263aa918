"""The seam every drafter fits."""

from collections.abc import Sequence as Many
from typing import Protocol

from batchspec.drafting.generations import Generations
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome

__all__ = ["Drafter"]


class Drafter(Protocol):
    """Guesses the tokens that the target will choose next; a wrong guess costs time, never correctness."""

    @property
    def num_spec_tokens(self) -> int:
        """The most tokens in one draft (k); 0 when speculation is off."""

    @property
    def generations(self) -> Generations | None:
        """The earlier outputs of the job that it learns from; None if it learns from none."""

    def begin(self, sequence: Sequence) -> None:
        """Take note of a sequence that enters the engine, before its first draft."""

    def is_ready(self, sequence: Sequence) -> bool:
        """Whether the sequence may start to run now; a drafter that learns from others may have to wait for them.

        Once it may, it always may. The oldest sequence of the engine may always.
        """

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        """Return drafts of 1 to k token ids for those of the sequences that it has a guess for."""

    def observe(self, outcomes: Many[Outcome], *, num_rows: int) -> None:
        """Take note of what one step committed.

        Args:
            outcomes: of the sequences for which a token was sampled.
            num_rows: tokens that the forward pass computed, prompts included.
        """

    def end(self, sequence: Sequence) -> None:
        """Forget a sequence that has ended."""
