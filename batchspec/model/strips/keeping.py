"""What becomes of a strip's sums: by the type of what they are for; functions as arguments are not kept on disk."""

import inspect
from collections.abc import Callable
from typing import Any

from numba.extending import overload

__all__ = ["keep", "keeps"]

Keep = Callable[[Any, Any, int, int], None]


def keep(sums: Any, target: Any, row: int, strip: int) -> None:
    """Do with the sums of some rows, the first of them and the strip given, what goes with the type of ``target``."""
    raise NotImplementedError


def keeps(kind: type) -> Callable[[Keep], Keep]:
    """Make a function, which is compiled, what ``keep`` does where ``target`` is a named tuple of a type."""

    def decorate(write: Keep) -> Keep:
        def choose(sums: Any, target: Any, row: Any, strip: Any) -> Any:
            del sums, row, strip
            return write if getattr(target, "instance_class", None) is kind else None

        choose.__signature__ = inspect.signature(write)  # type: ignore[attr-defined]  # numba compares them
        overload(keep)(choose)
        return write

    return decorate
