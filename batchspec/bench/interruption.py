"""A benchmark that is interrupted keeps what is complete: hours of measuring are not lost to a time limit."""

from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["Interruption"]

T = TypeVar("T")


class Interruption:
    """Whether a benchmark was interrupted.

    Attributes:
        error: what the signal raised; None as long as nothing was interrupted.
        num_rounds: complete rounds of what was being measured then; 0 where none of it counts.
    """

    def __init__(self) -> None:
        self.error: KeyboardInterrupt | None = None
        self.num_rounds = 0

    def until(self, measures: Iterable[Callable[[], T]]) -> list[T]:
        """Measure one thing after another until a signal comes; return those that are complete, at least one.

        Raises:
            KeyboardInterrupt: none is.
        """
        done: list[T] = []
        for measure in measures:
            if self.error is not None:
                break
            try:
                done.append(measure())
            except KeyboardInterrupt as error:
                self.error = error
        if self.error is not None and not done:
            raise self.error
        return done

    def rounds(self, measures: Iterable[Callable[[], T]]) -> list[T]:
        """Do the same with the rounds of one measurement, and note how many there were."""
        done = self.until(measures)
        self.num_rounds = len(done) if self.error is not None else 0
        return done
