"""Memory for a result that is taken again and again."""

import torch

__all__ = ["Room"]


class Room:
    """Memory for a result that is taken again and again.

    Memory of more than 32 MiB goes back to the system when it is freed, and getting it anew, page by page, takes about
    as long as a tenth of the product that fills it.
    """

    def __init__(self) -> None:
        self._numbers = torch.empty(0)

    def take(self, num_rows: int, width: int) -> torch.Tensor:
        """Return float32 (rows, width), holding anything."""
        if self._numbers.numel() < num_rows * width:
            self._numbers = torch.empty(num_rows * width)
        return self._numbers[: num_rows * width].view(num_rows, width)
