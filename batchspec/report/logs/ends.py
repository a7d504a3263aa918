"""The requests at both ends: those whose drafts were accepted least and most."""

from bisect import insort
from typing import Any

import numpy as np

from batchspec.ingest import Acceptance, LogRecord
from batchspec.ingest.summaries import Summaries
from batchspec.report.ratios import acceptance_length, ratio

__all__ = ["Ends"]

_NUM_SHOWN = 5

_Key = tuple[float, int, int, int, int]


class Ends:
    """Keeps the few requests with the lowest and the highest acceptance length; of equal ones those with most steps."""

    def __init__(self) -> None:
        self._lowest: list[tuple[_Key, LogRecord, Acceptance]] = []
        self._highest: list[tuple[_Key, LogRecord, Acceptance]] = []
        self._num_seen = 0

    def add(self, record: LogRecord, acceptance: Acceptance, *, file: int) -> None:
        """Take a request in; one without a counted step has no length and is passed over.

        Args:
            record: the request.
            acceptance: its numbers.
            file: number of its log, by which equal requests are told apart.
        """
        steps, accepted = acceptance.num_spec_steps, acceptance.num_accepted_draft_tokens
        if not steps or accepted is None or acceptance.estimated:
            return
        self._num_seen += 1
        place = (file, record.line, record.choice or 0)
        for kept, length in ((self._lowest, accepted / steps), (self._highest, -accepted / steps)):
            key = (length, -steps, *place)
            if len(kept) < _NUM_SHOWN or key < kept[-1][0]:
                insort(kept, (key, record, acceptance))
                del kept[_NUM_SHOWN:]

    def candidates(self, summaries: Summaries) -> list[int]:
        """Return where in their block those requests stand that may be among the few; the others count as seen."""
        steps, accepted = summaries.num_spec_steps, summaries.num_accepted_draft_tokens
        lengths = np.divide(accepted, steps, out=np.full(len(steps), np.nan), where=steps > 0)
        number = int(np.count_nonzero(steps))
        lowest = np.lexsort((-steps, lengths))[:number]
        highest = np.lexsort((-steps, -lengths))[:number]
        chosen = np.union1d(lowest[:_NUM_SHOWN], highest[:_NUM_SHOWN])
        self._num_seen += number - len(chosen)
        return [int(place) for place in summaries.places[chosen]]

    def document(self) -> dict[str, Any]:
        """Return ``lowest`` and ``highest``, each beginning at its end; nobody is in both."""
        half = min(_NUM_SHOWN, self._num_seen // 2)
        return {
            "lowest": [_document(record, acceptance) for _, record, acceptance in self._lowest[:half]],
            "highest": [_document(record, acceptance) for _, record, acceptance in self._highest[:half]],
        }


def _document(record: LogRecord, acceptance: Acceptance) -> dict[str, Any]:
    steps, accepted = acceptance.num_spec_steps or 0, acceptance.num_accepted_draft_tokens or 0
    drafted = acceptance.num_draft_tokens
    return {
        "custom_id": record.custom_id,
        "path": record.path,
        "line": record.line,
        "choice": record.choice,
        "mean_acceptance_length": acceptance_length(num_accepted=accepted, num_steps=steps),
        "draft_acceptance_rate": None if drafted is None else ratio(accepted, drafted),
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": drafted,
    }
