"""The few tokens of a row that top-k, top-p and min-p can leave, so that most are looked at once."""

from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np
import torch

from batchspec.params import SamplingParams
from batchspec.sampling.blocks import block_tops, ids_from
from batchspec.sampling.truncation import scale, truncate

__all__ = ["Candidates", "find_candidates"]

_MARGIN = 1e-6  # relative, more than float32 rounds off
_DEPTHS = 4.0, 8.0  # below the largest scaled logit, where a nucleus usually ends


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Tokens of rows, among them all that stay behind truncation.

    Attributes:
        ids: int64 (rows, width), ascending, then anything.
        scaled: float64 (rows, width), their logits over the temperature, the largest of each row being 0, behind
            truncation: minus infinity where a token is removed or there is none.
    """

    ids: torch.Tensor
    scaled: torch.Tensor


def find_candidates(logits: torch.Tensor, params: Many[SamplingParams]) -> Candidates:
    """Return what truncation leaves of rows.

    Args:
        logits: float32 or float64 (rows, vocabulary) on the CPU, minus infinity where a token is removed; the largest
            of each row is finite.
        params: of each row; the temperature is above 0.
    """
    tops = block_tops(logits)
    floors = _least_of_top_k(tops, [each.top_k for each in params])
    totals = torch.full((len(params), 1), torch.nan, dtype=torch.float64)
    room = torch.empty(logits.shape[-1], dtype=torch.float64)
    for i, each in enumerate(params):
        highest = float(tops[i].max())
        if each.min_p and not (each.top_k and each.top_p < 1):  # top-p is about all that top-k leaves
            floors[i] = max(floors[i], _below(highest, each.temperature * np.log(each.min_p)))
        if each.top_p < 1 and not each.top_k:
            shares = room.copy_(logits[i]).sub_(highest).div_(each.temperature).exp_()
            totals[i] = total = float(shares.sum())
            floors[i] = max(floors[i], _least_of_nucleus(logits[i], tops[i], shares, total=total, params=each))
    found = [ids_from(row, top, floor) for row, top, floor in zip(logits, tops, floors, strict=True)]
    ids = torch.zeros(len(found), max(1, *map(len, found)), dtype=torch.int64)
    kept = torch.full(ids.shape, -torch.inf, dtype=torch.float64)
    for i, each_ids in enumerate(found):
        ids[i, : len(each_ids)] = each_ids
        kept[i, : len(each_ids)] = logits[i, each_ids]
    scaled = truncate(
        scale(kept, temperature=[each.temperature for each in params]),
        top_k=[each.top_k for each in params],
        top_p=[each.top_p for each in params],
        min_p=[each.min_p for each in params],
        totals=totals,
    )
    return Candidates(ids=ids, scaled=scaled)


def _least_of_top_k(tops: torch.Tensor, top_k: Many[int]) -> list[float]:
    """Return, for each row, a logit that at least top-k tokens reach: as many blocks have one that does."""
    num_blocks = tops.shape[1]
    most = max((k for k in top_k if k <= num_blocks), default=0)
    if not most:
        return [-np.inf] * len(top_k)
    largest = tops.topk(most, dim=-1).values
    return [float(largest[i, k - 1]) if 0 < k <= num_blocks else -np.inf for i, k in enumerate(top_k)]


def _least_of_nucleus(
    row: torch.Tensor, tops: torch.Tensor, shares: torch.Tensor, *, total: float, params: SamplingParams
) -> float:
    """Return a logit below which no token of a row's nucleus is: tokens down to there have more than top-p together.

    Args:
        row: (vocabulary,).
        tops: (blocks,), from ``block_tops``.
        shares: float64 (vocabulary,), exponentials beside the largest.
        total: their sum.
        params: of the row.
    """
    highest, temperature = float(tops.max()), params.temperature
    for depth in _DEPTHS:
        floor = _below(highest, -depth * temperature)
        if float(shares[ids_from(row, tops, floor)].sum()) > (params.top_p + _MARGIN) * total:
            return floor
    share = (1 - params.top_p) / len(row)  # tokens that are no likelier do not reach 1 - top_p, all together
    return _below(highest, temperature * np.log(total * share))


def _below(highest: float, away: float) -> float:
    """Return a little less than ``highest + away``."""
    return highest + away - _MARGIN * (1 + abs(highest) + abs(away))
