"""What requests are told apart by, and the numbers of the groups that this makes."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from batchspec.errors import UsageError
from batchspec.files.wording import shown
from batchspec.ingest import LogRecord
from batchspec.ingest.summaries import Summaries
from batchspec.report.logs.columns import ABSENT

__all__ = ["Grouping", "Groups"]

_MAX_GROUPS = 500


class Grouping(StrEnum):
    """What requests are told apart by."""

    CATEGORY = "category"
    ENGINE = "engine"
    FILE = "file"


class Groups:
    """Numbers groups as they come up.

    Args:
        by: what requests are told apart by; None for no groups.
    """

    def __init__(self, *, by: Grouping | None):
        self._by = by
        self._numbers: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """The groups' names, in the order of their numbers."""
        return list(self._numbers)

    def number(self, record: LogRecord) -> int:
        """Return the number of a record's group, ``ABSENT`` for none.

        Raises:
            UsageError: there are more than 500 groups.
        """
        if self._by is None:
            return ABSENT
        names = {Grouping.CATEGORY: record.category, Grouping.ENGINE: record.engine, Grouping.FILE: record.path}
        return self._of(names[self._by])

    def numbers(self, summaries: Summaries, *, path: str) -> NDArray[np.int64]:
        """Return the numbers of many requests' groups.

        Args:
            summaries: requests of one block.
            path: their log.

        Raises:
            UsageError: there are more than 500 groups.
        """
        if self._by is Grouping.CATEGORY:
            return np.array([self._of(name) for name in summaries.categories], dtype=np.int64)
        if self._by is Grouping.ENGINE:
            engines = ("batchspec" if is_own else "vllm" for is_own in summaries.is_batchspec.tolist())
            return np.array([self._of(name) for name in engines], dtype=np.int64)
        return np.full(len(summaries.places), ABSENT if self._by is None else self._of(path), dtype=np.int64)

    def _of(self, name: str | None) -> int:
        """Return the number of a group; a new one gets the next."""
        if name is None:
            return ABSENT
        number = self._numbers.setdefault(name, len(self._numbers))
        if number == _MAX_GROUPS:
            raise UsageError(
                f"the logs have more than {_MAX_GROUPS} different values of {self._by}, {shown(name)} being one of "
                f"them: leave out --by {self._by}, or give fewer logs at once"
            )
        return number
