"""What every setting adds up to, by request: integers, of which everything that is printed is made."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.replay.growing import Growing
from batchspec.replay.lookups import Lookups
from batchspec.replay.recorded import Recorded
from batchspec.replay.stepping import COLUMNS, add_steps, count_lookups
from batchspec.replay.trace import Trace

__all__ = ["Tallies"]


class Tallies:
    """Adds up the steps of every setting.

    Args:
        lengths: the most draft tokens of each setting.

    Attributes:
        histograms: by category, int64 (2, settings, most + 1): how many steps accepted so many draft tokens, and how
            many drafted so many.
    """

    def __init__(self, lengths: Sequence[int]):
        self._ks = np.array(lengths, dtype=np.int64)
        self._counts = Growing(len(lengths), len(COLUMNS), dtype=np.int32)
        self.histograms: dict[str | None, NDArray[np.int64]] = {}

    @property
    def counts(self) -> NDArray[np.int32]:
        """Counts by request, int32 (requests, settings, len(COLUMNS))."""
        return self._counts.array

    def add_lookups(self, settings: slice, one: Recorded, lookups: Lookups, *, room: int) -> None:
        """Add what prompt lookup found in an output, for settings that differ in the draft length alone.

        Args:
            settings: their places.
            one: the output.
            lookups: found in it, with drafts as long as any of the settings asks for.
            room: the most output and draft tokens together.
        """
        counts, histograms = self._entries(one)
        num_known = len(one.output) + len(one.cut)
        accepted, drafted = histograms[0, settings], histograms[1, settings]
        count_lookups(*lookups, num_known, room, self._ks[settings], counts[settings], accepted, drafted)

    def add_trace(self, setting: int, one: Recorded, trace: Trace) -> None:
        """Add the steps that a setting takes over an output."""
        counts, histograms = self._entries(one)
        num_known = len(one.output) + len(one.cut)
        add_steps(
            trace.position,
            trace.drafted,
            trace.accepted,
            trace.num_decode_steps,
            num_known,
            counts[setting],
            histograms[0, setting],
            histograms[1, setting],
        )

    def _entries(self, one: Recorded) -> tuple[Any, NDArray[np.int64]]:
        histograms = self.histograms.get(one.category)
        if histograms is None:
            shape = (2, len(self._ks), int(self._ks.max()) + 1)
            histograms = self.histograms[one.category] = np.zeros(shape, dtype=np.int64)
        return self._counts.entry(one.row), histograms
