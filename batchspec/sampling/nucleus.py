"""The nucleus of a distribution: the smallest set of likeliest tokens whose probability reaches top-p."""

import torch

__all__ = ["keep_nucleus", "keep_nucleus_at_once"]

_MARGIN = 1e-9  # far above the rounding of a logarithm, far below any difference that matters


def keep_nucleus(logits: torch.Tensor, top_p: torch.Tensor, *, totals: torch.Tensor | None = None) -> torch.Tensor:
    """Return the logits with what is outside of each row's nucleus set to minus infinity.

    Only what may be in the nucleus is sorted. Tokens no likelier than (1 - top_p) / vocabulary are not: all of them
    together do not reach 1 - top_p, which is what may be removed.

    Args:
        logits: float64 (rows, vocabulary).
        top_p: float64 (rows, 1), below 1.
        totals: float64 (rows, 1), as for ``truncation.truncate``, on the CPU only.
    """
    if logits.device.type != "cpu":
        return keep_nucleus_at_once(logits, top_p)
    highest, total = _total(logits)
    floor = _floor(highest, total, top_p, num_vocabulary=logits.shape[-1])
    if totals is not None:  # the row is only a part, of which nothing more can be left out
        is_whole = totals.isnan()
        total = torch.where(is_whole, total, totals)
        floor = floor.masked_fill(~is_whole, torch.finfo(floor.dtype).min)  # which removed tokens do not reach
    kept = torch.full_like(logits, -torch.inf)
    for row, candidates in enumerate(logits >= floor):
        ids = candidates.nonzero().squeeze(-1)
        values, order = logits[row, ids].sort(stable=True)
        probs = (values - highest[row]).exp() / total[row]
        removed = probs.cumsum(dim=-1) + (1 - probs.sum()).clamp(min=0) <= 1 - top_p[row]
        removed[-1:] = False
        ids = ids[order[~removed]]
        kept[row, ids] = logits[row, ids]
    return kept


def keep_nucleus_at_once(logits: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Return the same as ``keep_nucleus`` without asking the device how many tokens may be in it: all are sorted."""
    highest, total = _total(logits)
    is_candidate = logits >= _floor(highest, total, top_p, num_vocabulary=logits.shape[-1])
    values, order = logits.masked_fill(~is_candidate, -torch.inf).sort(dim=-1, stable=True)
    probs = (values - highest).exp() / total
    outside = (1 - probs.sum(dim=-1, keepdim=True)).clamp(min=0)
    removed = probs.cumsum(dim=-1) + outside <= 1 - top_p
    removed[:, -1] = False
    return torch.empty_like(logits).scatter_(-1, order, values.masked_fill(removed, -torch.inf))


def _total(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float64 (rows, 1) each: the largest logit, and the sum of all exponentials beside its own.

    A quotient by that sum is exact where a few tokens share all probability evenly, as ties do; a logarithm is not.
    """
    highest = logits.amax(dim=-1, keepdim=True)
    return highest, (logits - highest).exp().sum(dim=-1, keepdim=True)


def _floor(highest: torch.Tensor, total: torch.Tensor, top_p: torch.Tensor, *, num_vocabulary: int) -> torch.Tensor:
    """Return float64 (rows, 1): logits below are outside of the nucleus."""
    return highest + total.log() + ((1 - top_p) / num_vocabulary).log() - _MARGIN
