"""Cells of the tables: a value with its interval."""

from collections.abc import Sequence

from batchspec.report.layout import decimal

__all__ = ["ranged"]

_PERCENT = ("draft_acceptance_rate", "steps_saved")


def ranged(name: str, value: float | None, interval: Sequence[float] | None) -> str:
    """Return a value with its interval."""
    if value is None or interval is None:
        return _shown(name, value)
    low, high = (_shown(name, end).removesuffix(" %") for end in interval)
    return f"{_shown(name, value)} ({low} to {high})"


def _shown(name: str, value: float | None) -> str:
    if name in _PERCENT and value is not None:
        return f"{decimal(100 * value, digits=1)} %"
    return decimal(None if value is None else round(value, 2) + 0.0, digits=2)  # no -0.00
