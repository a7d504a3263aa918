"""Rows whose token hangs on nothing but the raw logits, a temperature and noise, as the language head is told them."""

from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from batchspec.sampling.noise import noise_key
from batchspec.sampling.rows import is_plain, is_simple
from batchspec.step import Chunk

__all__ = ["SimpleRows", "simple_rows"]


@dataclass(frozen=True, kw_only=True)
class SimpleRows:
    """For each logit row, whether it is simple and how its token is then chosen.

    Attributes:
        is_simple: bool (rows,).
        temperature: float64 (rows,), 0 where the largest logit is chosen.
        keys: uint64 (rows,), of the noise, see ``noise.noise_key``; 0 where there is none.
    """

    is_simple: NDArray[np.bool_]
    temperature: NDArray[np.float64]
    keys: NDArray[np.uint64]


def simple_rows(chunks: Many[Chunk]) -> SimpleRows:
    """Return what is known of the rows before there are logits; where a grammar may mask rows they are not simple.

    Args:
        chunks: the sampled chunks, in the order of their rows.
    """
    simple: list[bool] = []
    temperature: list[float] = []
    keys: list[int] = []
    for chunk in chunks:
        sequence, num_rows = chunk.sequence, chunk.num_rows
        draws = is_simple(sequence)
        simple += [sequence.grammar is None and (draws or is_plain(sequence))] * num_rows
        temperature += [sequence.sampling.temperature if draws else 0.0] * num_rows
        keys += [_key(chunk, i) if draws else 0 for i in range(num_rows)]
    return SimpleRows(
        is_simple=np.array(simple, dtype=np.bool_),
        temperature=np.array(temperature, dtype=np.float64),
        keys=np.array(keys, dtype=np.uint64),
    )


def _key(chunk: Chunk, num_drafted: int) -> int:
    sequence = chunk.sequence
    position = sequence.num_tokens + num_drafted
    return noise_key(seed=sequence.sampling.seed, sample_index=sequence.sample_index, position=position)
