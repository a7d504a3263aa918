"""Recording what a function does to the device, so that it can be done again without the host's work."""

from collections.abc import Callable
from typing import Any, Protocol

import torch

__all__ = ["Capture", "CudaCapture"]


class Capture(Protocol):
    """A way of recording."""

    def __call__(self, function: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        """Return what does the same again, on the same memory, and returns the same tensor with new content.

        The function is called a few times meanwhile; it must leave the same behind each time.

        Raises:
            RuntimeError: it does something that cannot be recorded, or there is no memory for it.
        """


class CudaCapture:
    """Records CUDA graphs that share one pool of memory, since no two of them run at a time.

    The one that needs most memory should be recorded first; the others then live in what it took.

    Args:
        device: must be a CUDA device.
    """

    def __init__(self, device: torch.device):
        stream: Any = torch.cuda.Stream
        self._stream = stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, function: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        """Do as ``Capture`` says."""
        self._warm_up(function)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            result = function()

        def replay() -> torch.Tensor:
            graph.replay()
            return result

        return replay

    def _warm_up(self, function: Callable[[], torch.Tensor]) -> None:
        """Let libraries choose their kernels and take the memory they keep, which cannot be recorded."""
        usual = torch.cuda.current_stream()
        self._stream.wait_stream(usual)
        with torch.cuda.stream(self._stream):
            for _ in range(2):
                function()
        usual.wait_stream(self._stream)
