"""Vectors of eight 32-bit integers as a type of compiled functions, and the instructions of screening on them.

Arrays are flat.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import models, register_model

from batchspec.model.attending.vectors import FLOATS, INTEGERS, LANES, instruction, spread_over

__all__ = ["add_pairs", "keep_edges", "pairs", "zeros"]

_Integers: Any = type("_Integers", (types.Type,), {"__module__": __name__})
register_model(_Integers)(lambda manager, kind: models.PrimitiveModel(manager, kind, INTEGERS))
_EIGHT = _Integers("eight_integers")

_NUMBER = ir.IntType(32)
_BYTES = ir.VectorType(ir.IntType(8), 2 * LANES)
_SHORTS = ir.VectorType(ir.IntType(16), 2 * LANES)
_PRODUCTS = ir.VectorType(_NUMBER, 2 * LANES)


def _plus(builder: Any, index: Any, number: int) -> Any:
    return builder.add(index, ir.Constant(index.type, number))


def _picked(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_NUMBER, len(places)), places))


def _larger(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


@instruction(gives=_EIGHT)
def zeros(builder: Any, number: Any) -> Any:
    """Return the vector of zeros, whatever the number."""
    del builder, number
    return ir.Constant(INTEGERS, [0] * LANES)


@instruction(gives=_EIGHT)
def pairs(builder: Any, array: Any, index: Any) -> Any:
    """Return eight pairs of 16-bit integers: the sixteen int8 that begin at an index."""
    address = builder.bitcast(builder.gep(array, [index]), _BYTES.as_pointer())
    return builder.bitcast(builder.sext(builder.load(address, align=1), _SHORTS), INTEGERS)


@instruction()
def add_pairs(builder: Any, sums: Any, factors: Any, index: Any, apart: Any, left: Any, right: Any) -> Any:
    """Return ``sums[2q] + f[q] . left, sums[2q + 1] + f[q] . right`` for all q; pairs are multiplied lane by lane.

    f[q] is the pair of int16 at ``index + q * apart``. Compilers know this pattern as one instruction.
    """
    vectors = [builder.sext(builder.bitcast(vector, _SHORTS), _PRODUCTS) for vector in (left, right)]
    for q in range(sums.type.count // 2):
        pair = builder.load(builder.bitcast(builder.gep(factors, [index]), _NUMBER.as_pointer()), align=2)
        lone = builder.insert_element(ir.Constant(INTEGERS, ir.Undefined), pair, _NUMBER(0))
        factor = builder.sext(builder.bitcast(_picked(builder, lone, lone, [0] * LANES), _SHORTS), _PRODUCTS)
        for place, vector in enumerate(vectors, 2 * q):
            products = builder.mul(factor, vector)
            firsts = _picked(builder, products, products, list(range(0, 2 * LANES, 2)))
            seconds = _picked(builder, products, products, list(range(1, 2 * LANES, 2)))
            added = builder.add(builder.add(firsts, seconds), builder.extract_value(sums, place))
            sums = builder.insert_value(sums, added, place)
        index = builder.add(index, apart)
    return sums


@instruction(gives=types.void)
def keep_edges(
    builder: Any, sums: Any, measures: Any, at: Any, rows: Any, row: Any, edges: Any, where: Any, apart: Any
) -> None:
    """Write, for each row, the highest upper and the highest lower limit of the sixteen products of a strip.

    A product lies within ``slack * length + size * rest`` of ``sum * unit * row unit``.

    Args:
        builder: of instructions.
        sums: two vectors for each row.
        measures: float32, for each strip sixteen units, then as many slacks, then as many sizes.
        at: where the strip's begin.
        rows: float32, for each row its unit, its length and its rest.
        row: the first row.
        edges: float32, both limits side by side.
        where: those of the first row are.
        apart: those of the next row are from there.
    """
    index = builder.mul(row, ir.Constant(row.type, 3))
    for q in range(sums.type.count // 2):
        row_unit, length, rest = (
            spread_over(builder, builder.load(builder.gep(rows, [_plus(builder, index, 3 * q + i)]))) for i in range(3)
        )
        limits = []
        for half in range(2):
            unit, slack, size = (
                _measure(builder, measures, _plus(builder, at, LANES * (2 * i + half))) for i in range(3)
            )
            total = builder.sitofp(builder.extract_value(sums, 2 * q + half), FLOATS)
            middle = builder.fmul(builder.fmul(total, unit), row_unit)
            away = builder.fadd(builder.fmul(slack, length), builder.fmul(size, rest))
            limits.append((builder.fadd(middle, away), builder.fsub(middle, away)))
        upper, lower = (_larger(builder, *pair) for pair in zip(*limits, strict=True))
        _keep(builder, upper, lower, edges, where)
        where = builder.add(where, apart)


def _measure(builder: Any, measures: Any, index: Any) -> Any:
    return builder.load(builder.bitcast(builder.gep(measures, [index]), FLOATS.as_pointer()), align=4)


def _keep(builder: Any, upper: Any, lower: Any, edges: Any, where: Any) -> None:
    """Write the largest lane of two vectors side by side."""
    both = [_picked(builder, upper, lower, [first + lane for first in (0, 8) for lane in lanes]) for lanes in _HALVES]
    most = _larger(builder, *both)
    for step in (2, 1):
        most = _larger(builder, most, _picked(builder, most, most, [lane ^ step for lane in range(LANES)]))
    for place, lane in enumerate((0, LANES // 2)):
        builder.store(builder.extract_element(most, _NUMBER(lane)), builder.gep(edges, [_plus(builder, where, place)]))


_HALVES = (range(LANES // 2), range(LANES // 2, LANES))
