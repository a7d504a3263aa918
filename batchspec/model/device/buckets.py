"""The shapes that steps without prefill are rounded up to, so that few of them have to be recorded."""

from dataclasses import dataclass

from batchspec.model.device.shape import MOST_TILE_ROWS, StepShape
from batchspec.step import StepPlan

__all__ = ["Buckets"]

_SMALLEST = 16  # rows, and blocks of a table


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """Decode steps, of one row a sequence, and verify steps, of several: powers of two, up to the largest step.

    Attributes:
        most_sequences: in one step.
        most_drafted: tokens in one draft.
        most_tokens: in one step.
        most_blocks: of one sequence.
        has_full_tables: whether tables are always as wide as the longest sequence; else their width is rounded, too,
            because all that is in them is read.
    """

    most_sequences: int
    most_drafted: int
    most_tokens: int
    most_blocks: int
    has_full_tables: bool

    @property
    def largest(self) -> StepShape:
        """The bucket with the most rows; its tables are narrow unless all are full."""
        return self._rounded(
            num_sequences=self.most_sequences,
            num_rows=self._most_step_rows,
            has_drafts=self._most_rows > 1,
            width=1,
        )

    def fitting(self, plan: StepPlan) -> StepShape | None:
        """Return the smallest bucket that holds a plan; None where a chunk is prefilled, or drafts are very long."""
        chunks = plan.chunks
        if any(len(chunk.token_ids) != chunk.num_rows or chunk.num_prompt_rows for chunk in chunks):
            return None
        most_rows = max(chunk.num_rows for chunk in chunks)
        width = max(len(chunk.sequence.blocks) for chunk in chunks)
        if len(chunks) > self.most_sequences or width > self.most_blocks or most_rows > self._most_rows:
            return None
        return self._rounded(num_sequences=len(chunks), num_rows=plan.num_tokens, has_drafts=most_rows > 1, width=width)

    @property
    def _most_rows(self) -> int:
        """Rows of a sequence; one where the attention of a draft's rows would take more than one tile."""
        return 1 + self.most_drafted if self.most_drafted < MOST_TILE_ROWS else 1

    @property
    def _most_step_rows(self) -> int:
        return min(self.most_sequences * self._most_rows, self.most_tokens)

    def _rounded(self, *, num_sequences: int, num_rows: int, has_drafts: bool, width: int) -> StepShape:
        sequences = _round_up(num_sequences, most=self.most_sequences)
        return StepShape(
            num_sequences=sequences,
            num_rows=_round_up(num_rows, most=self._most_step_rows) if has_drafts else sequences,
            most_rows=self._most_rows if has_drafts else 1,
            width=self.most_blocks if self.has_full_tables else min(_round_up(width), self.most_blocks),
        )


def _round_up(number: int, *, most: int | None = None) -> int:
    """Return the next power of two, at least the smallest; or what holds the most there can be, if that is less."""
    power = max(_SMALLEST, 1 << (number - 1).bit_length())
    return power if most is None else min(power, -(-most // _SMALLEST) * _SMALLEST)
