"""Logs of any engine, read into one neutral record."""

from batchspec.ingest.reading import read_logs
from batchspec.ingest.record import Acceptance, LogRecord, Origin, SkippedRow, SkipReason

__all__ = ["Acceptance", "LogRecord", "Origin", "SkipReason", "SkippedRow", "read_logs"]
