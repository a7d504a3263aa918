"""Numbers of a benchmark as its tables show them."""

from collections.abc import Callable, Mapping

from batchspec.report.layout import decimal

__all__ = ["gigabytes", "milliseconds", "percent", "ranged", "times"]


def ranged(spread: Mapping[str, float], form: Callable[[float], str]) -> str:
    """Return a median and the range around it."""
    return f"{form(spread['median'])} ({form(spread['min'])} to {form(spread['max'])})"


def times(ratio: float) -> str:
    """Return a ratio as a factor."""
    return f"{decimal(ratio, digits=3 if 0.95 < ratio < 1.05 else 2)}\N{MULTIPLICATION SIGN}"


def milliseconds(seconds: float) -> str:
    """Return seconds in thousandths."""
    return decimal(seconds * 1000, digits=2 if seconds < 0.1 else 0)


def gigabytes(number: float) -> str:
    """Return bytes in thousand millions."""
    return decimal(number / 1e9, digits=1)


def percent(share: float) -> str:
    """Return a share of one in hundredths."""
    return f"{decimal(share * 100, digits=1)} %"
