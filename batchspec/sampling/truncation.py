"""Temperature, top-k, top-p and min-p: what is left of a distribution before a token is drawn from it."""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Many
from functools import partial

import numpy as np
import torch

from batchspec.sampling.moving import beside
from batchspec.sampling.nucleus import keep_nucleus

__all__ = ["scale", "truncate"]


def scale(logits: torch.Tensor, *, temperature: Many[float]) -> torch.Tensor:
    """Return the logits divided by each row's temperature, shifted so that the largest is 0.

    The shift leaves the distribution as it is, and the smallest temperature cannot push the likeliest token to
    infinity.

    Args:
        logits: float64 (rows, vocabulary).
        temperature: for each row, above 0.
    """
    divisor = beside(logits, np.array(temperature, dtype=np.float64))[:, None]
    return (logits - logits.amax(dim=-1, keepdim=True)) / divisor


def truncate(
    logits: torch.Tensor,
    *,
    top_k: Many[int],
    top_p: Many[float],
    min_p: Many[float],
    totals: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the logits with every token that top-k, then top-p, then min-p removes set to minus infinity.

    The order and the treatment of ties are those of transformers' logits processors: every token that ties with the
    k-th stays; the smallest set whose probability reaches top_p stays; probabilities are of what is left.

    Args:
        logits: float64 (rows, vocabulary), already divided by the temperature.
        top_k: for each row; 0 keeps all.
        top_p: for each row; 1 keeps all.
        min_p: for each row; 0 keeps all.
        totals: float64 (rows, 1), the sum over the vocabulary of a row's exponentials beside its largest; NaN, as None
            for all rows, for what there is in ``logits``.
    """
    num_vocabulary = logits.shape[-1]
    keep_k = {row: min(k, num_vocabulary) for row, k in enumerate(top_k) if k}
    likeliest = partial(_keep_likeliest, most=max(keep_k.values(), default=0))
    logits = _on_rows(logits, keep_k, dtype=torch.int64, keep=likeliest)
    keep_p = {row: p for row, p in enumerate(top_p) if p < 1}
    nucleus = keep_nucleus if totals is None else partial(keep_nucleus, totals=totals[list(keep_p)])
    logits = _on_rows(logits, keep_p, dtype=logits.dtype, keep=nucleus)
    keep_above = {row: p for row, p in enumerate(min_p) if p}
    return _on_rows(logits, keep_above, dtype=logits.dtype, keep=_keep_above_floor)


def _on_rows(
    logits: torch.Tensor,
    bounds: Mapping[int, float],
    *,
    dtype: torch.dtype,
    keep: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Return the logits with the rows that have a bound truncated; the very same tensor if none has."""
    if not bounds:
        return logits
    bound = beside(logits, np.array(list(bounds.values()))).to(dtype)[:, None]
    if len(bounds) == len(logits):
        return keep(logits, bound)
    rows = beside(logits, np.array(list(bounds), dtype=np.int64))
    return logits.index_copy(0, rows, keep(logits[rows], bound))


def _keep_likeliest(logits: torch.Tensor, top_k: torch.Tensor, *, most: int) -> torch.Tensor:
    kth = logits.topk(most, dim=-1).values.gather(-1, top_k - 1)
    return logits.masked_fill(logits < kth, -torch.inf)


def _keep_above_floor(logits: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), -torch.inf)
