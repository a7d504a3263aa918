"""The input as a stream of requests; a row that cannot be served comes as a rejection, in its place."""

from collections.abc import Iterator

from batchspec.errors import RequestError
from batchspec.files.decode import decode_row
from batchspec.files.defaults import RowDefaults
from batchspec.files.identity import Columns, glimpse
from batchspec.files.parquet_in import decode_nested
from batchspec.files.rows import parse_row
from batchspec.files.seen import SeenIds
from batchspec.files.source import InputSource
from batchspec.files.wording import shown
from batchspec.request import Intake, RejectedLine

__all__ = ["read_requests"]


def read_requests(source: InputSource, *, columns: Columns, defaults: RowDefaults) -> Iterator[Intake]:
    """Yield one Request or RejectedLine for every row that is not blank, in order.

    Of several rows with one id the first is taken and the later ones are rejected. A rejection's message starts with
    the input's name and the line or row number, and ends with a remedy.

    Raises:
        DamagedInputError: the input is truncated or corrupt; raised where that shows.
    """
    with SeenIds() as seen:
        for index, (line, content) in enumerate(source.rows()):
            custom_id = category = None
            try:
                if isinstance(content, RequestError):
                    raise content
                row = content if isinstance(content, dict) else decode_row(content)
                custom_id, category = glimpse(row, line=line, columns=columns)
                # Looked up before the row is checked: a rejected row has used its id as well.
                first = line if custom_id is None else seen.first_line(custom_id, line=line)
                if source.is_parquet:
                    row = decode_nested(row, columns=columns)
                request = parse_row(row, index=index, line=line, columns=columns, defaults=defaults)
                if custom_id is None:
                    first = seen.first_line(request.custom_id, line=line)
                if first != line:
                    raise _duplicate(request.custom_id, first=f"{source.unit} {first}")
                yield request
            except RequestError as error:
                yield RejectedLine(
                    index=index,
                    line=line,
                    custom_id=custom_id,
                    message=f"{source.name} {source.unit} {line}: {error.message}",
                    param=error.param,
                    code=error.code,
                    status_code=error.status_code,
                    category=category,
                )


def _duplicate(custom_id: str, *, first: str) -> RequestError:
    return RequestError(
        f'"custom_id" {shown(custom_id)} was already used on {first}: give every request an id of its own',
        param="custom_id",
        code="duplicate_custom_id",
    )
