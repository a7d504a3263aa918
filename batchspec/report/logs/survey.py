"""The report of logs as one JSON document, from their records; memory grows by about 100 bytes a request."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from batchspec.ingest import LogRecord, SkippedRow
from batchspec.ingest.blocks import Log, Row
from batchspec.ingest.reading import open_logs
from batchspec.ingest.summaries import Summaries, take_summaries
from batchspec.report.logs.bootstrap import CONFIDENCE, MAX_UNITS, NUM_RESAMPLES, SEED
from batchspec.report.logs.building import ColumnsBuilder
from batchspec.report.logs.columns import ABSENT, Columns
from batchspec.report.logs.definitions import DEFINITIONS
from batchspec.report.logs.ends import Ends
from batchspec.report.logs.groups import Grouping, Groups
from batchspec.report.logs.macro import macro_document
from batchspec.report.logs.over_output import OverOutput
from batchspec.report.logs.slices import Slice
from batchspec.report.logs.tally import Tally, origins_document

__all__ = ["LogSurvey", "survey_logs"]


class LogSurvey:
    """Takes in logs, or the records of them, and gives the report's document.

    Args:
        by: what requests are told apart by; None for no groups.
    """

    def __init__(self, *, by: Grouping | None = None):
        self._by = by
        self._groups = Groups(by=by)
        self._files: dict[str, int] = {}
        self._longest: Counter[int | None] = Counter()
        self._tally, self._ends, self._over_output = Tally(), Ends(), OverOutput()
        self._builder = ColumnsBuilder()

    def add(self, entry: LogRecord | SkippedRow) -> None:
        """Take in a record or a row that gives none.

        Raises:
            UsageError: there are more than 500 groups.
        """
        file = self._files.setdefault(entry.path, len(self._files))
        if isinstance(entry, SkippedRow):
            self._tally.add_skipped(entry)
            return
        self._tally.add_record(entry)
        acceptance = entry.acceptance
        if acceptance is not None:
            self._builder.add(acceptance, completion_tokens=entry.completion_tokens, group=self._groups.number(entry))
            self._longest[acceptance.num_spec_tokens] += 1
            self._ends.add(entry, acceptance, file=file)
            self._over_output.add(acceptance)

    def add_log(self, log: Log) -> None:
        """Take in a whole log, its common rows many at a time.

        Raises:
            UsageError: there are more than 500 groups, or the log is damaged.
        """
        self._files.setdefault(log.path, len(self._files))
        for rows in log.blocks():
            summaries, others = take_summaries(rows)
            if summaries is not None:
                self._add_summaries(summaries, log, rows)
            for entry in log.entries(others):
                self.add(entry)
        for entry in log.last_entries():
            self.add(entry)

    def _add_summaries(self, summaries: Summaries, log: Log, rows: list[Row]) -> None:
        self._tally.add_summaries(summaries)
        self._longest.update(summaries.num_spec_tokens.tolist())
        self._builder.extend(summaries, groups=self._groups.numbers(summaries, path=log.path))
        for record in log.entries([rows[place] for place in self._ends.candidates(summaries)]):
            if isinstance(record, LogRecord) and record.acceptance is not None:
                self._ends.add(record, record.acceptance, file=self._files[log.path])

    def document(self) -> dict[str, Any]:
        """Return the report; keys stand in a fixed order, floats are not rounded, what is not known is None."""
        columns = self._builder.columns()
        overall = Slice(columns, np.arange(len(columns)), index=0) if len(columns) else None
        groups = self._slices(columns)
        longest = sorted((number, count) for number, count in self._longest.items() if number is not None)
        return {
            "files": list(self._files),
            **self._tally.document(),
            "num_spec_tokens": {str(number): count for number, count in longest},
            "origins": origins_document(columns),
            "overall": None if overall is None else overall.document(),
            "by": self._by,
            "groups": {name: groups[name].document() for name in sorted(groups)},
            "num_requests_without_group": int((columns.group == ABSENT).sum()) if self._by is not None else None,
            "macro": macro_document(groups) if groups else None,
            "over_output": self._over_output.document(),
            **self._ends.document(),
            "bootstrap": {
                "num_resamples": NUM_RESAMPLES,
                "seed": SEED,
                "confidence": CONFIDENCE,
                "drawn": "requests",
                "max_units": MAX_UNITS,
            },
            "definitions": dict(DEFINITIONS),
        }

    def _slices(self, columns: Columns) -> dict[str, Slice]:
        """Return the groups, each with the rows that are in it."""
        order = np.argsort(columns.group, kind="stable")
        names = self._groups.names
        bounds = np.searchsorted(columns.group[order], np.arange(len(names) + 1))
        return {
            name: Slice(columns, order[bounds[number] : bounds[number + 1]], index=number + 1)
            for number, name in enumerate(names)
        }


def survey_logs(paths: Sequence[str | Path], *, by: Grouping | None = None) -> dict[str, Any]:
    """Return the report's document of logs.

    Args:
        paths: what ``read_logs`` takes.
        by: what requests are told apart by; None for no groups.

    Raises:
        UsageError: a path cannot be read, or there are more than 500 groups.
    """
    survey = LogSurvey(by=by)
    for log in open_logs(paths):
        survey.add_log(log)
    return survey.document()
