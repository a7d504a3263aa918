"""The ids seen so far, kept on disk so that memory does not grow with the input."""

import sqlite3
from types import TracebackType

from batchspec.errors import UsageError

__all__ = ["SeenIds"]


class SeenIds:
    """Remembers the line on which each id first stood; a context manager."""

    def __init__(self) -> None:
        # The empty name is SQLite's temporary database: a small cache in memory that spills to an unlinked file.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, line INTEGER NOT NULL) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def first_line(self, custom_id: str, *, line: int) -> int:
        """Return the line that had this id first, which is ``line`` itself for a new id.

        Raises:
            UsageError: the temporary directory has no room for the ids.
        """
        insert = "INSERT INTO seen VALUES (?, ?) ON CONFLICT DO NOTHING"
        try:
            if self._database.execute(insert, (custom_id, line)).rowcount:
                return line
            return int(self._database.execute("SELECT line FROM seen WHERE id = ?", (custom_id,)).fetchone()[0])
        except sqlite3.Error as error:
            raise UsageError(f"ids cannot be kept on disk ({error}): set TMPDIR to where there is room") from error

    def __enter__(self) -> "SeenIds":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
