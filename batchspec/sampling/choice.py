"""The target's own token for each logit row, and what was asked for about it.

On a device, greedy rows and rows of which only the temperature matters are chosen without waiting for it.
"""

from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.sampling.draw import draw_on_device
from batchspec.sampling.largest import largest
from batchspec.sampling.logprobs import token_logprobs
from batchspec.sampling.moving import beside
from batchspec.sampling.on_cpu import draw_rows, draw_warped, keys_of
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
    on_cpu = full.device.type == "cpu"
    if on_cpu:
        left = [row for row in left if is_finite[row.number]]
    raw = [row for row in left if (row.is_raw if on_cpu else row.is_simple)]
    others = [row for row in left if not (row.is_raw if on_cpu else row.is_simple)]
    size = max(1, _BLOCK_SIZE // full.shape[-1])
    for start in range(0, len(raw), size):
        block = raw[start : start + size]
        target_ids[_numbers(block, full)] = _draw_raw(block, _picked(block, full, places))
    for start in range(0, len(others), size):
        block = others[start : start + size]
        numbers = _numbers(block, full)
        processed = process(block, _picked(block, full, places), masks=masks)
        best, is_left = largest(processed)
        has_target[numbers] &= is_left
        target_ids[numbers] = _draw(block, processed, best=best, is_left=is_left)
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


def _draw_raw(rows: Many[Row], logits: torch.Tensor) -> torch.Tensor:
    """Return int64 (rows,) drawn from raw logits (rows, vocabulary): by temperature and truncation alone."""
    if logits.device.type != "cpu":
        return draw_on_device(warp(rows, logits.double()), keys_of(rows))
    return draw_rows(rows, logits if logits.dtype in (torch.float32, torch.float64) else logits.float())


def _draw(rows: Many[Row], processed: torch.Tensor, *, best: torch.Tensor, is_left: torch.Tensor) -> torch.Tensor:
    """Return int64 (rows,) chosen from the processed logits.

    On the CPU those of rows that are told about become the logits of their final distribution, in place, elsewhere
    those of all rows that draw.
    """
    on_cpu = processed.device.type == "cpu"
    chosen = best.clone()
    warm = [i for i, row in enumerate(rows) if row.sampling.temperature > 0]
    quick = [i for i in warm if on_cpu and rows[i].sampling.logprobs is None and is_left[i]]
    if quick:
        chosen[quick] = draw_rows([rows[i] for i in quick], processed[quick])
    others = [i for i in warm if not on_cpu or rows[i].sampling.logprobs is not None]
    if others:
        index = beside(processed, np.array(others, dtype=np.int64))
        sampled = [rows[i] for i in others]
        processed[index] = warped = warp(sampled, processed[index])
        chosen[index] = draw_warped(sampled, warped) if on_cpu else draw_on_device(warped, keys_of(sampled))
    return chosen


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
