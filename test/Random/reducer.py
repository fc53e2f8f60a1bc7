"""Makes a failing program small: what it does not need to fail in the same way is left out.

Each step proposes smaller programs, coarse ones first, and keeps the first that still fails with the
same kind of outcome; steps repeat until none helps.
"""

import copy
import re

from program import Op, all_ops, blocks_of, definitions, derive_dims, get_function, remove_dead, rename, types


def constant_of(name, type):
    """An operation that defines `name` without operands, or None."""
    element = re.search(r"x?([a-z0-9]+|\$T)>$", type)
    element = element.group(1) if element else type
    if element == "i1":
        value = "true"
    elif element in ("index", "i32", "i64"):
        value = "0"
    else:
        value = "1.0"
    text = f"arith.constant dense<{value}> : {type}" if type.startswith("tensor") else (
        "arith.constant true" if type == "i1" else f"arith.constant {value} : {type}")
    return Op("op", [(name, type)], [], text)


def replace_with_constants(program, ops, index):
    """Puts constants in the place of ops[index], or nothing when it has no results."""
    ops[index:index + 1] = [constant_of(name, type) for name, type in ops[index].results]


def replace_with_operand(program, ops, index):
    """Lets an operand of the same type stand for the result; says whether there is one."""
    op = ops[index]
    if len(op.results) != 1 or op.regions:
        return False
    known, (result, type) = types(program), op.results[0]
    same = [operand for operand in op.operands if known.get(operand) == type]
    if not same:
        return False
    del ops[index]
    substitute(program, {result: same[-1]})
    return True


def substitute(program, names):
    rename(program.ops, names)
    for function in program.functions:
        rename(function.ops, names)
        function.returns = [names.get(name, name) for name in function.returns]


def unwrap(program, ops, index, which):
    """Puts the operations of a region in the place of the operation that holds it."""
    op = ops[index]
    region = op.regions[which]
    names = {}
    if op.kind == "for":
        names = dict(zip([name for name, _ in region.args], [op.operands[0]] + op.operands[3:]))
    yields = region.yields[1:] if op.kind == "speculate" and which == 0 else region.yields
    ops[index:index + 1] = region.ops
    substitute(program, names)
    yields = [names.get(name, name) for name in yields]
    substitute(program, dict(zip([name for name, _ in op.results], yields)))


def inline(program, ops, index):
    """Puts a copy of a function's body in the place of a call."""
    op = ops[index]
    function = get_function(program, op.text)
    body = copy.deepcopy(function.ops)
    fresh = {name: f"{name}_{op.results[0][0][1:]}" for name in definitions(body)}
    rename(body, fresh)
    fresh.update(zip([name for name, _ in function.args], op.operands))
    rename(body, fresh)
    ops[index:index + 1] = body
    substitute(program, {result: fresh.get(value, value) for (result, _), value in zip(op.results, function.returns)})


def drop_carried(op, number):
    """Removes a value that a loop carries; its argument becomes a constant inside, its result outside."""
    region = op.regions[0]
    argument = region.args.pop(1 + number)
    result = op.results.pop(number)
    init = op.operands.pop(3 + number)
    region.yields.pop(number)
    return argument, result, init


class Reducer:
    def __init__(self, runner, outcome, limit=600, say=lambda text: None):
        self.runner, self.wanted, self.left, self.say = runner, outcome.signature, limit, say

    def fails(self, program):
        """Whether a candidate fails as the first program did."""
        if self.left <= 0:
            return False
        self.left -= 1
        return self.runner.run(program, "candidate.tile").signature == self.wanted

    def first(self, program, candidates):
        for candidate in candidates:
            if self.fails(candidate):
                self.say(f"{sum(1 for _ in all_ops(candidate))} operations, {self.left} runs left")
                return candidate
        return None

    def reduce(self, program):
        while self.left > 0:
            before = program
            for step in (self.without_schedule, self.without_ops, self.without_structure, self.without_carried,
                         self.without_detours, self.with_less_data, self.with_smaller_sizes):
                while self.left > 0:
                    smaller = self.first(program, step(program))
                    if smaller is None:
                        break
                    program = smaller
            if program is before:
                break
        return program

    # Steps. Each yields candidates, the most ambitious first.

    def without_schedule(self, program):
        if len(program.schedule) > 1:
            candidate = program.clone()
            candidate.schedule = {}
            yield candidate
        for field in program.schedule:
            candidate = program.clone()
            del candidate.schedule[field]
            yield candidate
        if program.fixed_sums:
            candidate = program.clone()
            candidate.fixed_sums = False
            yield candidate

    def without_ops(self, program):
        """Runs of operations become constants: halves of each block first, single ones last."""
        sizes = [len(ops) for ops, _ in blocks_of(program)]
        for block in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
            length = sizes[block]
            while length >= 1:
                for start in range(sizes[block] - 1, -1, -length):
                    candidate = self.cut(program, block, max(0, start - length + 1), start + 1)
                    if candidate:
                        yield candidate
                length //= 2

    def cut(self, program, block, start, end):
        candidate = program.clone()
        ops = blocks_of(candidate)[block][0]
        changed = False
        for index in range(end - 1, start - 1, -1):
            if "arith.constant" in ops[index].text:
                continue
            changed = True
            replace_with_constants(candidate, ops, index)
        return remove_dead(candidate) if changed else None

    def without_structure(self, program):
        for block, (ops, _) in enumerate(blocks_of(program)):
            for index, op in enumerate(ops):
                for which in reversed(range(len(op.regions))):
                    candidate = program.clone()
                    unwrap(candidate, blocks_of(candidate)[block][0], index, which)
                    yield remove_dead(candidate)
                if op.kind == "call":
                    candidate = program.clone()
                    inline(candidate, blocks_of(candidate)[block][0], index)
                    yield remove_dead(candidate)

    def without_carried(self, program):
        for number, op in enumerate(all_ops(program)):
            if op.kind != "for":
                continue
            for which in range(len(op.results)):
                candidate = program.clone()
                loop = list(all_ops(candidate))[number]
                argument, result, init = drop_carried(loop, which)
                substitute(candidate, {argument[0]: init, result[0]: init})
                yield remove_dead(candidate)

    def without_detours(self, program):
        for block, (ops, _) in enumerate(blocks_of(program)):
            for index in range(len(ops) - 1, -1, -1):
                candidate = program.clone()
                if replace_with_operand(candidate, blocks_of(candidate)[block][0], index):
                    yield remove_dead(candidate)

    def with_less_data(self, program):
        for dim in ("M", "N", "L", "W", "H", "B", "HK", "NB"):
            for extent in (1, 8, 64):
                if extent < program.dims[dim]:
                    candidate = program.clone()
                    candidate.dims[dim] = extent
                    derive_dims(candidate)
                    yield candidate
        if program.orders:
            candidate = program.clone()
            candidate.orders = {}
            yield candidate
        if not program.integers:
            candidate = program.clone()
            candidate.integers = True
            yield candidate

    def with_smaller_sizes(self, program):
        for name, value in program.params.items():
            if not value.isdigit():
                continue
            for smaller in (16, 32, 64, 128):
                if smaller < int(value) and (name != "BM" or smaller >= 64):
                    candidate = program.clone()
                    candidate.params[name] = str(smaller)
                    derive_dims(candidate)
                    yield candidate
