"""What the rows of the logs were, and where the numbers are from; counts only."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.ingest import LogRecord, Origin, SkippedRow, SkipReason
from batchspec.ingest.summaries import Summaries
from batchspec.report.logs.columns import ABSENT, FIELDS, Columns

__all__ = ["Tally", "origins_document"]

_MAX_LISTED = 20
_STATED = {
    "sglang": ("spec_accept_length", "completion tokens / verified steps"),
    "tensorrt-llm": ("avg_decoded_tokens_per_iter", "tokens / iterations, drafted or not"),
}


class Tally:
    """Counts rows by what became of them, and keeps the first few that were left out."""

    def __init__(self) -> None:
        self._engines: Counter[str] = Counter()
        self._reasons: Counter[SkipReason] = Counter()
        self._codes: Counter[str] = Counter()
        self._num_null = self._num_null_several = 0
        self._left_out: list[dict[str, Any]] = []
        self._lengths: dict[str, list[float]] = {}

    def add_record(self, record: LogRecord) -> None:
        """Count a response."""
        if record.acceptance is None:
            self._num_null += 1
            self._num_null_several += record.num_choices > 1
            return
        self._engines[record.engine] += 1
        length = record.acceptance.stated_length
        if length is not None:
            total = self._lengths.setdefault(record.engine, [0.0, 0])
            total[0] += length
            total[1] += 1

    def add_summaries(self, summaries: Summaries) -> None:
        """Count many responses at once."""
        own = int(np.count_nonzero(summaries.is_batchspec))
        self._engines.update(batchspec=own, vllm=len(summaries.places) - own)

    def add_skipped(self, row: SkippedRow) -> None:
        """Count a row that gives no record."""
        self._reasons[row.reason] += 1
        if row.reason is SkipReason.ERROR:
            self._codes[row.code or "error"] += 1
        elif len(self._left_out) < _MAX_LISTED:
            self._left_out.append(
                {
                    "path": row.path,
                    "line": row.line,
                    "custom_id": row.custom_id,
                    "reason": row.reason.value,
                    "message": row.message,
                }
            )

    def document(self) -> dict[str, Any]:
        """Return the counts under ``rows``, ``left_out`` (the first 20 rows), ``engines`` and ``stated_lengths``."""
        num_stated = self._engines.total()
        return {
            "rows": {
                "num_rows": num_stated + self._num_null + self._reasons.total(),
                "num_with_acceptance": num_stated,
                "num_null": self._num_null,
                "num_null_with_several_choices": self._num_null_several,
                "num_errors": self._reasons[SkipReason.ERROR],
                "errors_by_code": dict(sorted(self._codes.items())),
                "num_malformed": self._reasons[SkipReason.MALFORMED],
                "num_contradictory": self._reasons[SkipReason.CONTRADICTION],
            },
            "left_out": self._left_out,
            "engines": {name: number for name, number in sorted(self._engines.items()) if number},
            "stated_lengths": _stated(self._lengths),
        }


def _stated(lengths: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Return for each engine the mean of its own length, from the sum and the number of these lengths."""
    return [
        {
            "engine": engine,
            "field": _STATED[engine][0],
            "definition": _STATED[engine][1],
            "mean": total / number,
            "num_requests": int(number),
        }
        for engine, (total, number) in sorted(lengths.items())
    ]


def origins_document(columns: Columns) -> dict[str, dict[str, int]]:
    """Return for each field how many requests state it exactly, derived, estimated, or not at all."""
    is_absent = {field: columns.counts[field] == ABSENT for field in FIELDS}
    is_absent["acceptance_histogram"] = columns.histogram.lengths == 0
    return {field: _origins(columns, field, absent) for field, absent in is_absent.items()}


def _origins(columns: Columns, field: str, is_absent: NDArray[np.bool_]) -> dict[str, int]:
    is_estimated = columns.is_estimated(field) & ~is_absent
    is_derived = columns.is_derived(field) & ~is_absent & ~is_estimated
    counts = [int(np.count_nonzero(flags)) for flags in (is_derived, is_estimated, is_absent)]
    return {origin.value: number for origin, number in zip(Origin, [len(columns) - sum(counts), *counts], strict=True)}
