"""Vectors of sixteen numbers of 32 bits as types of compiled functions, and the instructions on them; arrays are flat.

What rows are decides what is computed:

- float32 rows, weights in float32 or bfloat16: one input at a time, its products added with a single rounding each.
- uint16 rows and weights, both bfloat16: two inputs at a time, added in float32 by one instruction of the processor.
- int16 rows, int8 weights: two inputs at a time, added in int32.
- uint8 rows, int8 weights: four inputs at a time, added in int32 by one instruction of the processor.

A processor whose vectors are shorter takes two for one, to the same bits.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import models, register_model

from batchspec.instruction import instruction

__all__ = [
    "FLOATS",
    "INTEGERS",
    "WIDTH",
    "add_products",
    "everywhere",
    "inputs_at_once",
    "load_rows",
    "nothing",
    "picked",
    "store_rows",
    "weights",
]

WIDTH = 16
_BYTE = 8
_NUMBER = ir.IntType(32)
FLOATS = ir.VectorType(ir.FloatType(), WIDTH)
INTEGERS = ir.VectorType(_NUMBER, WIDTH)
_SHORTS = ir.VectorType(ir.IntType(16), 2 * WIDTH)
_PRODUCTS = ir.VectorType(_NUMBER, 2 * WIDTH)

_Floats: Any = type("_Floats", (types.Type,), {"__module__": __name__})
_Integers: Any = type("_Integers", (types.Type,), {"__module__": __name__})
register_model(_Floats)(lambda manager, kind: models.PrimitiveModel(manager, kind, FLOATS))
register_model(_Integers)(lambda manager, kind: models.PrimitiveModel(manager, kind, INTEGERS))
_SUMS = _Floats("sixteen_floats")
_WORDS = _Integers("sixteen_integers")


def picked(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    """Return lanes of two vectors, those of the second being counted behind those of the first."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_NUMBER, len(places)), places))


def everywhere(builder: Any, number: Any) -> Any:
    """Return the vector with a number in all lanes."""
    kind = ir.VectorType(number.type, WIDTH)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, _NUMBER(0))
    return picked(builder, one, one, [0] * WIDTH)


def _are_bytes(array: Any) -> bool:
    return isinstance(array.type.pointee, ir.IntType) and array.type.pointee.width == _BYTE


def _are_floats(array: Any) -> bool:
    return isinstance(array.type.pointee, ir.FloatType)


@instruction(gives=lambda _, strips: _WORDS if strips.dtype == types.int8 else _SUMS)
def nothing(builder: Any, rows: Any, strips: Any) -> Any:
    """Return the sums of no products yet."""
    del builder, rows
    return ir.Constant(INTEGERS, [0] * WIDTH) if _are_bytes(strips) else ir.Constant(FLOATS, [0.0] * WIDTH)


@instruction(gives=types.intp)
def inputs_at_once(builder: Any, rows: Any) -> Any:
    """Return how many inputs are multiplied at a time."""
    del builder
    return ir.Constant(ir.IntType(types.intp.bitwidth), 1 if _are_floats(rows) else 4 if _are_bytes(rows) else 2)


@instruction(gives=lambda rows, *_: _SUMS if rows.dtype == types.float32 else _WORDS)
def weights(builder: Any, rows: Any, strips: Any, index: Any) -> Any:
    """Return the weights of the inputs that are multiplied at a time, which begin at an index."""
    address = builder.gep(strips, [index])
    if _are_bytes(strips) and not _are_bytes(rows):
        few = ir.VectorType(ir.IntType(_BYTE), 2 * WIDTH).as_pointer()
        return builder.bitcast(builder.sext(builder.load(builder.bitcast(address, few), align=1), _SHORTS), INTEGERS)
    if not _are_floats(rows):
        return builder.load(builder.bitcast(address, INTEGERS.as_pointer()), align=1)
    if _are_floats(strips):
        return builder.load(builder.bitcast(address, FLOATS.as_pointer()), align=4)
    short = ir.VectorType(ir.IntType(16), WIDTH).as_pointer()
    bits = builder.zext(builder.load(builder.bitcast(address, short), align=2), INTEGERS)
    return builder.bitcast(builder.shl(bits, ir.Constant(INTEGERS, [16] * WIDTH)), FLOATS)


