"""Vectors of eight floats as a type of compiled functions, and instructions on them out of LLVM's.

A compiler may make a vector out of a float sum only where it is allowed to reorder the sum, and then the last bits are
its choice. So what has to be fast is written with vectors: each lane adds up in the order given, and a product is added
with a single rounding (fma). A processor whose vectors are shorter takes several, to the same bits.

Stored machine code is renewed when the file of the function that was called changes, not when this one does: touch
``kernel.py`` after a change.
"""

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, models, register_model

__all__ = ["FLOATS", "INTEGERS", "LANES", "VECTOR", "all_of", "call", "instruction", "spread_over"]

LANES = 8
FLOATS = ir.VectorType(ir.FloatType(), LANES)
INTEGERS = ir.VectorType(ir.IntType(32), LANES)

_Vector: Any = type("_Vector", (types.Type,), {"__module__": __name__})
register_model(_Vector)(lambda manager, kind: models.PrimitiveModel(manager, kind, FLOATS))
VECTOR = _Vector("eight_floats")


def _operand(kind: Any) -> Any:
    """Return the type in which an operand of some type is taken."""
    if isinstance(kind, types.Integer):
        return types.intp
    return types.float32 if isinstance(kind, types.Float) else kind


def instruction(gives: Any = None) -> Callable[[Callable[..., Any]], Any]:
    """Make something that compiled functions can call out of a function that emits LLVM instructions.

    The function gets the builder and the operands: floats, indices, vectors, tuples, or an array's first address, for
    arrays are flat. What the instructions result in has the type given, or the one that a function given makes of the
    operands' types, else that of the first operand.
    """

    def decorate(emit: Callable[..., Any]) -> Any:
        def define(_: Any, *kinds: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
                operands = [
                    context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
                    for kind, value in zip(signature.args, given, strict=True)
                ]
                result = emit(builder, *operands)
                return context.get_dummy_value() if result is None else result

            taken = [_operand(kind) for kind in kinds]
            result = gives if gives is None or isinstance(gives, types.Type) else gives(*kinds)
            return (result or taken[0])(*taken), generate

        functools.update_wrapper(define, emit)  # numba asks for the names of the operands
        return intrinsic(define)

    return decorate


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
