"""How many rows are multiplied at once."""

from batchspec.compiled import inner
from batchspec.model.strips.processor import HAS_WIDE_VECTORS

__all__ = ["HIGHEST", "MOST_OF_FEW", "height_of"]

MOST_OF_FEW = 6
"""What 16 registers can hold."""

HIGHEST = 16 if HAS_WIDE_VECTORS else MOST_OF_FEW
"""Rows at once: their sums, the weights and a factor fill half of 32 long registers, or all of 16 shorter ones."""


@inner
def height_of(rest: int) -> int:
    """Return how many of the rows that are left to multiply at once: 1 to 6, or with wide vectors 8, 12 or 16, too."""
    if HAS_WIDE_VECTORS:
        return 16 if rest >= 16 else 12 if rest >= 12 else 8 if rest >= 8 else min(rest, MOST_OF_FEW)
    return rest if rest <= HIGHEST else (rest + 1) // 2 if rest <= 2 * HIGHEST else HIGHEST
