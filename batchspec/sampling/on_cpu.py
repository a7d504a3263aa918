"""Draws on the CPU, which look at most tokens of a vocabulary once."""

from collections.abc import Sequence as Many

import numpy as np
import torch

from batchspec.sampling.candidates import find_candidates
from batchspec.sampling.draw import draw, draw_among
from batchspec.sampling.noise import noise_key
from batchspec.sampling.rows import Row

__all__ = ["draw_rows", "draw_warped", "keys_of"]


def draw_rows(rows: Many[Row], logits: torch.Tensor) -> torch.Tensor:
    """Return int64 (rows,), drawn with temperature and truncation.

    Args:
        rows: whose temperature is above 0.
        logits: float32 or float64 (rows, vocabulary), minus infinity where a token is removed; the largest of each row
            is finite.
    """
    chosen = torch.zeros(len(rows), dtype=torch.int64)
    cut = torch.tensor([row.is_truncated for row in rows])
    for index, find in ((~cut, _draw_whole), (cut, _draw_cut)):
        numbers = index.nonzero().squeeze(-1)
        if len(numbers):
            some = logits if len(numbers) == len(rows) else logits[numbers]
            chosen[numbers] = find([rows[i] for i in numbers.tolist()], some)
    return chosen


def draw_warped(rows: Many[Row], warped: torch.Tensor) -> torch.Tensor:
    """Return int64 (rows,), drawn from final distributions: float64 (rows, vocabulary), the largest of each being 0."""
    keys = np.array(keys_of(rows), dtype=np.uint64)
    return draw(warped, highest=np.zeros(len(rows)), temperature=np.ones(len(rows)), keys=keys)


def keys_of(rows: Many[Row]) -> list[int]:
    """Return the key of each row's noise."""
    return [
        noise_key(seed=row.sampling.seed, sample_index=row.sequence.sample_index, position=row.position) for row in rows
    ]


def _draw_whole(rows: Many[Row], logits: torch.Tensor) -> torch.Tensor:
    temperature = np.array([row.sampling.temperature for row in rows])
    highest = logits.amax(dim=-1).double().numpy()
    return draw(logits, highest=highest, temperature=temperature, keys=np.array(keys_of(rows), dtype=np.uint64))


def _draw_cut(rows: Many[Row], logits: torch.Tensor) -> torch.Tensor:
    found = find_candidates(logits, [row.sampling for row in rows])
    return draw_among(found.scaled, ids=found.ids, keys=np.array(keys_of(rows), dtype=np.uint64))
