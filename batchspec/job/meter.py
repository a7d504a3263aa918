"""Rates and a token-based estimate of the time left, from a run's plain counts."""

from collections import deque

from batchspec.api import Progress
from batchspec.files import InputSource

__all__ = ["Meter"]

_WINDOW_SECONDS = 15.0


class Meter:
    """Turns counts into one line of text.

    Args:
        progress: the engine's counts, which grow while they are read.
        source: the input, which knows or estimates how many rows it holds.
        num_shards: runs that share the rows of the input.
        num_before: rows that an earlier, interrupted run has finished.
        now: the monotonic clock in seconds.
    """

    def __init__(self, progress: Progress, source: InputSource, *, num_before: int, now: float, num_shards: int = 1):
        self._progress = progress
        self._source = source
        self._num_before = num_before
        self._num_shards = num_shards
        self._readings = deque([(now, 0)])

    @property
    def num_done(self) -> int:
        """Rows finished, those of earlier runs included."""
        return self._num_before + self._progress.num_done

    @property
    def num_rows(self) -> int | None:
        """Rows of the input: counted as they came once all have come, before that what is known of the file."""
        if self._progress.is_exhausted:
            return self._num_before + self._progress.num_requests
        known = self._source.num_rows
        return known if known is None or self._num_shards == 1 else round(known / self._num_shards)

    def line(self, *, now: float) -> str:
        """Return requests done, output tokens per second, acceptance so far and the time left."""
        progress = self._progress
        rate = self._tokens_per_second(now)
        parts = [
            f"{self.num_done:,}/{self._total()} requests",
            f"{progress.output_tokens:,} tokens",
            f"{rate:,.0f} tok/s",
        ]
        if progress.num_draft_tokens:
            accepted = progress.num_accepted_draft_tokens / progress.num_draft_tokens
            parts.append(f"{accepted:.0%} of drafts accepted")
        if progress.num_failed:
            parts.append(f"{progress.num_failed:,} failed")
        parts.append(f"ETA {self._time_left(rate)}")
        return " · ".join(parts)

    def _total(self) -> str:
        if self.num_rows is None:
            return "?"
        is_exact = self._source.is_parquet and self._num_shards == 1
        is_estimate = not (self._progress.is_exhausted or is_exact)
        return f"{'~' if is_estimate else ''}{self.num_rows:,}"

    def _tokens_per_second(self, now: float) -> float:
        readings = self._readings
        readings.append((now, self._progress.output_tokens))
        while len(readings) > 2 and now - readings[0][0] > _WINDOW_SECONDS:
            readings.popleft()
        (first, before), (last, after) = readings[0], readings[-1]
        return (after - before) / (last - first) if last > first else 0.0

    def _time_left(self, rate: float) -> str:
        """Estimate from the tokens left: rows to come, each as long as those done so far."""
        progress = self._progress
        if self.num_rows is None or not progress.num_done or not rate:
            return "unknown"
        tokens_per_row = progress.output_tokens / progress.num_done
        tokens_left = max(0.0, (self.num_rows - self._num_before) * tokens_per_row - progress.output_tokens)
        minutes, seconds = divmod(round(tokens_left / rate), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
