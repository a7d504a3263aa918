"""Conversions of text made for the tests."""

from pathlib import Path
from typing import Any

from batchspec.convert.batch_lines import ForeignFormat
from batchspec.convert.command import ConvertSettings, open_conversion
from batchspec.files import Columns, RowDefaults, open_source, read_requests
from batchspec.request import Request


def converted(path: Path, form: str, **options: Any) -> tuple[list[dict[str, Any]], list[str], dict[str, Any]]:
    """Return the lines, what was said, and the account of a conversion to batch lines."""
    said: list[str] = []
    settings = ConvertSettings(input=str(path), form=ForeignFormat(form), is_to_aiperf=False, **options)
    with open_conversion(settings, say=said.append) as conversion:
        lines = [dict(line) for line in conversion.lines()]
    return lines, said, conversion.document()


def served_by_run(path: Path) -> list[Request]:
    """Return the requests that ``batchspec run`` makes of a file; it may reject none."""
    requests = list(read_requests(open_source(path), columns=Columns(), defaults=RowDefaults()))
    assert all(isinstance(request, Request) for request in requests), requests
    return [request for request in requests if isinstance(request, Request)]
