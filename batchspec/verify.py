"""Sample and compare: a draft token is accepted while it equals the token that the target itself chooses.

The target's token at each position is a deterministic function of logits, seed, sample and position (see
``sampling``), so the first mismatch already is the right token, and the output does not depend on the draft.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.sampling import choose
from batchspec.step import StepPlan, Verdicts

__all__ = ["acceptance_mask", "judge"]


def judge(plan: StepPlan, logits: torch.Tensor) -> Verdicts:
    """Choose the target's token for every logit row and compare the drafts with them, for the whole batch at once.

    Args:
        plan: the step whose ``sampled`` chunks the rows belong to.
        logits: (rows, vocabulary), any floating dtype; chunk after chunk, 1 + draft length rows each.
    """
    target_ids = choose(plan.sampled, logits).cpu().numpy()
    num_rows = np.array([chunk.num_rows for chunk in plan.sampled], dtype=np.int64)
    firsts = np.cumsum(num_rows) - num_rows
    drafting = [(first, chunk.draft) for first, chunk in zip(firsts, plan.sampled, strict=True) if chunk.draft]
    num_drafted = np.array([len(draft) for _, draft in drafting], dtype=np.int64)
    accepted = acceptance_mask(drafting, target_ids)
    return Verdicts(target_ids=target_ids, num_drafted=num_drafted, accepted=accepted)


def acceptance_mask(drafting: list[tuple[int, list[int]]], target_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return bool (drafting chunks, longest draft): draft token i and all before it equal the target's.

    Args:
        drafting: first logit row and draft of each chunk that has a draft.
        target_ids: int64 (rows,).
    """
    width = max((len(draft) for _, draft in drafting), default=0)
    matched = np.zeros((len(drafting), width), dtype=np.bool_)
    for row, (first, draft) in enumerate(drafting):
        matched[row, : len(draft)] = target_ids[first : first + len(draft)] == np.array(draft)
    return np.logical_and.accumulate(matched, axis=1)
