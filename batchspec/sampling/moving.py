"""Numbers on their way to the logits' device."""

from typing import Any

import torch
from numpy.typing import NDArray

__all__ = ["beside"]


def beside(logits: torch.Tensor, numbers: NDArray[Any]) -> torch.Tensor:
    """Return numbers as a tensor on the device of the logits, without waiting for what the device is doing.

    Args:
        logits: whose device it is.
        numbers: of any dtype that torch has; on the CPU the tensor shares their memory.
    """
    tensor = torch.from_numpy(numbers)
    if logits.device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(logits.device, non_blocking=True)
