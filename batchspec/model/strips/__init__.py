"""Matrix products with weights in strips of sixteen outputs, by our own kernels."""

from batchspec.model.strips.gates import GatedStrips
from batchspec.model.strips.linear import StripLinear, can_pair

__all__ = ["GatedStrips", "StripLinear", "can_pair"]
