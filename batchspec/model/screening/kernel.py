"""Between which limits the products of rows with a large weight lie, by products of integers.

These have eight bits of a weight, which takes half the memory traffic of 16-bit floats, and up to sixteen of a row, or
eight where the processor multiplies bytes, many at once.
"""

from typing import Any, NamedTuple

from batchspec.compiled import compiled
from batchspec.model.screening.edges import keep_edges
from batchspec.model.strips.keeping import keeps
from batchspec.model.strips.kernel import share_strips

__all__ = ["screen_some"]


class Limits(NamedTuple):
    """Where limits are kept, and what they are computed from."""

    offsets: Any
    measures: Any
    row_measures: Any
    edges: Any
    num_strips: int


@keeps(Limits)
def _keep_limits(sums: Any, target: Any, row: int, strip: int) -> None:
    offsets, measures, row_measures, edges, num_strips = target
    where = 2 * (row * num_strips + strip)
    keep_edges(sums, offsets, measures, strip, row_measures, row, edges, where, 2 * num_strips)


@compiled(nogil=True)
def screen_some(
    counter: Any, integers: Any, row_measures: Any, strips: Any, offsets: Any, measures: Any, edges: Any
) -> None:
    """Write the limits of every strip; all threads that call it with one counter share the work.

    Args:
        counter: int64 (1,), 0 at first.
        integers: int16 (rows, inputs), the rows in their units, or uint8, in them and 128 more.
        row_measures: float32 (rows, 3): unit, length and rest of each.
        strips: int8 (strips, inputs / 2, STRIP, 2), the weights in their units, or (strips, inputs / 4, STRIP, 4) for
            rows in bytes.
        offsets: int32 (strips, STRIP), to add to each output's sums.
        measures: float32 (strips, 3, STRIP): unit, slack and size of each output.
        edges: float32 (rows, strips, 2), to hold the highest upper and the highest lower limit of a strip's products.
    """
    num_rows, apart = integers.shape
    shape = strips.shape[0], strips.shape[1]
    m, r, e = measures.reshape(measures.size), row_measures.reshape(row_measures.size), edges.reshape(edges.size)
    a, w = integers.reshape(integers.size), strips.reshape(strips.size)
    share_strips(counter, a, num_rows, apart, w, shape, Limits(offsets.reshape(offsets.size), m, r, e, shape[0]))
