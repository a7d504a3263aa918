"""From rows, of a file or of a caller, to requests; a row that cannot be served comes as a rejection, in its place."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import orjson

from batchspec.errors import RequestError, UsageError
from batchspec.files.defaults import RowDefaults
from batchspec.files.identity import Columns, glimpse
from batchspec.files.rows import parse_row
from batchspec.files.seen import SeenIds
from batchspec.files.wording import shown
from batchspec.request import Intake, NotYet, RejectedLine, Request, Where, naming

__all__ = ["RowTaker", "plain_row", "take_rows"]

_Read = Callable[[], Mapping[str, Any]]
_Name = Callable[[int], str]
_Notice = Callable[[Mapping[str, Any], int], None]
_Refine = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class RowTaker:
    """Turns rows into requests and remembers their ids: of several rows with one id the first is taken.

    Args:
        where: how messages name the row of a number.
        earlier: how they name it in a sentence about another row.
        columns: where a bare row keeps its prompt and its id.
        defaults: for sampling fields that a row does not give.
        seen: the ids so far.
        notice: is shown every row that makes a request, and its number.
    """

    def __init__(
        self,
        *,
        where: _Name,
        earlier: _Name,
        columns: Columns,
        defaults: RowDefaults,
        seen: SeenIds,
        notice: _Notice = lambda *_: None,
    ):
        self.where = where
        self.earlier = earlier
        self.columns = columns
        self.defaults = defaults
        self.seen = seen
        self.notice = notice

    def take(
        self,
        read: _Read,
        *,
        index: int,
        line: int,
        refine: _Refine = lambda row: row,
    ) -> Intake:
        """Return the request that a row makes, or why it makes none; a rejected row has used its id as well.

        Args:
            read: returns the row, or raises RequestError.
            index: 0-based ordinal of the row.
            line: its 1-based number.
            refine: called once the id is known; returns the row as it is to be parsed, or raises RequestError.
        """
        custom_id = category = None
        try:
            row = read()
            custom_id, category = glimpse(row, line=line, columns=self.columns)
            first = line if custom_id is None else self.seen.first_line(custom_id, line=line)
            request = parse_row(refine(row), index=index, line=line, columns=self.columns, defaults=self.defaults)
            if custom_id is None:
                first = self.seen.first_line(request.custom_id, line=line)
            if first != line:
                raise _duplicate(request.custom_id, first=self.earlier(first))
        except RequestError as error:
            return RejectedLine(
                index=index,
                line=line,
                custom_id=custom_id,
                message=f"{self.where(line)}: {error.message}",
                param=error.param,
                code=error.code,
                status_code=error.status_code,
                category=category,
            )
        self.notice(row, line)
        return request

    def pass_over(self, read: _Read, *, index: int, line: int, refine: _Refine) -> None:
        """Note the id of a row as ``take`` does, and parse it no further than that needs; arguments as there."""
        try:
            custom_id, _ = glimpse(read(), line=line, columns=self.columns)
        except RequestError:
            return
        if custom_id is None:
            self.take(read, index=index, line=line, refine=refine)
        else:
            self.seen.first_line(custom_id, line=line)


def take_rows(
    rows: Iterable[Mapping[str, Any] | Intake | NotYet], *, where: Where, defaults: RowDefaults, is_sorted: bool = True
) -> Iterator[Intake | NotYet]:
    """Yield a Request or RejectedLine for every row, lazily; what was parsed before is passed on as it is.

    A row's index follows that of the row before it.

    Args:
        rows: batch lines, bare rows, and lines that were parsed already; ``NotYet`` where there is none at the moment.
        where: how messages name a row: a function of its number, or what stands before the number.
        defaults: for sampling fields that a row does not give.
        is_sorted: whether the indices of parsed lines must grow.

    Raises:
        UsageError: a row is neither a mapping nor parsed, or an index does not grow that must.
    """
    index, named = -1, naming(where)
    with SeenIds() as seen:
        taker = RowTaker(where=named, earlier=named, columns=Columns(), defaults=defaults, seen=seen)
        for row in rows:
            if isinstance(row, Request | RejectedLine):
                if is_sorted and row.index <= index:
                    raise UsageError(
                        f"{named(row.line)} with index {row.index} follows index {index}: let the indices grow"
                    )
                index = row.index
                yield row
            elif isinstance(row, NotYet):
                yield row
            elif isinstance(row, Mapping):
                index += 1
                yield taker.take(partial(dict, row), index=index, line=index + 1, refine=plain_row)
            else:
                raise UsageError(f"{named(index + 2)} is a {type(row).__name__}: give a mapping or a parsed request")


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a caller's row as it would be read from a file: arrays for tuples, numbers for numpy's.

    Raises:
        RequestError: it holds something that JSON has not, such as half of a surrogate pair.
    """
    try:
        plain: dict[str, Any] = orjson.loads(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY))
    except TypeError as error:
        raise RequestError(
            f"the request cannot be written as JSON ({error}): give text, numbers, lists and mappings",
            code="invalid_json_line",
        ) from error
    return plain


def _duplicate(custom_id: str, *, first: str) -> RequestError:
    return RequestError(
        f'"custom_id" {shown(custom_id)} was already used on {first}: give every request an id of its own',
        param="custom_id",
        code="duplicate_custom_id",
    )
