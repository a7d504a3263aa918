"""Ratios and their means; an empty denominator gives None, never a number."""

__all__ = ["MeanOfRatios", "acceptance_length", "ratio"]


def ratio(numerator: int, denominator: int) -> float | None:
    """Return the quotient, or None when there is nothing to divide by."""
    return numerator / denominator if denominator else None


def acceptance_length(*, num_accepted: int, num_steps: int) -> float | None:
    """Return ``1 + accepted / steps`` in tokens per verification step, or None without a step."""
    return 1 + num_accepted / num_steps if num_steps else None


# Every finite float is a whole multiple of one over this.
_SCALE = 2**1074


class MeanOfRatios:
    """A running mean that does not depend on the order of its terms.

    The floats are summed exactly, as integers, and the mean is rounded once, as ``statistics.mean`` does it.
    """

    __slots__ = ("_scaled_total", "num_terms")

    def __init__(self) -> None:
        self._scaled_total = 0
        self.num_terms = 0

    def add(self, term: float | None) -> None:
        """Add one term; an absent one is left out."""
        if term is not None:
            numerator, denominator = term.as_integer_ratio()
            self._scaled_total += numerator * (_SCALE // denominator)
            self.num_terms += 1

    @property
    def value(self) -> float | None:
        """The mean, or None when no term was added."""
        return self._scaled_total / (_SCALE * self.num_terms) if self.num_terms else None
