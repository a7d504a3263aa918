"""The instructions of the attention kernel on vectors of eight floats; arrays are flat float32."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from batchspec.instruction import instruction
from batchspec.model.attending.vectors import FLOATS, LANES, VECTOR, spread_over

__all__ = [
    "add",
    "after",
    "claim",
    "fetch",
    "larger",
    "largest",
    "load",
    "multiply",
    "spread",
    "store",
    "total",
]


def _address(builder: Any, array: Any, index: Any) -> Any:
    return builder.bitcast(builder.gep(array, [index]), FLOATS.as_pointer())


def _folded(builder: Any, vector: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Return the lanes combined into one, halves with each other."""
    lanes = [builder.extract_element(vector, ir.Constant(ir.IntType(32), i)) for i in range(LANES)]
    while len(lanes) > 1:
        lanes = [combine(a, b) for a, b in zip(lanes[: len(lanes) // 2], lanes[len(lanes) // 2 :], strict=True)]
    return lanes[0]


@instruction(gives=VECTOR)
def load(builder: Any, array: Any, index: Any) -> Any:
    """Return the vector that begins at an index."""
    return builder.load(_address(builder, array, index), align=4)


@instruction(gives=types.void)
def store(builder: Any, array: Any, index: Any, vector: Any) -> None:
    """Write the vector that begins at an index."""
    builder.store(vector, _address(builder, array, index), align=4)


@instruction(gives=types.void)
def fetch(builder: Any, array: Any, index: Any) -> None:
    """Bring what is at an index near the processor, if it exists, without waiting for it."""
    number, address = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address], kind)
    where = builder.bitcast(builder.gep(array, [index]), address)
    builder.call(prefetch, [where, *(ir.Constant(number, option) for option in (0, 3, 1))])  # to read, to keep, data


@instruction()
def after(builder: Any, index: Any) -> Any:
    """Return index + 1 in a way that hides how often a loop runs: unrolled, its sums would not fit the registers."""
    kind = ir.FunctionType(index.type, [index.type])
    return builder.asm(kind, "", "=r,0", [builder.add(index, ir.Constant(index.type, 1))], side_effect=True)


@instruction(gives=types.intp)
def claim(builder: Any, counter: Any) -> Any:
    """Return what an int64 counter says and count one on; no two threads are told the same."""
    return builder.atomic_rmw("add", counter, ir.Constant(ir.IntType(64), 1), "monotonic")


@instruction(gives=VECTOR)
def spread(builder: Any, number: Any) -> Any:
    """Return the vector with a number in all lanes."""
    return spread_over(builder, number)


@instruction()
def add(builder: Any, a: Any, b: Any) -> Any:
    """Return a + b."""
    return builder.fadd(a, b)


@instruction()
def multiply(builder: Any, a: Any, b: Any) -> Any:
    """Return a * b."""
    return builder.fmul(a, b)


@instruction()
def larger(builder: Any, a: Any, b: Any) -> Any:
    """Return the larger of a and b; b where one is NaN."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@instruction(gives=types.float32)
def total(builder: Any, vector: Any) -> Any:
    """Return the sum of the lanes."""
    return _folded(builder, vector, builder.fadd)


@instruction(gives=types.float32)
def largest(builder: Any, vector: Any) -> Any:
    """Return the largest lane."""
    return _folded(builder, vector, lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
