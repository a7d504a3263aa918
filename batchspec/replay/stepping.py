"""The compiled loops that take steps over what prompt lookup found."""

from typing import Any

from batchspec.compiled import compiled, inner

__all__ = ["COLUMNS", "add_steps", "count_lookups", "take"]

COLUMNS = (
    "num_spec_steps",
    "num_draft_tokens",
    "num_accepted_draft_tokens",
    "num_decode_steps",
    "num_undecided_tokens",
)
"""What is counted for each request and setting, in the order of the arrays' last axis."""


@inner
def _step(drafted: Any, agreed: Any, position: int, most: int) -> tuple[int, int]:
    """Return the length of the draft before an output token, at most ``most``, and how much of it agrees."""
    length = max(0, min(drafted[position], most))
    return length, min(agreed[position], length)


@compiled()
def take(drafted: Any, agreed: Any, num_spec_tokens: int, room: int, steps: Any) -> tuple[int, int]:
    """Fill in position, draft length and matches of every step with a draft; return their number and that of all.

    Args:
        drafted: int32 (m,), by output position the most tokens of a draft.
        agreed: int32 (m,), how many of them agree.
        num_spec_tokens: the most tokens of a draft.
        room: output tokens and draft tokens together must not be more.
        steps: int32 (3, m), filled.
    """
    num_steps = num_decode_steps = 0
    position = 1
    while position < len(drafted):
        num_decode_steps += 1
        length, accepted = _step(drafted, agreed, position, min(num_spec_tokens, room - position))
        if length:
            steps[0, num_steps], steps[1, num_steps], steps[2, num_steps] = position, length, accepted
            num_steps += 1
        position += accepted + 1
    return num_steps, num_decode_steps


@compiled()
def count_lookups(
    drafted: Any, agreed: Any, num_known: int, room: int, ks: Any, counts: Any, histograms: Any, lengths: Any
) -> None:
    """Add the steps of every draft length to its counts.

    Args:
        drafted: as in ``take``.
        agreed: see there.
        num_known: output tokens and those cut off behind them.
        room: as in ``take``.
        ks: int64 (settings,), the most tokens of a draft.
        counts: (settings, len(COLUMNS)), added to.
        histograms: (settings, most + 1) of accepted tokens, added to.
        lengths: (settings, most + 1) of draft lengths, added to.
    """
    for setting in range(len(ks)):
        num_steps = num_drafted = num_accepted = num_decode_steps = num_undecided = 0
        position = 1
        while position < len(drafted):
            length, accepted = _step(drafted, agreed, position, min(ks[setting], room - position))
            num_decode_steps += 1
            if length:
                num_steps += 1
                num_drafted += length
                num_accepted += accepted
                num_undecided += _undecided(length, accepted, position, num_known)
                histograms[setting, accepted] += 1
                lengths[setting, length] += 1
            position += accepted + 1
        _add(counts[setting], num_steps, num_drafted, num_accepted, num_decode_steps, num_undecided)


@compiled()
def add_steps(
    position: Any,
    drafted: Any,
    accepted: Any,
    num_decode_steps: int,
    num_known: int,
    counts: Any,
    histogram: Any,
    lengths: Any,
) -> None:
    """Add the steps of one setting to its counts.

    Args:
        position: int32 (steps,), output tokens before each step with a draft.
        drafted: int32 (steps,).
        accepted: int32 (steps,).
        num_decode_steps: with a draft or without.
        num_known: as in ``count_lookups``, like the next three.
        counts: (len(COLUMNS),).
        histogram: (most + 1,).
        lengths: (most + 1,).
    """
    num_drafted = num_accepted = num_undecided = 0
    for step in range(len(position)):
        num_drafted += drafted[step]
        num_accepted += accepted[step]
        num_undecided += _undecided(drafted[step], accepted[step], position[step], num_known)
        histogram[accepted[step]] += 1
        lengths[drafted[step]] += 1
    _add(counts, len(position), num_drafted, num_accepted, num_decode_steps, num_undecided)


@inner
def _undecided(length: int, accepted: int, position: int, num_known: int) -> int:
    """Return how many of a draft's tokens stand behind all that is known, with everything before them accepted."""
    return length - accepted if position + accepted == num_known else 0


@inner
def _add(
    counts: Any, num_steps: int, num_drafted: int, num_accepted: int, num_decode_steps: int, num_undecided: int
) -> None:
    counts[0] += num_steps
    counts[1] += num_drafted
    counts[2] += num_accepted
    counts[3] += num_decode_steps
    counts[4] += num_undecided
