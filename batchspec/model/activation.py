"""Activations of vectors of eight floats."""

import math
from typing import Any

from batchspec.compiled import inner
from batchspec.model.attending.exponential import tanh
from batchspec.model.attending.lanes import add, multiply, spread

__all__ = ["gated"]

_GELU = math.sqrt(2.0 / math.pi)


@inner
def gated(x: Any, up: Any, is_silu: bool) -> Any:
    """Return activation(x) * up of two vectors.

    Both activations are x / 2 * (1 + tanh(u)): SiLU with u = x / 2, its logistic function being (1 + tanh(x / 2)) / 2,
    and GELU, in the form with tanh, with u = sqrt(2 / pi) * (x + 0.044715 * x ** 3).
    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016).
    """
    half = multiply(x, spread(0.5))
    u = half if is_silu else multiply(x, add(spread(_GELU), multiply(spread(_GELU * 0.044715), multiply(x, x))))
    return multiply(multiply(half, add(spread(1.0), tanh(u))), up)
