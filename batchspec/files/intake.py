"""Rows that come from a caller instead of a file: one by one to a request, or to a rejection in its place."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from batchspec.errors import RequestError, UsageError
from batchspec.files.defaults import RowDefaults
from batchspec.files.identity import Columns, glimpse
from batchspec.files.rows import parse_row
from batchspec.files.seen import SeenIds
from batchspec.files.wording import shown
from batchspec.request import Intake, RejectedLine, Request

__all__ = ["take_rows"]


def take_rows(rows: Iterable[Mapping[str, Any] | Intake], *, where: str, defaults: RowDefaults) -> Iterator[Intake]:
    """Yield a Request or RejectedLine for every row, lazily; what was parsed before is passed on as it is.

    A row's index follows that of the row before it. Of several rows with one id the first is taken and the later ones
    are rejected.

    Args:
        rows: batch lines, bare rows, and lines that were parsed already, whose indices must grow.
        where: how messages name a row, before its number.
        defaults: for sampling fields that a row does not give.

    Raises:
        UsageError: a row is neither a mapping nor parsed, or an index does not grow.
    """
    index = -1
    with SeenIds() as seen:
        for row in rows:
            if isinstance(row, Request | RejectedLine):
                if row.index <= index:
                    raise UsageError(f"{where} with index {row.index} follows index {index}: let the indices grow")
                index = row.index
                yield row
            elif isinstance(row, Mapping):
                index += 1
                yield _take_row(row, index=index, where=where, defaults=defaults, seen=seen)
            else:
                raise UsageError(f"{where} {index + 2} is a {type(row).__name__}: give a mapping or a parsed request")


def _take_row(row: Mapping[str, Any], *, index: int, where: str, defaults: RowDefaults, seen: SeenIds) -> Intake:
    """Return the request that a row makes, or why it makes none; a rejected row has used its id as well."""
    line, columns = index + 1, Columns()
    custom_id, category = glimpse(row, line=line, columns=columns)
    try:
        first = line if custom_id is None else seen.first_line(custom_id, line=line)
        request = parse_row(row, index=index, line=line, columns=columns, defaults=defaults)
        if first != line:
            raise RequestError(
                f'"custom_id" {shown(request.custom_id)} was already used in {where} {first}: '
                "give every request an id of its own",
                param="custom_id",
                code="duplicate_custom_id",
            )
    except RequestError as error:
        return RejectedLine(
            index=index,
            line=line,
            custom_id=custom_id,
            message=f"{where} {line}: {error.message}",
            param=error.param,
            code=error.code,
            status_code=error.status_code,
            category=category,
        )
    return request
