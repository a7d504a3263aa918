"""What a forward pass of a loaded model cannot do without: its matrix products, and the keys and values it reads."""

from collections import Counter
from dataclasses import dataclass

from batchspec.model.load import LoadedModel

__all__ = ["LinearShape", "kv_bytes", "linear_shapes", "weight_bytes"]


@dataclass(frozen=True, kw_only=True)
class LinearShape:
    """Linear layers of one shape.

    Attributes:
        n: outputs.
        k: inputs.
        count: how many layers of the model have it.
    """

    n: int
    k: int
    count: int


def linear_shapes(loaded: LoadedModel) -> list[LinearShape]:
    """Return the shapes of the model's linear layers, the largest first; experts kept in one tensor are not in it."""
    shapes = Counter(loaded.network.linear_shapes())
    ordered = sorted(shapes.items(), key=lambda item: -item[0][0] * item[0][1])
    return [LinearShape(n=n, k=k, count=count) for (n, k), count in ordered]


def weight_bytes(loaded: LoadedModel) -> int:
    """Return the bytes of the model's weights in memory."""
    return loaded.network.weight_bytes


def kv_bytes(loaded: LoadedModel, *, context: int) -> int:
    """Return the bytes of keys and values that one sequence of so many tokens reads: in a window only those inside."""
    windows = loaded.network.windows
    num_read = sum(min(context, window or context) for window in windows)
    return loaded.bytes_per_token * num_read // len(windows)
