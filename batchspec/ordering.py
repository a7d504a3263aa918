"""Records leave in the order in which their lines came in, or as they are done."""

from collections import deque
from collections.abc import Iterator
from typing import Any

__all__ = ["Lane"]


class Lane:
    """Holds finished records back until every earlier line has its own.

    Args:
        in_order: False lets every record leave as soon as it is done.
        most_held: records held back before ``is_full`` asks for no new lines, which bounds the memory.
    """

    def __init__(self, *, in_order: bool, most_held: int):
        self.in_order = in_order
        self.most_held = most_held
        self._order: deque[int] = deque()
        self._done: dict[int, dict[str, Any]] = {}

    @property
    def is_full(self) -> bool:
        """Whether no new line should be taken until the head of the lane is done."""
        return len(self._done) >= self.most_held

    def open(self, index: int) -> None:
        """Take note of a line that came in."""
        self._order.append(index)

    def close(self, index: int, record: dict[str, Any]) -> None:
        """Hand in the record of a line that came in earlier."""
        self._done[index] = record

    def held(self) -> Iterator[dict[str, Any]]:
        """Yield the records that are done and have not left, without letting them go."""
        return iter(self._done.values())

    def ready(self) -> Iterator[dict[str, Any]]:
        """Yield and forget the records that may leave now."""
        if not self.in_order:
            self._order.clear()
            while self._done:
                yield self._done.pop(next(iter(self._done)))
            return
        while self._order and self._order[0] in self._done:
            yield self._done.pop(self._order.popleft())
