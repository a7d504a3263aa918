"""The per-request account: what the responses state, and which of them state nothing."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from batchspec.audit.counts import num_sequences, stated_counts
from batchspec.ingest import LogRecord, SkippedRow, SkipReason
from batchspec.reconcile.between import Count

__all__ = ["ERROR", "REFUSED", "Ledger", "SilentRows"]

SEVERAL_CHOICES = "several choices (n > 1 or several prompts)"
NO_METRICS = "no metrics"
ERROR = "error"
REFUSED = "refused"
_MAX_NAMED = 8


@dataclass(kw_only=True)
class SilentRows:
    """Rows that state nothing of their drafts for one cause.

    Attributes:
        num_rows: how many there are.
        named: the first of them, by id or line.
        num_tokens: tokens of their outputs, None when a row does not tell them. Each step gives at least one token, so
            they cannot have had more steps.
    """

    num_rows: int = 0
    named: list[str] = field(default_factory=list)
    num_tokens: int | None = 0

    def add(self, name: str, num_tokens: int | None) -> None:
        """Add one row."""
        self.num_rows += 1
        if len(self.named) < _MAX_NAMED:
            self.named.append(name)
        known = self.num_tokens is not None and num_tokens is not None
        self.num_tokens = (self.num_tokens or 0) + (num_tokens or 0) if known else None

    def document(self) -> dict[str, Any]:
        """Return the rows for JSON."""
        return {"num_rows": self.num_rows, "named": list(self.named), "completion_tokens": self.num_tokens}


class Ledger:
    """Adds up responses one by one; memory does not grow with their number, but with that of contradictory rows.

    Attributes:
        num_rows: responses and error rows.
        num_reported: responses, or choices of them, that state their drafts.
        num_sequences: outputs of all served responses: each sample of each prompt.
        num_spec_tokens: the longest draft that a row could have had, 0 when none says so.
        counts: sums over the rows that state them.
        num_unstated: by quantity, reported rows that leave it out or estimate it.
        silent: by cause, rows that state nothing.
        faults: rows that contradict themselves or cannot be read, as sentences.
    """

    def __init__(self) -> None:
        self.num_rows = self.num_reported = self.num_sequences = self.num_spec_tokens = 0
        self.counts: dict[Count, int] = {}
        self.num_unstated: Counter[str] = Counter()
        self.silent: dict[str, SilentRows] = {}
        self.faults: list[str] = []
        self._last_row: tuple[str, int] | None = None

    def add(self, row: LogRecord | SkippedRow) -> None:
        """Add what one row, or one choice of it, states."""
        if (row.path, row.line) != self._last_row:
            self.num_rows += 1
            self._last_row = row.path, row.line
        if isinstance(row, SkippedRow):
            self._add_skipped(row)
            return
        self.num_sequences += num_sequences(row)
        counts, missing = ({}, frozenset[str]()) if row.acceptance is None else stated_counts(row.acceptance)
        if row.acceptance is None or not counts:
            cause = SEVERAL_CHOICES if row.choice is None and row.num_choices > 1 else NO_METRICS
            self._silent(cause).add(_name(row), row.completion_tokens)
            return
        self.num_reported += 1
        self.num_unstated.update(missing)
        self.num_spec_tokens = max(self.num_spec_tokens, row.acceptance.num_spec_tokens or 0)
        for key, count in counts.items():
            self.counts[key] = self.counts.get(key, 0) + count

    def _add_skipped(self, row: SkippedRow) -> None:
        if row.reason is not SkipReason.ERROR:
            self.faults.append(f"{_name(row)}: {row.message}")
        elif row.code is not None and row.code.isdecimal() and 400 <= int(row.code) < 500:
            self._silent(REFUSED).add(_name(row), 0)
        else:
            self._silent(ERROR).add(_name(row), None)

    def _silent(self, cause: str) -> SilentRows:
        return self.silent.setdefault(cause, SilentRows())


def _name(row: LogRecord | SkippedRow) -> str:
    return f"line {row.line}" if row.custom_id is None else row.custom_id
