"""Log probabilities of the tokens that stand somewhere, and of the likeliest that could have stood there."""

from collections.abc import Sequence as Many

import torch

from batchspec.sequence import TokenLogprobs
from batchspec.step import Chunk, StepPlan

__all__ = ["score_prompt", "token_logprobs"]

_BLOCK_SIZE = 1 << 24  # logits in float64 at a time


def token_logprobs(logits: torch.Tensor, *, token_ids: Many[int], num_top: Many[int]) -> list[TokenLogprobs]:
    """Return natural log probabilities under the softmax of each row.

    Tokens are ranked by their logits, ties in the list by the lower id; tokens of probability zero are not listed.

    Args:
        logits: float64 (rows, vocabulary), minus infinity where a token is removed.
        token_ids: for each row, the token that stands there.
        num_top: for each row, how many of the likeliest tokens to list.
    """
    logprobs = logits.log_softmax(dim=-1)
    ids = torch.tensor(token_ids, device=logits.device)[:, None]
    own = logprobs.gather(-1, ids).squeeze(-1).tolist()
    ranks = ((logits > logits.gather(-1, ids)).sum(dim=-1) + 1).tolist()
    return [
        TokenLogprobs(token_id=token_ids[i], logprob=own[i], rank=ranks[i], top=_likeliest(logits[i], logprobs[i], k))
        for i, k in enumerate(num_top)
    ]


def _likeliest(logits: torch.Tensor, logprobs: torch.Tensor, k: int) -> tuple[tuple[int, float], ...]:
    """Return up to k (token id, log probability) of one row, likeliest first."""
    k = min(k, len(logits))
    if k == 0:
        return ()
    kth = logits.topk(k).values[-1]
    ids = ((logits >= kth) & (logits > -torch.inf)).nonzero().squeeze(-1)  # ascending, with all that tie with the k-th
    ids = ids[logits[ids].sort(descending=True, stable=True).indices[:k]]
    return tuple(zip(ids.tolist(), logprobs[ids].tolist(), strict=True))


def score_prompt(plan: StepPlan, logits: torch.Tensor) -> dict[int, list[TokenLogprobs]]:
    """Return, by position in ``plan.scored``, the log probabilities of the prompt tokens behind the prompt rows.

    They are of the model's own distribution, the softmax of the raw logits.

    Args:
        plan: the step.
        logits: (sampled rows + prompt rows, vocabulary), any floating dtype.
    """
    scores = {}
    first = plan.num_sampled_rows
    for position, chunk in enumerate(plan.scored):
        scores[position] = _score_chunk(chunk, logits[first : first + chunk.num_prompt_rows])
        first += chunk.num_prompt_rows
    return scores


def _score_chunk(chunk: Chunk, logits: torch.Tensor) -> list[TokenLogprobs]:
    following = chunk.sequence.tokens[chunk.start + 1 : chunk.start + 1 + len(logits)].tolist()
    num_top = [chunk.sequence.sampling.prompt_logprobs or 0] * len(logits)
    scores = []
    size = max(1, _BLOCK_SIZE // logits.shape[-1])
    for start in range(0, len(logits), size):
        rows = slice(start, start + size)
        scores += token_logprobs(logits[rows].double(), token_ids=following[rows], num_top=num_top[rows])
    return scores
