"""Steps whose tokens are chosen without all logits where that saves work."""

import torch

from batchspec.model.network import ScreenedPass
from batchspec.model.runner import ModelRunner, pack
from batchspec.model.wanted import wanted_rows
from batchspec.sampling import Screened, SimpleRows, simple_rows
from batchspec.step import StepPlan

__all__ = ["ScreeningRunner"]

_ENOUGH = 16  # rows; beside others, screening fewer costs about what they would add to the others' product


class ScreeningRunner:
    """Runs a model on the CPU as ``ModelRunner`` does, and screens rows.

    Args:
        runner: computes the steps that are not screened.
        screened: computes the others, of the same network.
    """

    def __init__(self, runner: ModelRunner, screened: ScreenedPass):
        self._runner = runner
        self._screened = screened

    def forward(self, plan: StepPlan) -> torch.Tensor | Screened:
        """Return the logits of the plan's rows, or what is left of them behind screening."""
        simple = simple_rows(plan.sampled)
        if plan.scored or not _is_worth_it(simple):
            return self._runner.forward(plan)
        cache, row_counts = self._runner.cache, self._runner.network.row_counts
        with torch.inference_mode():
            token_ids, positions, rows = pack(plan, block_size=cache.block_size, row_counts=row_counts)
            wanted = torch.tensor(wanted_rows(plan))
            return self._screened(token_ids, positions, rows=rows, cache=cache, wanted=wanted, simple=simple)


def _is_worth_it(simple: SimpleRows) -> bool:
    """Where all rows are simple the head's weights are read once, as integers; where others are among them, twice."""
    count = int(simple.is_simple.sum())
    return count >= _ENOUGH or 0 < count == len(simple.is_simple)
