"""Sample and compare: a draft token is accepted while it equals the token that the target itself chooses.

The target's token at each position is a deterministic function of logits, parameters, context, seed, sample and
position (see ``sampling``), so the first mismatch already is the right token, and the output does not depend on the
draft.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.sampling import Choices, Screened, decide, score_prompt
from batchspec.step import StepPlan, TokenMasks, Verdicts

__all__ = ["acceptance_mask", "fetched_together", "judge"]

_Fetched = tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]


def judge(plan: StepPlan, logits: torch.Tensor | Screened, masks: TokenMasks | None = None) -> Verdicts:
    """Choose the target's token for every logit row and compare the drafts with them, for the whole batch at once.

    A row has a target if its largest raw logit is finite and the request's parameters leave a token to choose: with
    NaN, overflow, nothing but minus infinity, or every token forbidden it has none.

    Args:
        plan: the step that the rows belong to.
        logits: (rows, vocabulary), any floating dtype: for chunk after chunk of ``plan.sampled`` 1 + draft length rows,
            then for chunk after chunk of ``plan.scored`` its prompt rows. Or screened, if there are none of these.
        masks: which tokens the grammars allow; None where no row has one.
    """
    sampled = logits if isinstance(logits, Screened) else logits[: plan.num_sampled_rows]
    choices = decide(plan.sampled, sampled, masks)
    target_ids, has_target, is_starved = _fetched(choices)
    num_rows = np.array([chunk.num_rows for chunk in plan.sampled], dtype=np.int64)
    firsts = np.cumsum(num_rows) - num_rows
    drafting = [(first, chunk.draft) for first, chunk in zip(firsts, plan.sampled, strict=True) if chunk.draft]
    num_drafted = np.array([len(draft) for _, draft in drafting], dtype=np.int64)
    accepted = acceptance_mask(drafting, target_ids=target_ids, has_target=has_target)
    return Verdicts(
        target_ids=target_ids,
        has_target=has_target,
        is_starved=is_starved,
        num_drafted=num_drafted,
        accepted=accepted,
        logprobs=choices.logprobs,
        prompt_logprobs={} if isinstance(logits, Screened) else score_prompt(plan, logits),
    )


def _fetched(choices: Choices) -> _Fetched:
    """Return targets, whether they are there and whether they are starved, in the host's memory."""
    if choices.target_ids.device.type != "cpu":
        return fetched_together(choices)
    return choices.target_ids.numpy(), choices.has_target.numpy(), choices.is_starved.numpy()


def fetched_together(choices: Choices) -> _Fetched:
    """Do the same in one transfer: here the host waits for a device, and as a rule nowhere else in a step."""
    together = torch.stack((choices.target_ids, choices.has_target.long(), choices.is_starved.long())).cpu().numpy()
    return together[0], together[1].astype(np.bool_), together[2].astype(np.bool_)


def acceptance_mask(
    drafting: list[tuple[int, list[int]]], *, target_ids: NDArray[np.int64], has_target: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return bool (drafting chunks, longest draft): draft token i and all before it equal the target's.

    Args:
        drafting: first logit row and draft of each chunk that has a draft.
        target_ids: int64 (rows,).
        has_target: bool (rows,); no draft token equals a target that is not there.
    """
    width = max((len(draft) for _, draft in drafting), default=0)
    matched = np.zeros((len(drafting), width), dtype=np.bool_)
    for row, (first, draft) in enumerate(drafting):
        rows = slice(first, first + len(draft))
        matched[row, : len(draft)] = has_target[rows] & (target_ids[rows] == np.array(draft))
    return np.logical_and.accumulate(matched, axis=1)