@instruction()
def add_products(builder: Any, sums: Any, rows: Any, index: Any, apart: Any, weight: Any) -> Any:
    """Return ``sums[q] + f[q] * weight`` for all q; f[q] are the inputs at ``index + q * apart``."""
    add = _add_float if _are_floats(rows) else _add_bytes if _are_bytes(rows) else _add_exactly
    add = _add_pair if add is _add_exactly and sums.type.elements[0] == FLOATS else add
    for place in range(sums.type.count):
        added = add(builder, builder.extract_value(sums, place), builder.gep(rows, [index]), weight)
        sums = builder.insert_value(sums, added, place)
        index = builder.add(index, apart)
    return sums


def _add_float(builder: Any, total: Any, address: Any, weight: Any) -> Any:
    fma = get_or_insert_function(builder.module, ir.FunctionType(FLOATS, [FLOATS] * 3), f"llvm.fma.v{WIDTH}f32")
    return builder.call(fma, [everywhere(builder, builder.load(address)), weight, total])


def _add_pair(builder: Any, total: Any, address: Any, weight: Any) -> Any:
    """Source: Intel's manual of instructions, VDPBF16PS; numbers below the normal ones count as 0 there."""
    kind = ir.FunctionType(FLOATS, [FLOATS, INTEGERS, INTEGERS])
    dot = get_or_insert_function(builder.module, kind, "llvm.x86.avx512bf16.dpbf16ps.512")
    return builder.call(dot, [total, weight, everywhere(builder, _word(builder, address))])


def _add_exactly(builder: Any, total: Any, address: Any, weight: Any) -> Any:
    """Compilers know this pattern as one or two instructions."""
    pair = builder.bitcast(everywhere(builder, _word(builder, address)), _SHORTS)
    products = builder.mul(*(builder.sext(part, _PRODUCTS) for part in (pair, builder.bitcast(weight, _SHORTS))))
    firsts = picked(builder, products, products, list(range(0, 2 * WIDTH, 2)))
    seconds = picked(builder, products, products, list(range(1, 2 * WIDTH, 2)))
    return builder.add(builder.add(firsts, seconds), total)


def _add_bytes(builder: Any, total: Any, address: Any, weight: Any) -> Any:
    """Source: Intel's manual of instructions, VPDPBUSD."""
    kind = ir.FunctionType(INTEGERS, [INTEGERS] * 3)
    dot = get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")
    return builder.call(dot, [total, everywhere(builder, _word(builder, address)), weight])


def _word(builder: Any, address: Any) -> Any:
    """Return the inputs that are multiplied at a time, being integers or bfloat16."""
    return builder.load(builder.bitcast(address, _NUMBER.as_pointer()), align=1)


@instruction()
def load_rows(builder: Any, sums: Any, array: Any, index: Any, apart: Any) -> Any:
    """Return as many vectors of floats as there are sums, one from each row; rows begin ``apart`` numbers apart."""
    for place in range(sums.type.count):
        address = builder.bitcast(builder.gep(array, [index]), FLOATS.as_pointer())
        sums = builder.insert_value(sums, builder.load(address, align=4), place)
        index = builder.add(index, apart)
    return sums


@instruction(gives=types.void)
def store_rows(builder: Any, sums: Any, array: Any, index: Any, apart: Any) -> None:
    """Write the sums, one to each row; rows begin ``apart`` numbers from each other."""
    for place in range(sums.type.count):
        address = builder.bitcast(builder.gep(array, [index]), FLOATS.as_pointer())
        builder.store(builder.extract_value(sums, place), address, align=4)
        index = builder.add(index, apart)
