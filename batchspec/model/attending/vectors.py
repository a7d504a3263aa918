"""Vectors of eight floats as a type of compiled functions, and what instructions on them are made of.

A compiler may make a vector out of a float sum only where it is allowed to reorder the sum, and then the last bits are
its choice. So what has to be fast is written with vectors: each lane adds up in the order given, and a product is added
with a single rounding (fma). A processor whose vectors are shorter takes several, to the same bits.

Stored machine code is renewed when the file of the function that was called changes, not when this one does: touch
``kernel.py`` after a change.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import models, register_model

__all__ = ["FLOATS", "INTEGERS", "LANES", "VECTOR", "all_of", "call", "spread_over"]

LANES = 8
FLOATS = ir.VectorType(ir.FloatType(), LANES)
INTEGERS = ir.VectorType(ir.IntType(32), LANES)

_Vector: Any = type("_Vector", (types.Type,), {"__module__": __name__})
register_model(_Vector)(lambda manager, kind: models.PrimitiveModel(manager, kind, FLOATS))
VECTOR = _Vector("eight_floats")


def all_of(value: float) -> Any:
    """Return the constant vector of one number."""
    return ir.Constant(FLOATS, [value] * LANES)


def call(builder: Any, name: str, *operands: Any) -> Any:
    """Call one of LLVM's functions of vectors."""
    kind = ir.FunctionType(FLOATS, [FLOATS] * len(operands))
    return builder.call(get_or_insert_function(builder.module, kind, f"{name}.v{LANES}f32"), operands)


def spread_over(builder: Any, number: Any) -> Any:
    """Return the vector with a number in all lanes."""
    one = builder.insert_element(ir.Constant(FLOATS, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(INTEGERS, [0] * LANES))
