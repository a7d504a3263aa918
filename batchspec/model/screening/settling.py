"""Which token each row chooses, given between which limits its logits lie.

Where the limits leave it open, a strip is multiplied in float32, just as ``strips.kernel`` does it: the result is the
one that all logits would have given, to the last bit.
"""

from typing import Any, NamedTuple

import numpy as np

from batchspec.compiled import compiled, inner
from batchspec.model.attending.lanes import claim
from batchspec.model.strips.keeping import keeps
from batchspec.model.strips.kernel import STRIP, take_strip
from batchspec.model.strips.sixteen import store_rows
from batchspec.sampling.draw import least_bits, noise, noise_bits, reaches

__all__ = ["settle_some"]


class One(NamedTuple):
    """Where the products of one row with one strip are kept."""

    products: Any


@keeps(One)
def _keep_one(sums: Any, target: Any, row: int, strip: int) -> None:  # noqa: ARG001  # numba knows no del
    store_rows(sums, target.products, 0, STRIP)


@inner
def _multiply(row: int, head: Any, strip: int, products: Any) -> None:
    """Write a row's products with a strip."""
    rows, apart, strips, num_steps = head
    take_strip(row, row + 1, rows, apart, strips, strip, num_steps, One(products))


@inner
def _largest(row: int, head: Any, edges: Any, num_outputs: int, products: Any, found: Any) -> Any:
    """Return the largest logit and how many strips were multiplied for it; write its token's id into ``found``."""
    lower, highest, count = np.float32(-np.inf), np.float32(-np.inf), 0
    for strip in range(edges.shape[1]):
        lower = max(lower, edges[row, strip, 1])
    for strip in range(edges.shape[1]):
        if edges[row, strip, 0] >= lower:
            _multiply(row, head, strip, products)
            count += 1
            for lane in range(min(STRIP, num_outputs - strip * STRIP)):
                if products[lane] > highest:
                    highest, found[row] = products[lane], strip * STRIP + lane
    return highest, count


@inner
def _drawn(
    row: int,
    head: Any,
    edges: Any,
    num_outputs: int,
    products: Any,
    found: Any,
    highest: float,
    temperature: float,
    key: Any,
) -> int:
    """Write the token with the largest logit plus noise, as ``sampling.draw`` does; return the strips multiplied."""
    best, count = -np.inf, 0
    for strip in range(edges.shape[1]):
        first, last = strip * STRIP, min((strip + 1) * STRIP, num_outputs)
        lead = (np.float64(edges[row, strip, 0]) - highest) / temperature - best
        if not reaches(key, first, last, least_bits(lead)):
            continue
        _multiply(row, head, strip, products)
        count += 1
        for token in range(first, last):
            scaled = (np.float64(products[token - first]) - highest) / temperature
            bits = noise_bits(key, token)
            if bits < least_bits(scaled - best):
                continue
            perturbed = scaled + noise(bits)
            if perturbed > best:
                best, found[row] = perturbed, token
    return count


@compiled(nogil=True)
def settle_some(
    counter: Any,
    rows: Any,
    strips: Any,
    edges: Any,
    num_outputs: int,
    temperature: Any,
    keys: Any,
    found: Any,
    tried: Any,
) -> None:
    """Choose the token of each row; all threads that call it with one counter share the rows.

    Args:
        counter: int64 (1,), 0 at first.
        rows: as for ``strips.kernel.multiply_some``.
        strips: likewise.
        edges: from ``kernel.screen_some``.
        num_outputs: outputs of the weight; what is left of the last strip does not count.
        temperature: float64 (rows,), 0 for the largest logit.
        keys: uint64 (rows,), of the noise.
        found: int64 (rows,), to hold the token ids.
        tried: int64 (rows,), to hold how many strips were multiplied.
    """
    head = rows.reshape(rows.size), rows.shape[1], strips.reshape(strips.size), strips.shape[1]
    products = np.empty(STRIP, dtype=np.float32)
    row = claim(counter)
    while row < len(rows):
        highest, count = _largest(row, head, edges, num_outputs, products, found)
        if temperature[row] > 0.0:
            top = np.float64(highest)
            count += _drawn(row, head, edges, num_outputs, products, found, top, temperature[row], keys[row])
        tried[row] = count
        row = claim(counter)
