"""Speculation off, as a drafter that proposes nothing."""

from collections.abc import Sequence as Many

from batchspec.drafting.generations import Generations
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome

__all__ = ["NoDrafter"]


class NoDrafter:
    """Proposes nothing; also the parent of drafters that need not keep track of sequences."""

    num_spec_tokens = 0

    @property
    def generations(self) -> Generations | None:
        """None: it learns from no output."""
        return None

    def begin(self, sequence: Sequence) -> None:
        """Nothing to note."""

    def is_ready(self, sequence: Sequence) -> bool:  # noqa: ARG002
        """Return True: it waits for nobody."""
        return True

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:  # noqa: ARG002
        """Return no draft."""
        return []

    def observe(self, outcomes: Many[Outcome], *, num_rows: int) -> None:
        """Nothing to learn."""

    def end(self, sequence: Sequence) -> None:
        """Nothing to forget."""
