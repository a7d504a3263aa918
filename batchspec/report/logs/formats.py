"""A report of logs in every form but the terminal's: JSON, Markdown, HTML, CSV."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from batchspec.errors import UsageError
from batchspec.plain_text import escaped_json
from batchspec.report.logs.comma import log_csv
from batchspec.report.logs.pictures import figures
from batchspec.report.logs.sections import log_parts
from batchspec.report.markdown import parts_markdown
from batchspec.report.page import parts_page
from batchspec.report.plain import parts_text

__all__ = ["ReportFormat", "format_by_name", "log_text"]

_TITLE = "Acceptance report"


class ReportFormat(StrEnum):
    """What a report is written as."""

    TABLE = "table"
    MD = "md"
    HTML = "html"
    CSV = "csv"
    JSON = "json"


_SUFFIXES = MappingProxyType(
    {
        ".md": ReportFormat.MD,
        ".markdown": ReportFormat.MD,
        ".html": ReportFormat.HTML,
        ".htm": ReportFormat.HTML,
        ".csv": ReportFormat.CSV,
        ".json": ReportFormat.JSON,
        ".txt": ReportFormat.TABLE,
    }
)


def format_by_name(name: str) -> ReportFormat:
    """Return the format that the extension of a file's name stands for; tables for a name without one.

    Raises:
        UsageError: the extension stands for none.
    """
    suffix = Path(name).suffix.lower()
    if not suffix:
        return ReportFormat.TABLE
    if suffix not in _SUFFIXES:
        raise UsageError(f"output {name} ends in {suffix}: end it in {', '.join(_SUFFIXES)}, or give --format")
    return _SUFFIXES[suffix]


def log_text(document: Mapping[str, Any], form: ReportFormat) -> str:
    """Return the report as text that ends with a newline.

    Args:
        document: what ``survey_logs`` made.
        form: how.
    """
    return _WRITERS[form](document)


def _json(document: Mapping[str, Any]) -> str:
    return escaped_json(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())


_WRITERS: Mapping[ReportFormat, Callable[[Mapping[str, Any]], str]] = MappingProxyType(
    {
        ReportFormat.TABLE: lambda document: parts_text(log_parts(document)),
        ReportFormat.MD: lambda document: parts_markdown(_TITLE, log_parts(document)),
        ReportFormat.HTML: lambda document: parts_page(_TITLE, log_parts(document), figures(document)),
        ReportFormat.CSV: log_csv,
        ReportFormat.JSON: _json,
    }
)
