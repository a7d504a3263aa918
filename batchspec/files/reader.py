"""The input as a stream of requests; a row that cannot be served comes as a rejection, in its place."""

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.decode import decode_row
from batchspec.files.defaults import RowDefaults
from batchspec.files.identity import Columns
from batchspec.files.ignored_columns import IgnoredColumns
from batchspec.files.intake import RowTaker
from batchspec.files.parquet_in import decode_nested
from batchspec.files.seen import SeenIds
from batchspec.files.source import InputSource
from batchspec.request import Intake

__all__ = ["read_requests"]


def read_requests(
    source: InputSource,
    *,
    columns: Columns,
    defaults: RowDefaults,
    finished: Container[int] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Intake]:
    """Yield one Request or RejectedLine for every row that is not blank and not finished, in order.

    Of several rows with one id the first is taken and the later ones are rejected. A rejection's message starts with
    the input's name and the line or row number, and ends with a remedy.

    Args:
        source: the input.
        columns: where a bare row keeps its prompt and its id.
        defaults: for sampling fields that a row does not give.
        finished: indices of rows that were served before; their ids count as used.
        say: is told once which columns of bare rows are ignored.

    Raises:
        DamagedInputError: the input is truncated or corrupt; raised where that shows.
    """
    refine_parquet = partial(decode_nested, columns=columns)
    with SeenIds() as seen:
        taker = RowTaker(
            where=source.where,
            earlier=source.earlier,
            columns=columns,
            defaults=defaults,
            seen=seen,
            notice=IgnoredColumns(columns=columns, where=source.where, say=say).notice,
        )
        for index, (line, content) in enumerate(source.rows()):
            read = partial(_read, content)
            refine = refine_parquet if isinstance(content, dict) else _as_it_is
            if index in finished:
                taker.pass_over(read, index=index, line=line, refine=refine)
            else:
                yield taker.take(read, index=index, line=line, refine=refine)


def _read(content: bytes | dict[str, Any] | RequestError | None) -> Mapping[str, Any]:
    """Return the row that a line or a Parquet row holds, or raise what is wrong with it."""
    if isinstance(content, RequestError):
        raise content
    return content if isinstance(content, dict) else decode_row(content)


def _as_it_is(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row
