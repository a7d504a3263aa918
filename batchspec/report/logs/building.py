"""From requests, one by one or many at a time, to their columns."""

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from batchspec.ingest import Acceptance
from batchspec.ingest.summaries import Summaries
from batchspec.report.logs.columns import ABSENT, FIELDS, MARKED, Columns, Integers, Ragged

__all__ = ["ColumnsBuilder", "known_drafts"]

_BESIDE = ("num_decode_steps", "num_discarded_tokens")


class ColumnsBuilder:
    """Takes requests in one by one."""

    def __init__(self) -> None:
        self._counts = [array("i") for _ in FIELDS]
        self._completion, self._turns, self._group = array("i"), array("i"), array("i")
        self._derived, self._estimated = array("i"), array("i")
        self._histogram, self._histogram_lengths = array("i"), array("i")
        self._drafted, self._drafted_lengths, self._knows_drafted = array("i"), array("i"), array("i")
        self._bits: dict[frozenset[str], int] = {}

    def __len__(self) -> int:
        return len(self._group)

    def add(self, acceptance: Acceptance, *, completion_tokens: int | None, group: int) -> None:
        """Add one request.

        Args:
            acceptance: what it states.
            completion_tokens: tokens of its output; None where they are not told.
            group: number of its group, ``ABSENT`` for none.
        """
        values = (
            acceptance.num_spec_steps,
            acceptance.num_accepted_draft_tokens,
            acceptance.num_draft_tokens,
            acceptance.num_spec_tokens,
            acceptance.num_decode_steps,
            acceptance.num_discarded_tokens,
        )
        for column, value in zip(self._counts, values, strict=True):
            column.append(ABSENT if value is None else value)
        self._completion.append(ABSENT if completion_tokens is None else completion_tokens)
        self._turns.append(acceptance.num_turns)
        self._group.append(group)
        self._derived.append(self._bits_of(acceptance.derived))
        self._estimated.append(self._bits_of(acceptance.estimated))
        histogram = acceptance.acceptance_histogram or ()
        self._histogram.extend(histogram)
        self._histogram_lengths.append(len(histogram))
        drafted, is_all = known_drafts(acceptance)
        self._drafted.extend(drafted)
        self._drafted_lengths.append(len(drafted))
        self._knows_drafted.append(is_all)

    def extend(self, summaries: Summaries, *, groups: NDArray[np.int64]) -> None:
        """Add many requests at once, as ``add`` would one by one.

        Args:
            summaries: what they state.
            groups: (requests,) numbers of their groups.
        """
        number = len(groups)
        for column, name in zip(self._counts, FIELDS, strict=True):
            values = getattr(summaries, name)
            if name in _BESIDE:
                values = np.where(summaries.is_batchspec, values, ABSENT)
            _append(column, values)
        _append(self._completion, summaries.completion_tokens)
        _append(self._turns, summaries.num_turns)
        _append(self._group, groups)
        _append(self._derived, np.zeros(number))
        _append(self._estimated, np.zeros(number))
        _append(self._histogram, summaries.histogram)
        _append(self._histogram_lengths, summaries.num_spec_tokens + 1)
        drafted, lengths, is_all = _known_drafts(summaries)
        _append(self._drafted, drafted)
        _append(self._drafted_lengths, lengths)
        _append(self._knows_drafted, is_all)

    def _bits_of(self, names: frozenset[str]) -> int:
        bits = self._bits.get(names)
        if bits is None:
            bits = self._bits[names] = sum(1 << index for index, name in enumerate(MARKED) if name in names)
        return bits

    def columns(self) -> Columns:
        """Return what was added; nothing may be added any more."""
        counts = {name: _integers(column) for name, column in zip(FIELDS, self._counts, strict=True)}
        return Columns(
            counts=counts | {"completion_tokens": _integers(self._completion)},
            num_turns=_integers(self._turns),
            group=_integers(self._group),
            derived=_integers(self._derived),
            estimated=_integers(self._estimated),
            histogram=Ragged(values=_integers(self._histogram), lengths=_integers(self._histogram_lengths)),
            drafted=Ragged(values=_integers(self._drafted), lengths=_integers(self._drafted_lengths)),
            knows_drafted=_integers(self._knows_drafted),
        )


def known_drafts(acceptance: Acceptance) -> tuple[Sequence[int], bool]:
    """Return how many steps drafted each position as far as that is told, and whether that is all of them.

    Nothing is concluded from a drafted total that was itself derived, nor from steps that may have had no draft.
    """
    steps, drafted, longest = acceptance.num_spec_steps, acceptance.num_draft_tokens, acceptance.num_spec_tokens
    if acceptance.per_step_drafted is not None:
        return _reaching(acceptance.per_step_drafted), True
    if acceptance.num_drafted_per_position is not None:
        return acceptance.num_drafted_per_position, True
    if steps is None or "acceptance_histogram" in acceptance.derived or "num_spec_steps" in acceptance.estimated:
        return (), False
    if longest and drafted is not None and "num_draft_tokens" not in acceptance.derived:
        if drafted == steps * longest:
            return [steps] * longest, True
        if longest == 2:
            return [steps, drafted - steps], True
    return [steps], not steps


def _reaching(lengths: Sequence[int]) -> list[int]:
    """Return for each position the number of drafts that are longer."""
    reaching, total = [], 0
    for length in range(max(lengths, default=0), 0, -1):
        total += lengths.count(length)
        reaching.append(total)
    return reaching[::-1]


def _known_drafts(
    summaries: Summaries,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return what ``known_drafts`` does for many requests: counts by position, number of positions, whether all."""
    steps, drafted, longest = summaries.num_spec_steps, summaries.num_draft_tokens, summaries.num_spec_tokens
    is_full = (drafted == steps * longest) & (longest > 0)
    lengths = np.where(is_full, longest, np.where(longest == 2, 2, 1))
    values = np.repeat(steps, lengths)
    is_second_left = ~is_full & (longest == 2)
    values[np.cumsum(lengths)[is_second_left] - 1] = (drafted - steps)[is_second_left]
    return values, lengths, is_full | is_second_left | (steps == 0)


def _append(column: "array[int]", values: NDArray[np.generic]) -> None:
    column.frombytes(values.astype(np.int32).tobytes())


def _integers(column: "array[int]") -> Integers:
    return np.frombuffer(column, dtype=np.int32) if column else np.zeros(0, dtype=np.int32)
