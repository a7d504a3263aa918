"""The exponential function and the hyperbolic tangent of vectors."""

import math
from typing import Any

from llvmlite import ir

from batchspec.instruction import instruction
from batchspec.model.attending.vectors import FLOATS, INTEGERS, LANES, all_of, call

__all__ = ["exp", "tanh"]

_LN2_HIGH = 0.693147182464599609375  # ln 2 as a float, and what is left of it
_LN2_LOW = math.log(2.0) - _LN2_HIGH
_LOWEST = -87.0  # e to this is about the smallest float with all its digits


def _integers(value: int) -> Any:
    return ir.Constant(INTEGERS, [value] * LANES)


def _exp(builder: Any, x: Any) -> tuple[Any, Any]:
    """Return q and 2**n with 2**n * (1 + q) = e**x, for x from _LOWEST to 0 or NaN.

    Cody and Waite's reduction, x = n ln 2 + r with |r| <= ln 2 / 2; then e**r - 1 from its Taylor series, of which the
    first term left out is below 2**-27, and 2**n from the bits of an exponent.
    """
    n = call(builder, "llvm.rint", builder.fmul(x, all_of(1.0 / math.log(2.0))))
    r = call(builder, "llvm.fma", n, all_of(-_LN2_HIGH), x)
    r = call(builder, "llvm.fma", n, all_of(-_LN2_LOW), r)
    series = all_of(1.0 / math.factorial(7))
    for k in range(6, 0, -1):
        series = call(builder, "llvm.fma", series, r, all_of(1.0 / math.factorial(k)))
    whole = builder.select(builder.fcmp_ordered("ord", x, x), n, all_of(0.0))
    exponent = builder.add(builder.fptosi(whole, INTEGERS), _integers(127))
    return builder.fmul(series, r), builder.bitcast(builder.shl(exponent, _integers(23)), FLOATS)


def _at_least_lowest(builder: Any, x: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, all_of(_LOWEST)), all_of(_LOWEST), x)


@instruction()
def exp(builder: Any, x: Any) -> Any:
    """Return e**x for x <= 0, to about one unit in the last place; 0 below e**-87; NaN stays."""
    q, two_to_n = _exp(builder, _at_least_lowest(builder, x))
    result = call(builder, "llvm.fma", two_to_n, q, two_to_n)
    return builder.select(builder.fcmp_ordered("<", x, all_of(_LOWEST)), all_of(0.0), result)


@instruction()
def tanh(builder: Any, x: Any) -> Any:
    """Return tanh x, which is -m / (2 + m) with m = e**(-2 |x|) - 1, with the sign of x."""
    doubled = builder.fmul(call(builder, "llvm.fabs", x), all_of(-2.0))
    q, two_to_n = _exp(builder, _at_least_lowest(builder, doubled))
    m = call(builder, "llvm.fma", two_to_n, q, builder.fsub(two_to_n, all_of(1.0)))
    size = builder.fdiv(m, builder.fsub(all_of(-2.0), m))
    return call(builder, "llvm.copysign", size, x)
