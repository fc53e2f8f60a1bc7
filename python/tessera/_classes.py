"""The class of a shape, by the rule that the compiler gives of a kernel (tessera_program_shape_rule)."""

import operator

_OPERATIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "min": min, "max": max,
    "floordiv": lambda left, right: left // right if right else 0,
    "ceildiv": lambda left, right: -(-left // right) if right else 0,
}  # fmt: skip


def _evaluate(term, shape, index):
    if isinstance(term, int):
        return term
    if isinstance(term, str):
        return shape[term]
    if isinstance(term, dict):
        return index[term["grid"]]
    name, left, right = term
    return _OPERATIONS[name](_evaluate(left, shape, index), _evaluate(right, shape, index))


def find(rule, shape):
    """The name of the class; None where `rule`, the data of a rule, is None: no shape has one."""
    if rule is None:
        return None
    grid = [-(-_evaluate(dim["extent"], shape, ()) // dim["divisor"]) for dim in rule["grid"]]
    tiles = 1
    for count in grid:
        tiles *= count
    # Work that depends on the place of a tile is longest at one of the ends.
    ends = [0] * len(grid), [max(count, 1) - 1 for count in grid]
    iterations = max(_evaluate(rule["iterations"], shape, index) for index in ends)
    length = sum(iterations >= least for least in rule["lengths"])
    return ("many" if tiles > rule["multiprocessors"] else "few") + "-" + ("short", "medium", "long")[length]
