"""Functions of traced values, by their names in Python and in torch; those without a leading underscore take arrays of numpy
too."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable

from .._core import _typing
from ._operations import binary, common
from ._trace import FUNCTIONS, Value, fail


def _find_function(*values):
    """What collects the lines of traced values; None where none is traced."""
    return next((value.function for value in values if isinstance(value, Value)), None)


def _unary(name: str, operation: str) -> Callable[[_typing.Any], _typing.Any]:
    def apply(x: _typing.Any) -> _typing.Any:
        if isinstance(x, Value):
            value = x.function.cast(x, "f32")
            return x.function.emit("f32", f"{operation} {value.name} : f32")
        import numpy

        return 1 / numpy.sqrt(x) if name == "rsqrt" else getattr(numpy, name)(x)

    apply.__name__ = name
    apply.__doc__ = f"{name} of a score or an index, traced or of numpy."
    return apply


exp, exp2, log, log2, sqrt, rsqrt, sin, cos, floor, ceil = (
    _unary(name, f"math.{name}")
    for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "floor", "ceil")
)
#: The exact tanh; `fast_tanh` is the machine's, to 2^-11.
tanh = _unary("tanh", "math.tanh")


def fast_tanh(x: _typing.Any) -> _typing.Any:
    """tanh to 2^-11 of itself, by one instruction."""
    if not isinstance(x, Value):
        return tanh(x)
    value = x.function.cast(x, "f32")
    return x.function.emit("f32", f"math.tanh {value.name} fastmath<afn> : f32")


def where(condition: _typing.Any, a: _typing.Any, b: _typing.Any) -> _typing.Any:
    """`a` where the condition holds, else `b`."""
    function = _find_function(condition, a, b)
    if function is None:
        import numpy

        return numpy.where(condition, a, b)
    condition = function.lift(condition)
    if condition.kind != "i1":
        fail("where takes a condition, as a comparison gives it")
    a, b, kind = common(a, b, function)
    return function.emit(kind, f"arith.select {condition.name}, {a.name}, {b.name} : {kind}")


def _quote(text):
    """A string of a source, in which $ begins what parameters replace."""
    return '"' + "".join(c if c not in '\\"$\n' else f"\\{ord(c):02X}" for c in text) + '"'


def _lift_condition(function, condition, name):
    condition = function.lift(condition)
    if condition.kind != "i1":
        fail(f"{name} takes a condition, as a comparison gives it")
    return condition


def print(value: _typing.Any, label: str = "", where: _typing.Any = True) -> None:
    """Shows a value of a function of scores or masks where the interpreter runs the kernel, under a label, and with `where` only
    where that holds for some element of a tile. Machine code has none of it, and the compiler warns of that. Values that are
    not traced are printed as by Python."""
    function = _find_function(value, where)
    if function is None:
        if _holds(where, any):
            builtins.print(*filter(None, [label]), value)
        return
    value = function.lift(value)
    condition = "" if where is True else f" if {_lift_condition(function, where, 'where').name}"
    function.act(f"tile.print {_quote(label or 'value')} {value.name}{condition} : {value.kind}")


def assert_(condition: _typing.Any, message: str) -> None:
    """Ends a run of the interpreter with the message where the condition of a function of scores or masks does not hold.
    Machine code does not check it. Values that are not traced are checked at once."""
    function = _find_function(condition)
    if function is not None:
        function.act(f"tile.assert {_lift_condition(function, condition, 'assert_').name}, {_quote(message)} : i1")
    elif not _holds(condition, all):
        raise AssertionError(message)


def _holds(condition, of):
    """Whether a condition holds, for any or all elements of an array."""
    return bool(getattr(condition, of.__name__)() if hasattr(condition, of.__name__) else condition)


def _extreme(name: str, operation: str) -> Callable[[_typing.Any, _typing.Any], _typing.Any]:
    def apply(a: _typing.Any, b: _typing.Any) -> _typing.Any:
        function = _find_function(a, b)
        if function is not None:
            return binary(function, operation, a, b)
        import numpy

        return getattr(numpy, name)(a, b)

    apply.__name__ = name
    apply.__doc__ = f"The {name} of two numbers."
    return apply


minimum, maximum = _extreme("minimum", "min"), _extreme("maximum", "max")


# ---- Powers


def power(function, base, exponent):
    if isinstance(exponent, Value):
        if isinstance(base, int) and exponent.kind != "f32":
            return _power_of_integers(function, base, exponent)
        if isinstance(base, (int, float)) and base > 0:
            return exp2(exponent * math.log2(base))
    elif exponent == 0.5:
        return sqrt(base)
    elif isinstance(exponent, (int, float)) and exponent in range(1, 9):
        # Powers of conditions are integers, those by a float are floats.
        least = "f32" if isinstance(exponent, float) else "i32"
        base = function.cast(base, least) if base.kind == "i1" or least == "f32" and base.kind != "f32" else base
        return functools.reduce(operator.mul, [base] * int(exponent))
    fail("** takes an exponent from 1 to 8 or 0.5, or a base that is a positive number; write exp2(y * log2(x))")


def _power_of_integers(function, base, exponent):
    """2, 4, ... to an integer, by a shift in 64 bits: 0 where the exponent is negative or too large, as in torch."""
    places = base.bit_length() - 1
    if base < 2 or base != 1 << places:
        fail(f"{base} ** an integer is exact for 2, 4, 8, ... alone; index a captured table, or write {float(base)} ** x, which is a "
             "float")  # fmt: skip
    return function.constant(1) << function.cast(exponent, "i64") * places


# ---- What torch has beside them. One argument at least is traced.


def _clamp(x, min=None, max=None):
    x = x if min is None else maximum(x, min)
    return x if max is None else minimum(x, max)


_log1p, _sigmoid = _unary("log1p", "math.log1p"), _unary("sigmoid", "tile.sigmoid")


def _softplus(x, beta=1, threshold=20):
    scaled = x * beta
    smooth = (maximum(scaled, 0.0) + _log1p(exp(-abs(scaled)))) / beta
    return where(scaled > threshold, x, smooth)


def _divide(a, b, rounding_mode=None):
    if rounding_mode == "trunc":
        fail("a division that rounds towards zero is unknown; // rounds down")
    return a / b if rounding_mode is None else a // b


def _logical(operation):
    def apply(a, b):
        function = _find_function(a, b)
        a, b = (function.convert(function.lift(value), "i1") for value in (a, b))
        return binary(function, operation, a, b)

    return apply


def _logical_not(x):
    return ~x.function.convert(x, "i1")


# By the text of a type, for torch need not be there.
_KINDS = {
    "torch.bool": "i1", "torch.int32": "i32", "torch.int64": "i64", "torch.float32": "f32",
    str(bool): "i1", str(int): "i64", str(float): "f32",
}  # fmt: skip


def _read_type(dtype):
    kind = _KINDS.get(str(dtype))
    if kind is None:
        fail(f"a traced value as {dtype}; kernels compute in float32, int32, int64 and bool")
    return kind


def _to(x, *targets, dtype=None, **_):
    """The value in another type, or in that of another value. Where it is, is the kernel's concern."""
    for target in (*targets, dtype):
        if isinstance(target, Value):
            x = x.function.convert(x, target.kind)
        elif str(target) in _KINDS or str(target).startswith("torch."):
            x = x.function.convert(x, _read_type(target))
    return x


