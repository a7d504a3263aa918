"""The common row, a batch line with vLLM's ``summary`` metrics, many at a time as columns.

The way of ``entries`` gives the same numbers one by one. This one takes only rows that are certainly as they should be,
by looking at the fewest fields and checking the identities of a whole block at once; whatever it does not take goes
the other way, where it is read with care and its faults get a sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.ingest.blocks import Row
from batchspec.ingest.numbers import MAX_COUNT, MAX_DRAFT

__all__ = ["Summaries", "take_summaries"]

_NUM_COUNTS = 9
_NOT_TOLD = (0, 0, 1)
_INTEGERS = {int}
_OK = (200, None)
_SUMMARY = itemgetter(
    "mean_acceptance_length",
    "draft_acceptance_rate",
    "acceptance_histogram",
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_spec_tokens",
)
_NUM_FIELDS = 7  # the level ``detailed`` has more
_USAGE = itemgetter("completion_tokens", "prompt_tokens")

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Summaries:
    """Requests of one block whose numbers are exact and agree with each other.

    Attributes:
        places: where in the block each request stands.
        categories: of each request; None without one.
        is_batchspec: whether each states ``metrics.batchspec``.
        num_spec_steps: (requests,) as all that follow, in the meaning of ``Acceptance``.
        num_accepted_draft_tokens: in the same order.
        num_draft_tokens: in the same order.
        num_spec_tokens: in the same order.
        completion_tokens: in the same order.
        num_decode_steps: meaningless without ``is_batchspec``.
        num_discarded_tokens: meaningless without ``is_batchspec``.
        num_turns: 1 where it is not told.
        histogram: acceptance histograms one behind the other, each k + 1 long.
    """

    places: Integers
    categories: list[str | None]
    is_batchspec: NDArray[np.bool_]
    num_spec_steps: Integers
    num_accepted_draft_tokens: Integers
    num_draft_tokens: Integers
    num_spec_tokens: Integers
    completion_tokens: Integers
    num_decode_steps: Integers
    num_discarded_tokens: Integers
    num_turns: Integers
    histogram: Integers


class _Found:
    """The numbers of a block before they are believed."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self.categories: list[str | None] = []
        self.is_batchspec: list[bool] = []
        self.counts: list[Any] = []
        self.histogram: list[Any] = []
        self.lengths: list[int] = []

    def look_at(self, place: int, row: Any) -> None:
        """Take the numbers of a row that looks as it should.

        Raises:
            KeyError, TypeError, AttributeError: it does not.
        """
        response, category = row["response"], row.get("category")
        body = response["body"]
        metrics = body["metrics"]
        block, beside = metrics["speculative_decoding"], metrics.get("batchspec")
        *_, histogram, steps, accepted, drafted, longest = _SUMMARY(block)
        if (
            len(block) != _NUM_FIELDS
            or type(histogram) is not list
            or row.get("error")
            or body.get("error")
            or response.get("status_code") not in _OK
            or type(row["custom_id"]) is not str
            or (category is not None and type(category) is not str)
            or (beside is not None and "per_step_position" in beside)
        ):
            return
        emitted = _NOT_TOLD if beside is None else _emitted(beside)
        self.counts += (steps, accepted, drafted, longest, *_USAGE(body["usage"]), *emitted)
        self.places.append(place)
        self.categories.append(category)
        self.is_batchspec.append(beside is not None)
        self.histogram += histogram
        self.lengths.append(len(histogram))


def _emitted(beside: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return beside["num_decode_steps"], beside["num_discarded_tokens"], beside.get("num_turns", 1)


def _integers_only(found: _Found) -> _Found:
    """Return the rows in which every number is an integer; seldom needed, so one by one."""
    kept, end = _Found(), 0
    for index, length in enumerate(found.lengths):
        counts, histogram = found.counts[index * _NUM_COUNTS :][:_NUM_COUNTS], found.histogram[end : end + length]
        end += length
        if set(map(type, counts + histogram)) == _INTEGERS:
            kept.places.append(found.places[index])
            kept.categories.append(found.categories[index])
            kept.is_batchspec.append(found.is_batchspec[index])
            kept.counts += counts
            kept.histogram += histogram
            kept.lengths.append(length)
    return kept


def take_summaries(rows: list[Row]) -> tuple[Summaries | None, list[Row]]:
    """Return the summaries of a block, None without any, and the rows that are to go the other way.

    Args:
        rows: a block of a log.
    """
    found = _Found()
    for place, (_, row) in enumerate(rows):
        try:
            found.look_at(place, row)
        except (KeyError, TypeError, AttributeError):
            continue
    if found.places and set(map(type, found.counts)) | set(map(type, found.histogram)) != _INTEGERS:
        found = _integers_only(found)
    summaries = _believed(found) if found.places else None
    if summaries is None:
        return None, rows
    taken = np.zeros(len(rows), dtype=bool)
    taken[summaries.places] = True
    return summaries, [row for row, is_taken in zip(rows, taken.tolist(), strict=True) if not is_taken]


def _believed(found: _Found) -> Summaries | None:
    """Return the requests whose numbers agree with each other; None without any."""
    try:
        counts = np.array(found.counts, dtype=np.int64).reshape(-1, _NUM_COUNTS)
        histogram = np.array(found.histogram, dtype=np.int64)
    except OverflowError:
        return None
    lengths = np.array(found.lengths)
    steps, accepted, drafted, longest, output, _, decoded, discarded, turns = counts.T
    is_batchspec = np.array(found.is_batchspec)
    is_good = (counts >= 0).all(axis=1) & (counts <= MAX_COUNT).all(axis=1) & (longest <= MAX_DRAFT)
    is_good &= (lengths == longest + 1) & (accepted <= drafted) & (drafted <= steps * longest) & (turns > 0)
    is_good &= ~is_batchspec | (output == turns + decoded + accepted - discarded)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    indices = np.arange(len(histogram)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_good &= np.bincount(owners, weights=(histogram < 0) | (histogram > MAX_COUNT), minlength=len(lengths)) == 0
    is_good &= np.bincount(owners, weights=histogram, minlength=len(lengths)) == steps
    is_good &= np.bincount(owners, weights=histogram * indices, minlength=len(lengths)) == accepted
    if not is_good.any():
        return None
    good = counts[is_good].T
    return Summaries(
        places=np.array(found.places)[is_good],
        categories=[category for category, is_kept in zip(found.categories, is_good.tolist(), strict=True) if is_kept],
        is_batchspec=is_batchspec[is_good],
        num_spec_steps=good[0],
        num_accepted_draft_tokens=good[1],
        num_draft_tokens=good[2],
        num_spec_tokens=good[3],
        completion_tokens=good[4],
        num_decode_steps=good[6],
        num_discarded_tokens=good[7],
        num_turns=good[8],
        histogram=histogram[is_good[owners]],
    )
