"""Columns of bare rows that no parameter is named after: they are ignored, which is said once."""

from collections.abc import Callable, Mapping
from typing import Any

from batchspec.files.identity import ID_COLUMNS, Columns
from batchspec.files.parameters import HONOURED, IGNORED, OFF_VALUES
from batchspec.files.rows import is_batch_line
from batchspec.files.wording import listed

__all__ = ["IgnoredColumns"]

_KNOWN = HONOURED | IGNORED | OFF_VALUES.keys() | {*ID_COLUMNS, "category", "turns"}


class IgnoredColumns:
    """Tells of the first bare row with columns that are ignored.

    Args:
        columns: where a bare row keeps its prompt and its id.
        where: how messages name the row of a number.
        say: is told one sentence.
    """

    def __init__(self, *, columns: Columns, where: Callable[[int], str], say: Callable[[str], None]):
        self._columns = columns
        self._known = _KNOWN | {name for name in (columns.prompt, columns.id) if name is not None}
        self._where = where
        self._say = say
        self._is_said = False

    def notice(self, row: Mapping[str, Any], line: int) -> None:
        """Look at a row that made a request."""
        if self._is_said or row.keys() <= self._known or is_batch_line(row, columns=self._columns):
            return
        names = [name for name, value in row.items() if name not in self._known and value is not None]
        if names:
            self._is_said = True
            self._say(f"{self._where(line)}: no parameter is called {listed(names, limit=4)}: ignored, here and below")
