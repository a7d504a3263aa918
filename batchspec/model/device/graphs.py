"""Steps that are recorded once for each bucket and done again from memory that stays in place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from batchspec.model.device.buckets import Buckets
from batchspec.model.device.capture import Capture
from batchspec.model.device.freight import Arrays, join, split
from batchspec.model.device.shape import StepShape
from batchspec.step import StepPlan

__all__ = ["GraphedSteps", "not_recorded"]

Compute = Callable[[Mapping[str, torch.Tensor], StepShape], torch.Tensor]
"""A step: the logits of its arrays on the device."""


@dataclass(frozen=True, kw_only=True)
class _Recorded:
    """A step and the memory that it reads, uint8 (bytes,)."""

    inputs: torch.Tensor
    replay: Callable[[], torch.Tensor]


class GraphedSteps:
    """Records steps as their shapes come up.

    When something cannot be recorded, no further step is, and none of those that were is used any more.

    Attributes:
        is_on: whether steps are still recorded and done again.
        num_replays: steps done from a recording so far.

    Args:
        compute: what to record; it must do the same for the same shape, but for the content of the arrays.
        buckets: the shapes to record.
        capture: how.
        device: where.
        note: told, in a sentence, why nothing is recorded any more.
    """

    def __init__(
        self,
        compute: Compute,
        *,
        buckets: Buckets,
        capture: Capture,
        device: torch.device,
        note: Callable[[str], None],
    ):
        self._compute = compute
        self._buckets = buckets
        self._capture = capture
        self._device = device
        self._note = note
        self._recorded: dict[StepShape, _Recorded] = {}
        self.is_on = True
        self.num_replays = 0

    def shape_of(self, plan: StepPlan) -> StepShape | None:
        """Return the shape as which a plan can be done from a recording; None where it cannot."""
        return self._buckets.fitting(plan) if self.is_on else None

    def run(self, shape: StepShape, arrays: Arrays) -> torch.Tensor | None:
        """Return the logits of a step, which the next step overwrites; None where it could not be recorded.

        Args:
            shape: of the step.
            arrays: of that shape.
        """
        if shape not in self._recorded and not self.record(shape, arrays):
            return None
        recorded = self._recorded[shape]
        recorded.inputs.copy_(join(arrays, device=self._device), non_blocking=True)
        self.num_replays += 1
        return recorded.replay()

    def record(self, shape: StepShape, arrays: Arrays) -> bool:
        """Record a step; return whether that could be done. Arguments as for ``run``."""
        inputs = join(arrays, device=self._device).to(self._device)
        tensors = split(inputs, like=arrays)
        try:
            replay = self._capture(lambda: self._compute(tensors, shape))
        except RuntimeError as error:
            self.is_on = False
            self._recorded.clear()
            self._note(not_recorded(error))
            return False
        self._recorded[shape] = _Recorded(inputs=inputs, replay=replay)
        return True


def not_recorded(error: RuntimeError) -> str:
    """Return what to tell the user when steps cannot be recorded."""
    reason = next(iter(str(error).splitlines()), "no message").removesuffix(".")
    return f"steps are not recorded as CUDA graphs, so small ones take longer: {type(error).__name__}: {reason}"
