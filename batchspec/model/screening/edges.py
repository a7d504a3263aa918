"""The limits of sixteen products out of their integers; arrays are flat."""

from typing import Any

from llvmlite import ir
from numba import types

from batchspec.instruction import instruction
from batchspec.model.strips.sixteen import FLOATS, INTEGERS, WIDTH, everywhere, picked

__all__ = ["keep_edges"]


@instruction(gives=types.void)
def keep_edges(
    builder: Any,
    sums: Any,
    offsets: Any,
    measures: Any,
    strip: Any,
    rows: Any,
    row: Any,
    edges: Any,
    where: Any,
    apart: Any,
) -> None:
    """Write, for each row, the highest upper and the highest lower limit of the sixteen products of a strip.

    A product lies within ``slack * length + size * rest`` of ``(sum + offset) * unit * row unit``.

    Args:
        builder: of instructions.
        sums: a vector for each row.
        offsets: int32, sixteen for each strip.
        measures: float32, for each strip sixteen units, then as many slacks, then as many sizes.
        strip: which.
        rows: float32, for each row its unit, its length and its rest.
        row: the first row.
        edges: float32, both limits side by side.
        where: those of the first row are.
        apart: those of the next row are from there.
    """
    at = builder.mul(strip, ir.Constant(strip.type, 3 * WIDTH))
    unit, slack, size = (_vector(builder, measures, _plus(builder, at, WIDTH * i), FLOATS) for i in range(3))
    offset = _vector(builder, offsets, builder.mul(strip, ir.Constant(strip.type, WIDTH)), INTEGERS)
    index = builder.mul(row, ir.Constant(row.type, 3))
    for place in range(sums.type.count):
        row_unit, length, rest = (
            everywhere(builder, builder.load(builder.gep(rows, [_plus(builder, index, 3 * place + i)])))
            for i in range(3)
        )
        total = builder.sitofp(builder.add(builder.extract_value(sums, place), offset), FLOATS)
        middle = builder.fmul(builder.fmul(total, unit), row_unit)
        away = builder.fadd(builder.fmul(slack, length), builder.fmul(size, rest))
        _keep(builder, builder.fadd(middle, away), builder.fsub(middle, away), edges, where)
        where = builder.add(where, apart)


def _plus(builder: Any, index: Any, number: int) -> Any:
    return builder.add(index, ir.Constant(index.type, number))


def _vector(builder: Any, array: Any, index: Any, kind: Any) -> Any:
    return builder.load(builder.bitcast(builder.gep(array, [index]), kind.as_pointer()), align=4)


def _larger(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


def _keep(builder: Any, upper: Any, lower: Any, edges: Any, where: Any) -> None:
    """Write the largest lane of two vectors side by side."""
    half = WIDTH // 2
    most = _larger(
        builder,
        picked(builder, upper, lower, [*range(half), *range(WIDTH, WIDTH + half)]),
        picked(builder, upper, lower, [*range(half, WIDTH), *range(WIDTH + half, 2 * WIDTH)]),
    )
    for step in (4, 2, 1):
        most = _larger(builder, most, picked(builder, most, most, [lane ^ step for lane in range(WIDTH)]))
    for place, lane in enumerate((0, half)):
        limit = builder.extract_element(most, ir.Constant(ir.IntType(32), lane))
        builder.store(limit, builder.gep(edges, [_plus(builder, where, place)]))
