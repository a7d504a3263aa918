"""Temperature, top-k, top-p and min-p: what is left of a distribution before a token is drawn from it."""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Many

import torch

__all__ = ["scale", "truncate"]

_MARGIN = 1e-9  # far above the rounding of a logarithm, far below any difference that matters


def scale(logits: torch.Tensor, *, temperature: Many[float]) -> torch.Tensor:
    """Return the logits divided by each row's temperature, shifted so that the largest is 0.

    The shift leaves the distribution as it is, and the smallest temperature cannot push the likeliest token to
    infinity.

    Args:
        logits: float64 (rows, vocabulary).
        temperature: for each row, above 0.
    """
    divisor = torch.tensor(temperature, dtype=torch.float64, device=logits.device)[:, None]
    return (logits - logits.amax(dim=-1, keepdim=True)) / divisor


def truncate(logits: torch.Tensor, *, top_k: Many[int], top_p: Many[float], min_p: Many[float]) -> torch.Tensor:
    """Return the logits with every token that top-k, then top-p, then min-p removes set to minus infinity.

    The order and the treatment of ties are those of transformers' logits processors: every token that ties with the
    k-th stays; the smallest set whose probability reaches top_p stays; probabilities are of what is left.

    Args:
        logits: float64 (rows, vocabulary), already divided by the temperature.
        top_k: for each row; 0 keeps all.
        top_p: for each row; 1 keeps all.
        min_p: for each row; 0 keeps all.
    """
    num_vocabulary = logits.shape[-1]
    keep_k = {row: min(k, num_vocabulary) for row, k in enumerate(top_k) if k}
    logits = _on_rows(logits, keep_k, dtype=torch.int64, keep=_keep_likeliest)
    keep_p = {row: p for row, p in enumerate(top_p) if p < 1}
    logits = _on_rows(logits, keep_p, dtype=logits.dtype, keep=_keep_nucleus)
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
    bound = torch.tensor(list(bounds.values()), dtype=dtype, device=logits.device)[:, None]
    if len(bounds) == len(logits):
        return keep(logits, bound)
    rows = torch.tensor(list(bounds), device=logits.device)
    return logits.index_copy(0, rows, keep(logits[rows], bound))


def _keep_likeliest(logits: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
    kth = logits.topk(int(top_k.max()), dim=-1).values.gather(-1, top_k - 1)
    return logits.masked_fill(logits < kth, -torch.inf)


def _keep_nucleus(logits: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Sort only what may be in the nucleus.

    Tokens no likelier than (1 - top_p) / vocabulary are not: all of them together do not reach 1 - top_p, which is what
    may be removed.
    """
    num_vocabulary = logits.shape[-1]
    log_total = logits.logsumexp(dim=-1, keepdim=True)
    floor = log_total + ((1 - top_p) / num_vocabulary).log() - _MARGIN
    kept = torch.full_like(logits, -torch.inf)
    for row, candidates in enumerate(logits >= floor):
        ids = candidates.nonzero().squeeze(-1)
        values, order = logits[row, ids].sort(stable=True)
        probs = (values - log_total[row]).exp()
        removed = probs.cumsum(dim=-1) + (1 - probs.sum()).clamp(min=0) <= 1 - top_p[row]
        removed[-1:] = False
        ids = ids[order[~removed]]
        kept[row, ids] = logits[row, ids]
    return kept


def _keep_above_floor(logits: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < min_p * probs.amax(dim=-1, keepdim=True), -torch.inf)
