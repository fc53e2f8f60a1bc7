"""Random masks of rows %q and keys %k, of type !C and as expressions of Python."""

PREDICATES = {"slt": "<", "sle": "<=", "sgt": ">", "sge": ">=", "eq": "==", "ne": "!="}


class Mask:
    """A mask as lines of a kernel, and as an expression of Python. A subclass has `number` and `condition`, of a depth, which give the
    name of a value and what it is."""

    def __init__(self, rng):
        self.rng, self.lines, self.comparisons, self.count = rng, [], 0, 0
        self.name, self.expression = self.condition(2)
        self.code = compile(self.expression, "<mask>", "eval")

    def emit(self, text):
        self.count += 1
        self.lines.append(f"    %v{self.count} = {text}\n")
        return f"%v{self.count}"

    def constant(self, value):
        return self.emit(f"arith.constant dense<{value}> : !C")

    def of_one(self, kind, a, f):
        """The magnitude or a multiple of a number."""
        if kind == "abs":
            return self.emit(f"math.absi {a} : !C"), f"abs({f})"
        factor = self.rng.choice([-2, -1, 2, 3])
        return self.emit(f"arith.muli {a}, {self.constant(factor)} : !C"), f"({factor} * {f})"

    def of_two(self, kind, a, f, b, g):
        operation, text = {
            "sum": ("addi", f"({f} + {g})"), "difference": ("subi", f"({f} - {g})"),
            "min": ("minsi", f"min({f}, {g})"), "max": ("maxsi", f"max({f}, {g})"),
        }[kind]  # fmt: skip
        return self.emit(f"arith.{operation} {a}, {b} : !C"), text

    def compare(self, draw):
        """A comparison of the two numbers that `draw` gives."""
        self.comparisons += 1
        predicate = self.rng.choice(list(PREDICATES))
        (a, f), (b, g) = draw()
        return self.emit(f"arith.cmpi {predicate}, {a}, {b} : !C"), f"({f} {PREDICATES[predicate]} {g})"

    def join(self, kind, depth):
        """One condition that does not hold, or two."""
        a, f = self.condition(depth - 1)
        if kind == "not":
            true = self.emit("arith.constant dense<true> : !M")
            return self.emit(f"arith.xori {a}, {true} : !M"), f"({f} == False)"
        b, g = self.condition(depth - 1)
        return self.emit(f"arith.{kind}i {a}, {b} : !M"), f"({f} {'&' if kind == 'and' else '|'} {g})"
