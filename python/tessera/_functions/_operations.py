"""Operators of traced values: what Python's mean, and what they are as operations of a source."""

from . import _computed
from ._trace import FUNCTIONS, Number, Value, fail


def common(a, b, function):
    """Two values of one kind, that of the wider one."""
    wide = any(isinstance(value, Value) and value.kind == "i64" for value in (a, b))
    a, b = function.lift(a, wide), function.lift(b, wide)
    kind = next(kind for kind in ("f32", "i64", "i32", "i1") if kind in (a.kind, b.kind))
    return function.cast(a, kind), function.cast(b, kind), kind


_ARITHMETIC = {
    "add": ("arith.addf", "arith.addi"), "sub": ("arith.subf", "arith.subi"), "mul": ("arith.mulf", "arith.muli"),
    "min": ("arith.minimumf", "arith.minsi"), "max": ("arith.maximumf", "arith.maxsi"),
}  # fmt: skip
# Of two conditions, as torch and JAX have it.
_OF_CONDITIONS = {"add": "or", "max": "or", "mul": "and", "min": "and"}
COMPARISONS = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_LOGIC = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}
_SHIFTS = {"lshift": "arith.shli", "rshift": "arith.shrsi"}


def binary(function, operation, a, b):
    """The value of a binary operator of Python, of `min` or `max`; one of `a` and `b` is traced."""
    if operation == "pow" and isinstance(a, Number):
        a = a.need()  # Whether a power is an integer depends on its value.
    if operation in ("floordiv", "mod", "pow", *_SHIFTS) and isinstance(b, Number) and not isinstance(a, Number):
        b = b.need()  # By a constant these take a few instructions.
    if all(isinstance(value, (Number, int, float)) for value in (a, b)):
        return _combine(operation, a, b)
    if operation == "pow":
        return FUNCTIONS["**"](function, a, b)
    right = b
    a, b, kind = common(a, b, function)
    if operation in _LOGIC:
        if kind == "f32":
            fail("&, | and ^ combine conditions or integers; numbers are compared first, in parentheses")
        return function.emit(kind, f"{_LOGIC[operation]} {a.name}, {b.name} : {kind}")
    if operation in COMPARISONS:
        if kind == "f32":
            predicate = "une" if operation == "ne" else "o" + operation
            return function.emit("i1", f"arith.cmpf {predicate}, {a.name}, {b.name} : f32")
        if kind == "i1" and operation not in ("eq", "ne"):
            a, b, kind = function.cast(a, "i32"), function.cast(b, "i32"), "i32"
        return function.emit("i1", f"arith.cmpi {COMPARISONS[operation]}, {a.name}, {b.name} : {kind}")
    if operation == "div":
        a, b = function.cast(a, "f32"), function.cast(b, "f32")
        return function.emit("f32", f"arith.divf {a.name}, {b.name} : f32")
    if kind == "i1":
        if operation not in _OF_CONDITIONS:
            fail(f"{operation} of two conditions; combine them by &, | and ^, or make integers of them by where(condition, 1, 0)")
        return function.emit("i1", f"{_LOGIC[_OF_CONDITIONS[operation]]} {a.name}, {b.name} : i1")
    if kind == "f32" and operation in ("floordiv", "mod", *_SHIFTS):
        fail("//, %, << and >> take integers; of numbers of f32 write the quotient by / ")
    if operation in _SHIFTS:
        return _shift(function, operation, a, b, kind, right)
    if operation in ("floordiv", "mod"):
        if not isinstance(right, Value) and right == 0:
            fail("a division of integers by 0")
        return _divide_integers(function, operation, a, b, kind)
    return function.emit(kind, f"{_ARITHMETIC[operation][kind != 'f32']} {a.name}, {b.name} : {kind}")


def _combine(operation, a, b):
    """What the host computes of captured numbers and constants."""
    number = a if isinstance(a, Number) else b
    parts = [value.number if isinstance(value, Number) else ("constant", value) for value in (a, b)]
    kinds = [
        value.kind if isinstance(value, Number) else "i1" if isinstance(value, bool) else "i32" if isinstance(value, int) else "f32"
        for value in (a, b)
    ]
    return number.maker.make_argument(_computed.find_kind(operation, kinds), (operation, *parts))


def _shift(function, operation, a, b, kind, amount):
    """A shift by as many places as there are or more leaves nothing but signs, and so does one backwards, as in torch."""
    if isinstance(amount, Value):
        a, b = function.cast(a, "i64"), function.cast(b, "i64")
        inside, far = (b >= 0) & (b < 64), a >> 63 if operation == "rshift" else 0
        near = function.emit("i64", f"{_SHIFTS[operation]} {a.name}, {(b & 63).name} : i64")
        return FUNCTIONS["where"](inside, near, far)
    if not 0 <= amount < int(kind[1:]):
        fail(f"a shift of an integer of {kind[1:]} bits by {amount} places")
    return function.emit(kind, f"{_SHIFTS[operation]} {a.name}, {b.name} : {kind}")


def _divide_integers(function, operation, a, b, kind):
    quotient = function.emit(kind, f"arith.floordivsi {a.name}, {b.name} : {kind}")
    return quotient if operation == "floordiv" else a - quotient * b


def _install(python, operation, reflected):
    def forward(self, other):
        return binary(self.function, operation, self, other)

    def backward(self, other):
        return binary(self.function, operation, other, self)

    setattr(Value, f"__{python}__", forward)
    if reflected:
        setattr(Value, f"__r{python}__", backward)


#: Operators of Python by what `binary` calls them.
OPERATORS = {"truediv": "div"}
OPERATORS |= {name: name for name in ("add", "sub", "mul", "floordiv", "mod", "pow", *_SHIFTS, *_LOGIC)}
for _python, _operation in OPERATORS.items():
    _install(_python, _operation, True)
for _operation in COMPARISONS:
    _install(_operation, _operation, False)
