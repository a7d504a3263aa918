"""Single numbers of pages, which are float32 or bfloat16 (uint16); arrays are flat."""

from typing import Any

from llvmlite import ir
from numba import types

from batchspec.instruction import instruction

__all__ = ["get", "put"]

_BITS = ir.IntType(32)
_SHORT = ir.IntType(16)
_HALF = 16


@instruction(gives=types.float32)
def get(builder: Any, array: Any, index: Any) -> Any:
    """Return a number as float32."""
    number = builder.load(builder.gep(array, [index]))
    if isinstance(number.type, ir.FloatType):
        return number
    return builder.bitcast(builder.shl(builder.zext(number, _BITS), _BITS(_HALF)), ir.FloatType())


@instruction(gives=types.void)
def put(builder: Any, array: Any, index: Any, number: Any) -> None:
    """Write a float32, rounded to the nearest bfloat16, of two the even one, where the array holds these."""
    address = builder.gep(array, [index])
    if isinstance(address.type.pointee, ir.FloatType):
        builder.store(number, address)
        return
    bits = builder.bitcast(number, _BITS)
    is_odd = builder.and_(builder.lshr(bits, _BITS(_HALF)), _BITS(1))
    rounded = builder.add(builder.add(bits, is_odd), _BITS(0x7FFF))
    is_nan = builder.fcmp_unordered("uno", number, number)
    kept = builder.select(is_nan, builder.or_(bits, _BITS(1 << 22)), rounded)  # rounding would turn some into infinity
    builder.store(builder.trunc(builder.lshr(kept, _BITS(_HALF)), _SHORT), address)
