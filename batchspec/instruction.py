"""Instructions of LLVM as functions that compiled functions can call."""

import functools
from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic

__all__ = ["instruction"]


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
