"""What the processor has that kernels are compiled for."""

from numba.core.registry import cpu_target

__all__ = ["HAS_BFLOAT16", "HAS_BYTES", "HAS_WIDE_VECTORS"]

_FEATURES = frozenset(cpu_target.target_context.codegen().magic_tuple()[2].split(","))

HAS_WIDE_VECTORS = "+avx512f" in _FEATURES
"""Vectors of sixteen floats, and thirty-two of them."""

HAS_BFLOAT16 = HAS_WIDE_VECTORS and "+avx512bf16" in _FEATURES
"""An instruction that adds up sixteen pairs of products of bfloat16."""

HAS_BYTES = HAS_WIDE_VECTORS and "+avx512vnni" in _FEATURES
"""An instruction that adds up sixteen times four products of bytes."""
