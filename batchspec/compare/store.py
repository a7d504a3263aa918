"""The answers of one run, kept on disk until the other run's are there."""

import sqlite3
from types import TracebackType
from typing import Any

import orjson

from batchspec.compare.answers import Output
from batchspec.errors import UsageError

__all__ = ["OutputStore"]


class OutputStore:
    """Outputs by id; memory does not grow with their number; a context manager."""

    def __init__(self) -> None:
        # The empty name is SQLite's temporary database: a small cache in memory that spills to an unlinked file.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("CREATE TABLE outputs (id TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def put(self, custom_id: str, outputs: tuple[Output, ...]) -> None:
        """Keep the outputs of a request.

        Raises:
            UsageError: the temporary directory has no room for them.
        """
        data = orjson.dumps([[output.text, output.token_ids, output.finish_reason] for output in outputs])
        try:
            self._database.execute("INSERT INTO outputs VALUES (?, ?)", (custom_id, data))
        except sqlite3.Error as error:
            raise UsageError(f"answers cannot be kept on disk ({error}): set TMPDIR to where there is room") from error

    def get(self, custom_id: str) -> tuple[Output, ...] | None:
        """Return the outputs of a request, None when there are none."""
        found = self._database.execute("SELECT data FROM outputs WHERE id = ?", (custom_id,)).fetchone()
        if found is None:
            return None
        kept: list[tuple[str, Any, str | None]] = orjson.loads(found[0])
        return tuple(Output(text=text, token_ids=ids, finish_reason=reason) for text, ids, reason in kept)

    def __enter__(self) -> "OutputStore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
