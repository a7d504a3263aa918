"""The target's own token for each logit row, and what was asked for about it.

On a device, greedy rows and rows of which only the temperature matters are chosen without waiting for it.
"""

from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.sampling.draw import draw, draw_on_device
from batchspec.sampling.largest import largest
from batchspec.sampling.logprobs import token_logprobs
from batchspec.sampling.moving import beside
from batchspec.sampling.noise import noise_key
from batchspec.sampling.processing import process, warp
from batchspec.sampling.rows import Row, rows_to_process
from batchspec.sampling.screened import Screened
from batchspec.sequence import TokenLogprobs
from batchspec.step import Chunk, TokenMasks

__all__ = ["Choices", "choose", "decide"]

_BLOCK_SIZE = 1 << 24  # logits in float64 at a time, to bound the memory


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the target chooses in every row.

    Attributes:
        target_ids: int64 (rows,).
        has_target: bool (rows,), whether the largest raw logit is finite and a token is left to choose.
        is_starved: bool (rows,), whether the largest raw logit is finite and no token is left.
        logprobs: by row, of the target, where they were asked for and there is a target.
    """

    target_ids: torch.Tensor
    has_target: torch.Tensor
    is_starved: torch.Tensor
    logprobs: dict[int, TokenLogprobs]


def choose(chunks: Many[Chunk], logits: torch.Tensor, masks: TokenMasks | None = None) -> torch.Tensor:
    """Return int64 (rows,): the target's token for every row; arguments as for ``decide``."""
    return decide(chunks, logits, masks).target_ids


def decide(chunks: Many[Chunk], logits: torch.Tensor | Screened, masks: TokenMasks | None = None) -> Choices:
    """Choose the target's token for every row.

    Args:
        chunks: the sampled chunks, in the order of their rows.
        logits: (rows, vocabulary), any floating dtype; or screened, which leaves fewer rows to choose in.
        masks: the grammars' masks; None where no row has one.
    """
    target_ids, is_finite, full, places = _opened(logits)
    has_target = is_finite.clone()
    logprobs: dict[int, TokenLogprobs] = {}
    rows = rows_to_process(chunks, masked=set() if masks is None else set(masks.rows.tolist()))
    left = [row for row in rows if places[row.number] >= 0]
    simple = [row for row in left if row.is_simple]
    if simple:
        target_ids[_numbers(simple, full)] = _draw_simple(simple, full, places)
    others = [row for row in left if not row.is_simple]
    size = max(1, _BLOCK_SIZE // full.shape[-1])
    for start in range(0, len(others), size):
        block = others[start : start + size]
        numbers = _numbers(block, full)
        processed = process(block, _picked(block, full, places), masks=masks)
        best, is_left = largest(processed)
        has_target[numbers] &= is_left
        target_ids[numbers] = _draw(block, processed, best=best)
        if any(row.sampling.logprobs is not None for row in block):
            logprobs |= _tell(block, processed, target_ids[numbers].tolist(), has_target[numbers].tolist())
    is_starved = is_finite & ~has_target
    return Choices(target_ids=target_ids, has_target=has_target, is_starved=is_starved, logprobs=logprobs)


def _opened(logits: torch.Tensor | Screened) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, NDArray[np.int64]]:
    """Return tokens by the largest logit, whether that is finite, the rows in full and where in these each row is."""
    if not isinstance(logits, Screened):
        return *largest(logits), logits, np.arange(len(logits))
    target_ids, is_finite = logits.target_ids.clone(), torch.ones(len(logits.places), dtype=torch.bool)
    in_full = torch.from_numpy(logits.places >= 0)
    target_ids[in_full], is_finite[in_full] = largest(logits.full)
    return target_ids, is_finite, logits.full, logits.places


def _numbers(rows: Many[Row], logits: torch.Tensor) -> torch.Tensor:
    return beside(logits, np.array([row.number for row in rows], dtype=np.int64))


def _picked(rows: Many[Row], full: torch.Tensor, places: NDArray[np.int64]) -> torch.Tensor:
    """Return the logits (rows, vocabulary) of rows."""
    chosen = places[[row.number for row in rows]]
    return full if len(chosen) == len(full) else full[beside(full, chosen)]


def _draw_simple(rows: Many[Row], full: torch.Tensor, places: NDArray[np.int64]) -> torch.Tensor:
    """Return int64 (rows,) drawn from the raw logits, of which only the temperature matters."""
    if full.device.type != "cpu":
        size = max(1, _BLOCK_SIZE // full.shape[-1])
        blocks = [rows[first : first + size] for first in range(0, len(rows), size)]
        return torch.cat([_gumbel_max(block, warp(block, _picked(block, full, places).double())) for block in blocks])
    logits = _picked(rows, full, places)
    if logits.dtype not in (torch.float32, torch.float64):
        logits = logits.float()
    best, _ = largest(logits)
    highest = logits[torch.arange(len(logits)), best].double().numpy()
    temperature = np.array([row.sampling.temperature for row in rows])
    return draw(logits, highest=highest, temperature=temperature, keys=np.array(_keys(rows), dtype=np.uint64))


def _draw(rows: Many[Row], processed: torch.Tensor, *, best: torch.Tensor) -> torch.Tensor:
    """Return int64 (rows,) chosen from the processed logits, which become those of the final distribution, in place."""
    places = [i for i, row in enumerate(rows) if row.sampling.temperature > 0]
    if not places:
        return best
    index = beside(processed, np.array(places, dtype=np.int64))
    sampled = [rows[i] for i in places]
    warped = warp(sampled, processed if len(places) == len(rows) else processed[index])
    chosen = best.index_copy(0, index, _gumbel_max(sampled, warped))
    if any(row.sampling.logprobs is not None for row in sampled):
        processed[index] = warped
    return chosen


def _gumbel_max(rows: Many[Row], warped: torch.Tensor) -> torch.Tensor:
    """Return int64 (rows,) drawn from float64 logits (rows, vocabulary), of which the largest of each row is 0."""
    if warped.device.type != "cpu":
        return draw_on_device(warped, _keys(rows))
    keys = np.array(_keys(rows), dtype=np.uint64)
    return draw(warped, highest=np.zeros(len(rows)), temperature=np.ones(len(rows)), keys=keys)


def _keys(rows: Many[Row]) -> list[int]:
    return [
        noise_key(seed=row.sampling.seed, sample_index=row.sequence.sample_index, position=row.position) for row in rows
    ]


def _tell(
    rows: Many[Row], final: torch.Tensor, target_ids: list[int], has_target: list[bool]
) -> dict[int, TokenLogprobs]:
    """Return, by number of the logit row, the log probabilities that were asked for."""
    asked = [
        (i, row.sampling.logprobs) for i, row in enumerate(rows) if row.sampling.logprobs is not None and has_target[i]
    ]
    if not asked:
        return {}
    places = [i for i, _ in asked]
    scores = token_logprobs(
        final[torch.tensor(places, device=final.device)],
        token_ids=[target_ids[i] for i in places],
        num_top=[num_top for _, num_top in asked],
    )
    return {rows[i].number: score for i, score in zip(places, scores, strict=True)}
