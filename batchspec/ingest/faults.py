"""What makes a row unbelievable, as an exception that becomes a ``SkippedRow``."""

from typing import Any

from batchspec.files.wording import describe
from batchspec.ingest.record import SkipReason

__all__ = ["RowFault", "contradicts", "malformed"]


class RowFault(Exception):
    """A row or a choice of it that gives no record.

    Args:
        message: one sentence without path and line.
        reason: the kind of fault.
        code: of an error that the row reports.
    """

    def __init__(self, message: str, *, reason: SkipReason = SkipReason.MALFORMED, code: str | None = None):
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.code = code


def malformed(name: str, value: Any, right: str) -> RowFault:
    """Return the fault of a field whose value is of the wrong kind.

    Args:
        name: the field.
        value: what was found.
        right: what would be right, as in "an integer of at least 0".
    """
    return RowFault(f'"{name}" must be {right}, not {describe(value)}')


def contradicts(sentence: str) -> RowFault:
    """Return the fault of counts that break an identity."""
    return RowFault(sentence, reason=SkipReason.CONTRADICTION)
