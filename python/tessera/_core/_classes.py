"""What follows from extents, by terms that the compiler gives: the class of a shape, of a kernel's rule
(tessera_program_shape_rule), and comparisons, of what rules choose (tessera_source_resolve)."""

import operator

_OPERATIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "min": min, "max": max,
    "floordiv": lambda left, right: left // right if right else 0,
    "ceildiv": lambda left, right: -(-left // right) if right else 0,
    "mod": lambda left, right: left % right if right else 0,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


def evaluate(term, shape, index=()):
    """The value of a term for the extents of a shape by name, and of a term of a kernel for a place in its grid."""
    if isinstance(term, int):
        return term
    if isinstance(term, str):
        return shape[term]
    if isinstance(term, dict):
        return index[term["grid"]]
    name, left, right = term
    return _OPERATIONS[name](evaluate(left, shape, index), evaluate(right, shape, index))


def find(rule, shape):
    """The name of the class; None where `rule`, the data of a rule, is None: no shape has one."""
    if rule is None:
        return None
    grid = [-(-evaluate(dim["extent"], shape) // dim["divisor"]) for dim in rule["grid"]]
    tiles = 1
    for count in grid:
        tiles *= count
    # Work that depends on the place of a tile is longest at one of the ends.
    ends = [0] * len(grid), [max(count, 1) - 1 for count in grid]
    iterations = max(evaluate(rule["iterations"], shape, index) for index in ends)
    length = sum(iterations >= least for least in rule["lengths"])
    return ("many" if tiles > rule["multiprocessors"] else "few") + "-" + ("short", "medium", "long")[length]