def _cast(kind):
    return lambda x: x.function.convert(x, kind)


def _fill(value):
    """A function of a value and a shape, that of one number, that gives a constant."""

    def apply(x, size=(), dtype=None, **_):
        if tuple(size) != ():
            fail(f"a tensor of shape {tuple(size)}, where a function computes one number: its shape is ()")
        kind = x.kind if dtype is None else _read_type(dtype)
        return x.function.convert(x.function.constant(bool(value) if kind == "i1" else value), kind)

    return apply


def _fill_like(value):
    return lambda x, dtype=None, **_: _fill(value)(x, (), dtype)


def _full_like(x, fill_value, dtype=None, **_):
    return x.function.convert(x.function.lift(fill_value), x.kind if dtype is None else _read_type(dtype))


def _reflect(function):
    return lambda a, b: function(b, a)


_OPERATORS = {
    operator.add: "add radd", operator.mul: "mul multiply rmul", operator.sub: "sub subtract",
    operator.floordiv: "floordiv floor_divide", operator.mod: "mod remainder", operator.pow: "pow",
    operator.lshift: "lshift bitwise_left_shift", operator.rshift: "rshift bitwise_right_shift",
    operator.and_: "and bitwise_and rand", operator.or_: "or bitwise_or ror", operator.xor: "xor bitwise_xor rxor",
    operator.lt: "lt less", operator.le: "le less_equal", operator.gt: "gt greater", operator.ge: "ge greater_equal",
    operator.eq: "eq", operator.ne: "ne not_equal", operator.neg: "neg negative", operator.abs: "abs absolute",
    operator.invert: "invert bitwise_not", operator.truediv: "truediv true_divide",
    _reflect(operator.sub): "rsub", _reflect(operator.truediv): "rtruediv rdiv", _reflect(operator.floordiv): "rfloordiv",
    _reflect(operator.mod): "rmod", _reflect(operator.pow): "rpow",
}  # fmt: skip
FUNCTIONS.update({name: function for function, names in _OPERATORS.items() for name in names.split()})
FUNCTIONS["**"] = power
FUNCTIONS.update(
    {
        function.__name__: function
        for function in (exp, exp2, log, log2, sqrt, rsqrt, sin, cos, floor, ceil, tanh, where, minimum, maximum)
    }
)
FUNCTIONS.update(
    {
        "min": minimum, "max": maximum, "clamp": _clamp, "clip": _clamp, "log1p": _log1p, "softplus": _softplus,
        "div": _divide, "divide": _divide, "square": lambda x: x**2, "reciprocal": lambda x: 1 / x,
        "sigmoid": _sigmoid, "relu": lambda x: maximum(x, 0.0),
        "log_sigmoid": lambda x: -_softplus(-x), "masked_fill": lambda x, mask, value: where(mask, value, x),
        "logical_and": _logical("and"), "logical_or": _logical("or"), "logical_xor": _logical("xor"),
        "logical_not": _logical_not, "to": _to, "type": _to, "float": _cast("f32"), "int": _cast("i32"),
        "long": _cast("i64"), "bool": _cast("i1"), "new_ones": _fill(1), "new_zeros": _fill(0),
        "ones_like": _fill_like(1), "zeros_like": _fill_like(0), "full_like": _full_like,
    }
)  # fmt: skip
