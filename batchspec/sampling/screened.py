"""What a forward pass leaves if the tokens of most rows could be chosen without all of their logits."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Screened"]


@dataclass(frozen=True, kw_only=True)
class Screened:
    """The tokens of simple rows, and all logits of the other rows.

    Attributes:
        target_ids: int64 (rows,), what all logits would have chosen, the largest of them being finite; it means nothing
            in rows that are in full.
        full: (full rows, vocabulary), in the order of the rows.
        places: int64 (rows,), where a row is in ``full``; -1 where it is not.
    """

    target_ids: torch.Tensor
    full: torch.Tensor
    places: NDArray[np.int64]
