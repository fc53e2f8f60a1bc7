"""Arithmetic of captured numbers with each other and with constants. The host does it as Python does, so that no result wraps
or is rounded before a kernel takes it.

A number is the index of what was found, or (operation, its operands): numbers, and constants as ("constant", value).
"""

import operator

OPERATIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "floordiv": operator.floordiv,
    "mod": operator.mod, "lshift": operator.lshift, "rshift": operator.rshift, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "min": min, "max": max, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_COMPARISONS, _LOGIC = ("lt", "le", "gt", "ge", "eq", "ne"), ("and", "or", "xor")


def find_kind(operation, kinds):
    """The kind of a result, of operands of two kinds."""
    if operation in _COMPARISONS or (operation in _LOGIC and set(kinds) == {"i1"}):
        return "i1"
    return "f32" if operation == "div" or "f32" in kinds else "i32"


def list_indices(number):
    """The indices of the captured numbers that a number is computed of."""
    if not isinstance(number, tuple):
        return (number,)
    return () if number[0] == "constant" else (*list_indices(number[1]), *list_indices(number[2]))


def compute(number, values):
    """The value of a number, of what was found."""
    if not isinstance(number, tuple):
        return values[number]
    if number[0] == "constant":
        return number[1]
    operation, a, b = number
    return OPERATIONS[operation](compute(a, values), compute(b, values))


def give(number, values):
    """The value as a kernel takes it: a condition as an integer."""
    value = compute(number, values)
    if isinstance(value, bool):
        return 1 if value else 0
    return value
