"""How large the arrays of one step are."""

from collections.abc import Sequence as Many
from dataclasses import dataclass

from batchspec.model.device.span import Span
from batchspec.model.linear import RowCounts

__all__ = ["MOST_TILE_ROWS", "StepShape", "exact_shape"]

MOST_TILE_ROWS = 32  # rows of a sequence whose attention is computed at once where the keys are gathered for it


@dataclass(frozen=True, kw_only=True)
class StepShape:
    """Sizes of a step's arrays.

    Attributes:
        num_sequences: sequences, padding included; as many as rows where none has more than one.
        num_rows: packed rows, padding included.
        most_rows: rows that a sequence has at the most.
        width: blocks that a sequence has at the most.
    """

    num_sequences: int
    num_rows: int
    most_rows: int
    width: int

    @property
    def tile_rows(self) -> int:
        """Rows of a tile: a piece of a sequence's rows."""
        return min(self.most_rows, MOST_TILE_ROWS)


def exact_shape(spans: Many[Span], *, row_counts: RowCounts) -> StepShape:
    """Return the smallest shape that holds a step of at least one span; only its rows are padded."""
    counts = [len(span.token_ids) for span in spans]
    num_rows, most_rows = row_counts(sum(counts)), max(counts)
    return StepShape(
        num_sequences=num_rows if most_rows == 1 else len(spans),
        num_rows=num_rows,
        most_rows=most_rows,
        width=max(len(span.blocks) for span in spans),
    )
