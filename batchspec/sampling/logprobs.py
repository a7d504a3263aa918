"""Log probabilities of the tokens that stand somewhere, and of the likeliest that could have stood there."""

import math
from collections.abc import Sequence as Many

import torch

from batchspec.sampling.blocks import block_tops, ids_from
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
    room = torch.empty_like(logits[0]) if len(logits) else logits
    return [
        _score(row, tops, token_id=token_id, num_top=count, room=room)
        for row, tops, token_id, count in zip(logits, block_tops(logits), token_ids, num_top, strict=True)
    ]


def _score(row: torch.Tensor, tops: torch.Tensor, *, token_id: int, num_top: int, room: torch.Tensor) -> TokenLogprobs:
    """Return a token's log probability, its rank and the likeliest tokens of its row (vocabulary,)."""
    highest = tops.max()
    log_total = torch.sub(row, highest, out=room).exp_().sum().log()
    own = row[token_id]
    return TokenLogprobs(
        token_id=token_id,
        logprob=float(own - highest - log_total),
        rank=int((row[ids_from(row, tops, float(own))] > own).sum()) + 1,
        top=tuple((token, float(row[token] - highest - log_total)) for token in _likeliest(row, tops, num_top)),
    )


def _likeliest(row: torch.Tensor, tops: torch.Tensor, count: int) -> list[int]:
    """Return up to so many tokens of a row, likeliest first."""
    if count == 0:
        return []
    floor = float(tops.topk(count).values[-1]) if count <= len(tops) else -math.inf  # as many blocks reach it
    ids = ids_from(row, tops, floor)
    ids = ids[row[ids] > -math.inf]
    return ids[row[ids].sort(descending=True, stable=True).indices[:count]].tolist()


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
