"""Draws the control flow of a random kernel: loops, conditionals, functions, speculation."""

import copy

from dots import Dots
from program import Function, Op, Region, definitions, rename
from values import COLUMNS, Scope, tile


class Control(Dots):
    """Adds statements that hold statements."""

    def __init__(self, *args):
        super().__init__(*args)
        self.products = 0
        self.budget = 40  # statements that may still be drawn

    # Statements.

    def statement(self, scope):
        self.budget -= 1
        column = self.rng.choice(COLUMNS)
        dims = ("BM", column)
        nested = scope.depth < 2 and self.budget > 6
        vector_or_tile = dims if self.chance(0.7) else ("BM",)
        choices = [
            (22, lambda: self.product(scope, column)),
            (12, lambda: self.binary(scope, vector_or_tile)),
            (9, lambda: self.unary(scope, vector_or_tile)),
            (9, lambda: self.broadcast(scope, self.reduce(scope, column), dims, 1)),
            (4, lambda: self.reduce(scope, column)),
            (11, lambda: self.mask(scope, vector_or_tile)),
            (6, lambda: self.load_arithmetic(scope, vector_or_tile)),
            (2, lambda: self.load_scalar(scope)),
            (3, lambda: self.from_iota(scope, vector_or_tile)),
            (3, lambda: self.round_trip(scope, dims)),
            (4, lambda: self.softmax(scope, column)),
            (12 if nested else 0, lambda: self.loop(scope)),
            (5 if nested else 0, lambda: self.conditional(scope)),
            (6 if nested and scope.may_store else 0, lambda: self.call(scope)),
            (5 if scope.may_store else 0, lambda: self.store_something(scope)),
        ]
        self.rng.choices([draw for _, draw in choices], [weight for weight, _ in choices])[0]()

    def product(self, scope, column):
        self.products += 1
        self.dot(scope, column)

    def softmax(self, scope, column):
        """exp2(x - rowmax(x)) / rowsum, at times with the first two only."""
        if self.program.integers:
            return self.reduce(scope, column)
        dims = ("BM", column)
        source = self.bounded(scope, self.pick(scope, *dims), dims, 64)
        largest = self.reduce_columns(scope, "max", source, dims)
        self.add_tile(scope, largest, ("BM",), self.bound[source])
        highest = self.broadcast(scope, largest, dims, 1)
        shifted = self.apply(scope, "arith.subf", [source, highest], dims, 2 * self.bound[source])
        weights = self.apply(scope, "math.exp2", [shifted], dims, 1)
        if self.chance(0.4):
            total = self.reduce_columns(scope, "sum", weights, dims)
            self.add_tile(scope, total, ("BM",), self.size[column])
            self.apply(scope, "arith.divf", [weights, self.broadcast(scope, total, dims, 1)], dims, 1)

    def store_something(self, scope):
        found = [(name, dims) for name, dims in scope.tiles[-5:] if dims[0] == "BM"]
        if found:
            self.store(scope, *self.rng.choice(found))

    def statements(self, scope, count):
        for _ in range(count):
            self.statement(scope)

    # Loops.

    def bounds(self, scope):
        """Lower and upper bound and step of a loop, and whether its variable counts elements."""
        zero, one = self.index(scope, 0), self.index(scope, 1)
        kind = self.rng.random()
        if kind < 0.2 or scope.depth > 0:
            lower = self.rng.choice((zero, zero, one))
            count = self.rng.choice((0, 1, 2, 2, 3) if scope.depth else (0, 1, 2, 3, 4))
            return lower, self.index(scope, count), one, False
        if kind < 0.27 and scope.scalars:
            # As many iterations as an input says.
            source = self.emit(scope, "math.absf {0} : f32", [self.rng.choice(scope.scalars)], "f32")
            narrow = self.emit(scope, "arith.fptosi {0} : f32 to i32", [source], "i32")
            count = self.emit(scope, "arith.index_cast {0} : i32 to index", [narrow], "index")
            self.range[count] = (0, 100)
            return zero, self.index_op(scope, "minsi", count, self.index(scope, 3)), one, False
        dim = self.rng.choice([d for d in ("M", "N", "N", "L") if d in self.program.dims])
        width = self.width(scope, self.walk)
        extent = self.dim(scope, dim)
        if kind < 0.4:
            return zero, extent, width, True
        steps = self.index_op(scope, "ceildivsi", extent, width)
        if kind < 0.6 and scope.row:
            # Up to the diagonal.
            end = self.index_op(scope, "addi", scope.row, self.width(scope, "BM"))
            if self.chance(0.5):
                shift = self.index_op(scope, "subi", extent, self.dim(scope, "M"))
                end = self.index_op(scope, "addi", end, shift)
            blocks = self.index_op(scope, "ceildivsi", self.index_op(scope, "maxsi", end, zero), width)
            steps = self.index_op(scope, "minsi", blocks, steps)
        if kind > 0.9 and scope.row:
            # A window that ends at the tile's rows.
            left = self.index_op(scope, "subi", scope.row, self.index(scope, self.rng.choice((1, 32, 64))))
            first = self.index_op(scope, "floordivsi", self.index_op(scope, "maxsi", left, zero), width)
            return first, steps, one, False
        return self.rng.choice((zero, zero, zero, one)), steps, one, False

    def loop(self, scope):
        lower, upper, step, elements = self.bounds(scope)
        trips = max(0, -(-(self.range[upper][1] - self.range[lower][0]) // self.range[step][0]))
        if trips * scope.trips > 16:
            return
        inner = Scope(scope)
        inner.trips = scope.trips * max(1, trips)
        index = self.name()
        self.range[index] = (self.range[lower][0], max(self.range[lower][0], self.range[upper][1] - 1))
        self.place_blocks(inner, index, upper, elements)
        carried, moving = [], self.moving_place(scope, inner, trips) if self.chance(0.12) else None
        for _ in range(self.rng.choice((1, 1, 2, 2, 3))):
            dims = ("BM", self.rng.choice(COLUMNS)) if self.chance(0.7) else ("BM",)
            init = self.constant(scope, dims, 0) if self.chance(0.5) else self.pick(scope, *dims)
            init = self.bounded(scope, init, dims, self.carried_limit / 2)
            argument = self.add_tile(inner, self.name(), dims, self.carried_limit)
            carried.append((argument, dims, init))
        yields = self.loop_body(inner, carried, trips)
        args = [(index, "index")] + [(name, tile(dims)) for name, dims, _ in carried]
        results = [(self.name(), tile(dims)) for _, dims, _ in carried]
        inits = [init for _, _, init in carried]
        if moving:
            argument, init, step_of_place = moving
            args.append((argument, "index"))
            inits.append(init)
            yields.append(self.index_op(inner, "addi", argument, step_of_place))
            results.append((self.name(), "index"))
        self.used.update(yields + inits)
        scope.ops.append(Op("for", results, [lower, upper, step] + inits, regions=[Region(args, inner.ops, yields)]))
        for (name, _), (_, dims, _) in zip(results, carried):
            self.add_tile(scope, name, dims, self.carried_limit)

    def moving_place(self, scope, inner, trips):
        """A place that the loop carries: its argument, where it begins and how far it moves."""
        init = self.rng.choice(scope.indices) if scope.indices else self.index(scope, 0)
        step = self.width(scope, self.walk)
        argument = self.name()
        low, high = self.range[init]
        self.range[argument] = (low, high + trips * self.range[step][0])
        inner.indices.append(argument)
        inner.blocks.append(argument)
        return argument, init, step

    def place_blocks(self, inner, index, upper, elements):
        """What a loop's variable says about places: the block's first element, at times backwards."""
        inner.indices.append(index)
        inner.counters = inner.counters + [index]
        if elements:
            inner.blocks.append(index)
            return
        block = index
        if upper and self.chance(0.15):
            last = self.index_op(inner, "subi", upper, self.index(inner, 1))
            block = self.index_op(inner, "subi", last, index)
        first = self.index_op(inner, "muli", block, self.width(inner, self.walk))
        inner.blocks.append(first)
        inner.indices.append(first)

    def loop_body(self, inner, carried, trips):
        """Draws statements and what they hand on to the next iteration."""
        self.statements(inner, self.rng.randint(1, 5))
        if inner.may_store and inner.row and not self.speculates and self.helpers.random() < 0.15:
            self.sum_of_product(inner)
        yields = []
        for argument, dims, _ in carried:
            kind = self.rng.random()
            grows = self.carried_limit / 2 / max(1, trips)
            if kind < 0.45 and len(dims) == 2:
                self.products += 1
                value = self.accumulate(inner, argument, dims, grows)
            elif kind < 0.75:
                step = self.bounded(inner, self.gather(inner, dims) or self.pick(inner, *dims), dims, grows)
                op = self.rng.choice(("arith.addf", "arith.addf", "arith.maximumf", "arith.maxnumf"))
                value = self.apply(inner, op, [argument, step], dims, self.carried_limit)
            else:
                value = self.bounded(inner, self.pick(inner, *dims), dims, self.carried_limit)
            yields.append(value)
        return yields

    def accumulate(self, inner, argument, dims, grows):
        """A dot onto what the loop carries, scaled before at times."""
        base = argument
        if not self.program.integers and self.chance(0.3):
            factor = self.bounded(inner, self.pick(inner, "BM"), ("BM",), 1)
            factors = self.broadcast(inner, factor, dims, 1)
            base = self.apply(inner, "arith.mulf", [argument, factors], dims, self.carried_limit)
        value = self.dot(inner, dims[1], base)
        limit = self.carried_limit
        return value if self.bound[value] - limit <= grows else self.bounded(inner, value, dims, limit)

    def split(self, scope):
        """Sums and maxima over a range that the blocks of a cluster divide: of what its iterations load, and of what is known before."""
        dim = self.ranges.choice([d for d in ("N", "N", "L") if d in self.program.dims])
        steps = self.index_op(scope, "ceildivsi", self.dim(scope, dim), self.width(scope, self.walk))
        lower, trips = self.index(scope, self.ranges.choice((0, 0, 0, 1))), self.range[steps][1]
        if trips > 16:
            return
        part = Scope(scope)
        part.may_store = False
        first, past, index = self.name(), self.name(), self.name()
        self.range[first] = self.range[past] = (0, trips)
        self.range[index] = (0, max(0, trips - 1))
        inner = Scope(part)
        inner.trips = max(1, trips)
        self.place_blocks(inner, index, None, False)
        states = [(self.name(), ("BM", self.ranges.choice(COLUMNS))) for _ in range(self.ranges.choice((1, 1, 2)))]
        yields, merges = [], []
        for argument, dims in states:
            self.bound[argument] = self.carried_limit
            step = self.bounded(inner, self.dot(inner, dims[1]), dims, self.carried_limit / 2 / inner.trips)
            merges.append(self.ranges.choice(("arith.addf", "arith.addf", "arith.maximumf")))
            # Nothing else takes it: a product of sums is no sum.
            yields.append(self.operation(inner, merges[-1], [argument, step], tile(dims)))
            self.products += 1
        inits = [self.constant(part, dims, 0) for _, dims in states]
        one = self.index(part, 1)
        results = [(self.name(), tile(dims)) for _, dims in states]
        args = [(index, "index")] + [(name, tile(dims)) for name, dims in states]
        part.ops.append(Op("for", results, [first, past, one] + inits, regions=[Region(args, inner.ops, yields)]))
        merged = Scope()
        sides = [[(self.name(), tile(dims)) for _, dims in states] for _ in range(2)]
        both = [self.operation(merged, op, [left, right], type) for op, (left, type), (right, _) in zip(merges, *sides)]
        regions = [
            Region([(first, "index"), (past, "index")], part.ops, [name for name, _ in results]),
            Region(sides[0] + sides[1], merged.ops, both),
        ]
        self.used.update(yields + inits + both + [name for name, _ in results])
        own = [(self.name(), tile(dims)) for _, dims in states]
        how = self.ranges.choice(("cluster 2", "cluster 2", "cluster 4", "cluster 8", ""))
        scope.ops.append(Op("split", own, [lower, steps], how, regions))
        for (name, _), (_, dims) in zip(own, states):
            self.add_tile(scope, name, dims, self.carried_limit)

    # Conditionals.

    def condition(self, scope):
        if scope.scalars and self.chance(0.3):
            zero = self.emit(scope, "arith.constant 0.0 : f32", [], "f32")
            return self.emit(scope, "arith.cmpf ogt, {0}, {1} : f32", [self.rng.choice(scope.scalars), zero], "i1")
        if not scope.indices:
            return self.emit(scope, f"arith.constant {self.rng.choice(('true', 'false'))}", [], "i1")
        index = self.rng.choice(scope.indices)
        low, high = self.range[index]
        limit = self.index(scope, self.rng.randint(low, max(low, high)))
        predicate = self.rng.choice(("slt", "sle", "eq", "sgt", "ne"))
        return self.operation(scope, f"arith.cmpi {predicate},", [index, limit], "index", "i1")

    def conditional(self, scope):
        condition = self.condition(scope)
        dims = ("BM", self.rng.choice(COLUMNS)) if self.chance(0.75) else ("BM",)
        outer = self.pick(scope, *dims)
        regions, bound = [], 0
        for _ in range(2):
            inner = Scope(scope)
            if self.chance(0.7):
                self.statements(inner, self.rng.randint(1, 3))
                value = self.gather(inner, dims) or self.pick(inner, *dims)
            else:
                value = outer
            regions.append(Region([], inner.ops, [value]))
            bound = max(bound, self.bound[value])
        name = self.name()
        self.used.update(yielded for region in regions for yielded in region.yields)
        scope.ops.append(Op("if", [(name, tile(dims))], [condition], regions=regions))
        self.add_tile(scope, name, dims, bound)

    # Functions.

    def call(self, scope):
        """A function of some tiles and indices, called once or twice."""
        if not scope.tiles:
            return
        given = [self.rng.choice(scope.tiles[-6:]) for _ in range(self.rng.randint(1, 2))]
        places = self.rng.sample(scope.indices, min(len(scope.indices), self.rng.randint(0, 2)))
        inner = Scope()
        inner.may_store, inner.depth, inner.trips = False, scope.depth + 1, scope.trips
        arguments = []
        for name, dims in given:
            arguments.append((self.add_tile(inner, self.name(), dims, self.bound[name]), tile(dims)))
        for place in places:
            argument = self.name()
            self.range[argument] = self.range[place]
            arguments.append((argument, "index"))
            inner.indices.append(argument)
            if place in scope.blocks:
                inner.blocks.append(argument)
            if place == scope.row:
                inner.row = argument
        self.statements(inner, self.rng.randint(1, 4))
        returned = [self.rng.choice(inner.tiles[-3:]) for _ in range(self.rng.randint(1, 2))]
        function = Function(f"f{len(self.program.functions)}", arguments, inner.ops, [name for name, _ in returned])
        self.program.functions.append(function)
        self.call_function(scope, function, [name for name, _ in given] + places, returned)
        if self.chance(0.4):
            again = [self.rng.choice([n for n in scope.find(*dims) if self.bound[n] <= self.bound[name]])
                     for name, dims in given]
            self.call_function(scope, function, again + places, returned)

    def call_function(self, scope, function, operands, returned):
        results = [(self.name(), tile(dims)) for _, dims in returned]
        self.used.update(operands)
        scope.ops.append(Op("call", results, operands, function.name))
        for (name, _), (value, dims) in zip(results, returned):
            self.add_tile(scope, name, dims, self.bound[value])

    # Speculation.

    def speculate(self, scope, count):
        """Both regions compute the same, but the exact one takes a minimum that changes nothing
        where the condition of the other holds."""
        inner = Scope(scope)
        inner.may_store = False
        self.statements(inner, count)
        if not inner.tiles:  # Its statements have drawn nothing but stores and numbers.
            return
        kept = [self.rng.choice(inner.tiles[-4:])]
        if self.chance(0.5):
            kept.append(self.rng.choice(inner.tiles[-4:]))
        exact_ops, fresh = self.copy_ops(inner.ops)
        exact = Scope()
        exact.ops = exact_ops
        (first, dims), *_ = kept
        limit = self.rng.choice((-1, 0, 2, 8, 64, 1000))
        guess = first
        if len(dims) == 2:
            guess = self.reduce_columns(inner, "max", first, dims)
        rows = dims[:1]
        bar = self.constant(inner, rows, limit)
        holds = self.operation(inner, "arith.cmpf ole,", [guess, bar], tile(rows), tile(rows, "i1"))
        capped = self.apply(exact, "arith.minimumf", [fresh.get(first, first), self.constant(exact, dims, limit)],
                            dims, self.bound[first])
        results = [(self.name(), tile(dims)) for _, dims in kept]
        exact_yields = [capped] + [fresh.get(name, name) for name, _ in kept[1:]]
        self.used.update(name for name, _ in kept)
        scope.ops.append(Op("speculate", results, [], regions=[
            Region([], inner.ops, [holds] + [name for name, _ in kept]), Region([], exact.ops, exact_yields)]))
        for (name, _), (value, dims) in zip(results, kept):
            self.add_tile(scope, name, dims, self.bound[value])

    def copy_ops(self, ops):
        """A copy of operations under new names, and these."""
        copied = copy.deepcopy(ops)
        names = {name: self.name() for name in definitions(copied)}
        rename(copied, names)
        return copied, names
