"""Matrix products with packed weights on the CPU: a row's result is a chain of fused sums, whatever its neighbours.

Weights lie in strips of sixteen outputs, for each input its sixteen weights side by side. Stored in bfloat16 they stay
so, and become float32 where they are used: nothing is lost, and half the memory is read. Each result adds up its
products one by one with the inputs in order, with a single rounding each, so that its bits depend on nothing but the
row and the weights.
"""

from typing import Any

from llvmlite import ir

from batchspec.compiled import compiled, inner
from batchspec.model.attending.lanes import add_products, after, claim, fetch, spread, store_rows
from batchspec.model.attending.vectors import FLOATS, INTEGERS, LANES, VECTOR, instruction

__all__ = ["STRIP", "multiply_some", "multiply_strip", "pack_strips"]

STRIP = 2 * LANES
_HIGHEST = 6  # rows at once: their twelve sums, the weights and a factor fill sixteen registers
_BLOCK = 1 << 16  # numbers of the rows that are passed over again and again, in the next cache
_TASK = 4  # strips that a thread takes at once
_AHEAD = 1024  # weights ahead to fetch what will be needed soon


@instruction(gives=VECTOR)
def widen(builder: Any, array: Any, index: Any) -> Any:
    """Return the vector that begins at an index of float32 numbers, or of bfloat16 ones in the guise of uint16."""
    address = builder.gep(array, [index])
    if isinstance(array.type.pointee, ir.FloatType):
        return builder.load(builder.bitcast(address, FLOATS.as_pointer()), align=4)
    short = ir.VectorType(ir.IntType(16), LANES)
    bits = builder.zext(builder.load(builder.bitcast(address, short.as_pointer()), align=2), INTEGERS)
    return builder.bitcast(builder.shl(bits, ir.Constant(INTEGERS, [16] * LANES)), FLOATS)


@inner
def _products(
    sums: Any, a: Any, a_at: int, a_row: int, w: Any, w_at: int, depth: int, c: Any, c_at: int, c_row: int
) -> None:
    """Compute a few rows of a strip, widening weights on the way."""
    i = 0
    while i < depth:
        at = w_at + i * STRIP
        fetch(w, at + _AHEAD)
        sums = add_products(sums, a, a_at + i, a_row, widen(w, at), widen(w, at + LANES))
        i = after(i)
    store_rows(sums, c, c_at, c_row)


@inner
def multiply_strip(
    height: int, a: Any, a_at: int, a_row: int, w: Any, w_at: int, depth: int, c: Any, c_at: int, c_row: int
) -> None:
    """Write the products of rows of ``a`` with a strip into rows of ``c``, some rows at once."""
    one = (spread(0.0), spread(0.0))  # the pair of sums of a row
    two = one + one
    three, four = two + one, two + two
    done = 0
    while done < height:
        rest = height - done
        part = rest if rest <= _HIGHEST else (rest + 1) // 2 if rest <= 2 * _HIGHEST else _HIGHEST
        x, z = a_at + done * a_row, c_at + done * c_row
        if part == 1:
            _products(one, a, x, a_row, w, w_at, depth, c, z, c_row)
        elif part == 2:
            _products(two, a, x, a_row, w, w_at, depth, c, z, c_row)
        elif part == 3:
            _products(three, a, x, a_row, w, w_at, depth, c, z, c_row)
        elif part == 4:
            _products(four, a, x, a_row, w, w_at, depth, c, z, c_row)
        elif part == 5:
            _products(three + two, a, x, a_row, w, w_at, depth, c, z, c_row)
        else:
            _products(three + three, a, x, a_row, w, w_at, depth, c, z, c_row)
        done += part


@compiled(nogil=True)
def multiply_some(counter: Any, rows: Any, strips: Any, out: Any) -> None:
    """Write ``rows . weights`` into ``out``; all threads that call it with one counter share the work.

    Args:
        counter: int64 (1,), 0 at first.
        rows: float32 (rows, inputs).
        strips: bfloat16 as uint16, or float32, (strips, inputs, STRIP).
        out: float32 (rows, strips * STRIP).
    """
    num_rows, depth = rows.shape
    num_strips, breadth = len(strips), out.shape[1]
    a, w, c = rows.reshape(rows.size), strips.reshape(strips.size), out.reshape(out.size)
    height = max(_HIGHEST, _BLOCK // depth // _HIGHEST * _HIGHEST) if num_rows > 4 * _HIGHEST else num_rows
    num_blocks = (num_rows + height - 1) // height
    num_groups = (num_strips + _TASK - 1) // _TASK
    task = claim(counter)
    while task < num_blocks * num_groups:
        first = task // num_groups * height
        count = min(height, num_rows - first)
        begin = task % num_groups * _TASK
        for strip in range(begin, min(begin + _TASK, num_strips)):
            at, c_at = strip * depth * STRIP, first * breadth + strip * STRIP
            multiply_strip(count, a, first * depth, depth, w, at, depth, c, c_at, breadth)
        task = claim(counter)


@compiled(nogil=True)
def pack_strips(weight: Any, strips: Any) -> None:
    """Write a weight (outputs, inputs) into strips (ceil(outputs / STRIP), inputs, STRIP); what is left over is 0."""
    outputs, inputs = weight.shape
    for strip in range(len(strips)):
        first = strip * STRIP
        for lane in range(STRIP):
            if first + lane < outputs:
                for i in range(inputs):
                    strips[strip, i, lane] = weight[first + lane, i]
            else:
                strips[strip, :, lane] = 0
