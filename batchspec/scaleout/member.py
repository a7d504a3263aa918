"""One worker as the fleet knows it: what it has open, and what it has told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.reconcile import AcceptanceSums
from batchspec.scaleout.worker import Given, Reply

__all__ = ["Growth", "Member"]

_MOST_CALLS = 2
_SUMMED = ("prompt_tokens", "output_tokens", "num_steps", "num_draft_tokens", "num_accepted_draft_tokens")


@dataclass(frozen=True, kw_only=True)
class Growth:
    """What a worker's counts have grown by from one reply to the next."""

    counters: Mapping[str, float]
    sources: Mapping[str, Mapping[str, int]]
    progress: Mapping[str, int]


class Member:
    """A worker.

    Attributes:
        is_ready: whether it has loaded the model.
        open: by index, the lines that it was handed and has not answered.
        num_calls: exchanges on the way.
        account: in its last reply; None before the first.
    """

    def __init__(self) -> None:
        self.is_ready = False
        self.open: dict[int, Given] = {}
        self.num_calls = 0
        self.account: Mapping[str, Any] | None = None
        self._progress: Mapping[str, int] = {}

    @property
    def has_turn(self) -> bool:
        """Whether one more exchange may be on the way."""
        return self.is_ready and self.num_calls < _MOST_CALLS

    def give(self, lines: Iterable[Given]) -> None:
        """Note that it is sent lines, maybe none."""
        self.num_calls += 1
        self.open |= {given.line.index: given for given in lines}

    def take(self, reply: Reply) -> Growth:
        """Note a reply: its records are done, and its account takes the place of the one before."""
        before = self.account or {"counters": {}, "sources": {}}
        counters, sources = reply.account["counters"], reply.account["sources"]
        growth = Growth(
            counters={key: value - before["counters"].get(key, 0) for key, value in counters.items()},
            sources={name: _less(counts, before["sources"].get(name, {})) for name, counts in sources.items()},
            progress={name: reply.progress[name] - self._progress.get(name, 0) for name in _SUMMED},
        )
        self.num_calls -= 1
        self.account, self._progress = reply.account, reply.progress
        for index in reply.records:
            del self.open[index]
        return growth

    def unreported(self) -> dict[str, AcceptanceSums]:
        """Return what it has counted for requests whose records carry no metrics, by cause."""
        causes = {} if self.account is None else self.account["unreported"]
        return {cause: AcceptanceSums.from_totals(totals) for cause, totals in causes.items()}

    def in_flight(self) -> AcceptanceSums:
        """Return what it has counted for requests without a record."""
        return AcceptanceSums() if self.account is None else AcceptanceSums.from_totals(self.account["in_flight"])


def _less(counts: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    return {kind: number - before.get(kind, 0) for kind, number in counts.items()}
