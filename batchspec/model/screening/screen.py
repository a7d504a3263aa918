"""The token that a row chooses, without computing all of its logits in float32."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.screening.kernel import screen_some
from batchspec.model.screening.packing import pack_integers
from batchspec.model.screening.settling import settle_some
from batchspec.model.strips import StripLinear
from batchspec.model.strips.kernel import STRIP
from batchspec.model.strips.processor import HAS_BYTES
from batchspec.threads import together

__all__ = ["Screen"]

_ROWS_AT_ONCE = 1 << 12  # of the weight, a whole number of strips
_BYTE = 127  # the largest of a row's integers in bytes, on both sides of zero
_SHORT = 2**15 - 2  # the same in int16, one less than it holds for what rounding adds
_MOST = 2**31 - 1
_UP = 1.00001
_CALM = 1e-18, 1e18  # between which a row's largest number has to be, for no product to be out of float32's range
_CROWD = 1 / 8  # share of the strips that have to be multiplied, above which integers save nothing
_PAUSE = 64  # calls, after which it is tried again


class Screen:
    """A weight without bias that tells which output of a row is chosen, exactly as all logits would.

    With weights w = u q + r, u a unit and q integers up to 127, and a row x = v p + d in the same way, w . x differs
    from u v (q . p), which integers give exactly, by (u q) . d + r . x; by the inequality of Cauchy and Schwarz that is
    at most |u q| |d| + |r| |x|. Sums in float32 are off by at most n 2**-24 of |w| |x| for n inputs to first order
    (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1); twice that is added.

    Attributes:
        num_bytes: of the integers and what belongs to them.
        num_tried: strips that the last call had to multiply in float32, over all rows.

    Args:
        weight: (outputs, inputs), any floating dtype, that the head was made of; not kept.
        head: the same weight in strips; shared.
        scales: float64 (inputs,), positive, by which weights are multiplied and rows divided before they become
            integers; where inputs that are large in rows are small in the weights, limits come closer by it.
        in_bytes: rows become integers of eight bits, not sixteen, and are multiplied by the instruction for bytes.

    Raises:
        ValueError: a weight is infinite, not a number or out of all proportion, or there are too many inputs.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        head: StripLinear,
        *,
        scales: NDArray[np.float64] | None = None,
        in_bytes: bool = HAS_BYTES,
    ):
        num_outputs, num_inputs = weight.shape
        self._num_outputs = num_outputs
        self._head = head
        self._scales = np.ones(num_inputs) if scales is None else scales.astype(np.float64)
        self._in_bytes = in_bytes
        at_once, num_strips = 4 if in_bytes else 2, len(head.strips)
        self._depth = -(-num_inputs // at_once) * at_once
        if self._depth * 2 * (_BYTE + 1) ** 2 > _MOST:
            raise ValueError("more inputs than their products' sums have room for")
        self._packed = np.zeros((num_strips, self._depth // at_once, STRIP, at_once), dtype=np.int8)
        self._measures = np.zeros((num_strips, 3, STRIP), dtype=np.float32)
        self._offsets = np.zeros((num_strips, STRIP), dtype=np.int32)
        self._measures[:, 1] = np.inf  # what is left of the last strip stays without limits
        self._pause = 0
        self.num_tried = 0
        self._edges = np.empty(0, dtype=np.float32)
        firsts = range(0, num_outputs, _ROWS_AT_ONCE)
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            if not all(pool.map(lambda first: self._pack(weight[first : first + _ROWS_AT_ONCE], first), firsts)):
                raise ValueError("weights that are no usual numbers")
        self._offsets *= -(_BYTE + 1) if in_bytes else 0
        self.num_bytes = self._packed.nbytes + self._measures.nbytes + self._offsets.nbytes

    def _pack(self, part: torch.Tensor, first: int) -> bool:
        strips = slice(first // STRIP, first // STRIP + -(-len(part) // STRIP))
        rows, error_share = self._head.kept(part).float().numpy(), (part.shape[1] + 16) * 2.0**-23
        parts = self._packed[strips], self._offsets[strips], self._measures[strips]
        are_usual: bool = pack_integers(rows, self._scales, *parts, error_share)
        return are_usual

    def is_worth_it(self) -> bool:
        """Return whether few products had to be computed in float32 of late; each call counts as one."""
        self._pause = max(0, self._pause - 1)
        return not self._pause

    def is_calm(self, rows: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return bool (rows,): which rows can be screened, being finite and of a usual size."""
        highest = np.abs(rows).max(axis=1, initial=0.0)
        calm: NDArray[np.bool_] = (highest >= _CALM[0]) & (highest <= _CALM[1])
        return calm

    def __call__(
        self, rows: NDArray[np.float32], *, temperature: NDArray[np.float64], keys: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """Return int64 (rows,): the first of each row's largest outputs, or what is drawn from them.

        Args:
            rows: float32 (rows, inputs), all calm.
            temperature: float64 (rows,), 0 for the largest.
            keys: uint64 (rows,), of the noise.
        """
        given, strips = self._head.given(torch.from_numpy(rows)), self._head.strips
        integers, row_measures = self._integers(self._head.seen(rows))
        edges = self._room(len(rows))
        found, tried = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        counters = np.zeros((2, 1), dtype=np.int64)
        num_threads = torch.get_num_threads()
        together(
            num_threads,
            lambda: screen_some(
                counters[0], integers, row_measures, self._packed, self._offsets, self._measures, edges
            ),
        )
        together(
            min(num_threads, len(rows)),
            lambda: settle_some(counters[1], given, strips, edges, self._num_outputs, temperature, keys, found, tried),
        )
        self.num_tried = int(tried.sum())
        if self.num_tried > _CROWD * len(strips) * len(rows):
            self._pause = _PAUSE
        return found

    def _integers(self, rows: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """Return int16 or uint8 (rows, inputs) and float32 (rows, 3): unit, length and rest of each row."""
        most = (
            _BYTE if self._in_bytes else min(_SHORT, _MOST // (_BYTE * self._depth) - 1)
        )  # sums being no more than int32
        wide = rows / self._scales
        units = (np.abs(wide).max(axis=1, keepdims=True) / most).astype(np.float32).astype(np.float64)
        numbers = np.clip(np.rint(wide / units), -most, most)
        integers = np.zeros((len(rows), self._depth), dtype=np.uint8 if self._in_bytes else np.int16)
        integers[:, : rows.shape[1]] = numbers + (_BYTE + 1 if self._in_bytes else 0)
        lengths = [np.linalg.norm(part, axis=1) * _UP for part in (wide, wide - numbers * units)]
        return integers, np.column_stack((units, *lengths)).astype(np.float32)

    def _room(self, num_rows: int) -> NDArray[np.float32]:
        """Return float32 (rows, strips, 2), the same memory again and again."""
        num_strips = len(self._packed)
        size = num_rows * num_strips * 2
        if self._edges.size < size:
            self._edges = np.empty(size, dtype=np.float32)
        return self._edges[:size].reshape(num_rows, num_strips, 2)
