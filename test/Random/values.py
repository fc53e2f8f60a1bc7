"""Draws the values of a random kernel: constants, indices, loads, arithmetic, masks, stores.

Each value of a tile has a bound on its magnitude. With normal inputs it keeps exponentials and sums
in range; with integer inputs it keeps every sum below 2^24, so that any order of it gives the same
bits and a difference of one bit is an error of the compiler.
"""

import random

from program import Op, View

# What a tile's magnitude may be before it is added up, and what a loop may carry: with integers any
# sum of the first and of 128 columns of it is exact, and so is the second.
LIMITS = {True: (2.0**12, 2.0**18), False: (2.0**9, 2.0**12)}
LARGEST_INPUT = 6  # of |round(x)|, x standard normal

# What masks compare with: places, and the ends of 32 bits.
NUMBERS = (0, 1, 17, 64, 100, 128, -(2**31), -(2**31) + 100, 2**30, 2**31 - 100, 2**31 - 1)

COLUMNS = ("BN", "D", "DV")  # parameters that are columns of tiles; BM is their rows


def tile(dims, element="f32"):
    return f"tensor<{'x'.join('$' + dim for dim in dims)}x{element}>"


def places(operands, first=0):
    """Places for operands in the text of an operation."""
    return ", ".join(f"{{{first + i}}}" for i in range(len(operands)))


class Scope:
    """What operations at one place may use."""

    def __init__(self, parent=None):
        self.ops = []
        inherit = lambda name: list(getattr(parent, name)) if parent else []
        self.tiles = inherit("tiles")  # (name, dims), f32, the latest last
        self.operands = inherit("operands")  # (name, dims) of loaded 16-bit tiles
        self.indices = inherit("indices")
        self.blocks = inherit("blocks")  # indices that walk over a tensor in blocks
        self.counters = inherit("counters")  # induction variables, for stores in loops
        self.scalars = inherit("scalars")  # f32
        self.numbers = inherit("numbers")  # i32
        self.row = parent.row if parent else None
        self.constants = dict(parent.constants) if parent else {}
        self.depth = parent.depth + 1 if parent else 0
        self.trips = parent.trips if parent else 1
        self.may_store = parent.may_store if parent else True

    def find(self, *dims):
        return [name for name, found in self.tiles if found == dims]


class Values:
    def __init__(self, rng, program, size):
        self.rng = rng
        self.program = program
        self.size = size  # of the parameters that are extents of tiles
        self.count = 0
        self.bound = {}
        self.range = {}  # of indices, both ends included
        self.grid_leads = []  # (dimension, index) of all grid dimensions but the rows'
        self.outputs = set()
        self.speculates = False  # such a kernel may not load what it stores
        self.used = set()
        self.constants = set()
        self.summing = random.Random(f"sums {program.seed}")  # of its own: programs without sums stay what they are
        self.seconds = random.Random(f"second operands {program.seed}")  # likewise
        self.scans = random.Random(f"scans {program.seed}")  # likewise
        self.signs = random.Random(f"signs {program.seed}")  # likewise
        self.firsts = random.Random(f"places of the largest {program.seed}")  # likewise
        self.precisions = random.Random(f"precisions {program.seed}")  # likewise
        self.lists = random.Random(f"lists of rows {program.seed}")  # likewise
        self.gathers = self.lists.random() < 0.15  # whether rows of operands are named by lists
        self.helpers = random.Random(f"work of helpers {program.seed}")  # likewise
        self.hiding = random.Random(f"masked operands {program.seed}")  # likewise
        self.ranges = random.Random(f"ranges of clusters {program.seed}")  # likewise
        self.has_bytes = program.params["T"] == "f8E4M3FN"
        self.converts = not self.has_bytes and self.helpers.random() < 0.15  # whether dots read bytes as 16 bits
        self.unit = 8  # elements where bulk copies may start
        if self.has_bytes or self.converts:
            self.unit = 16
            program.dims["W"] *= 2

    # Small helpers.

    def chance(self, probability):
        return self.rng.random() < probability

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def emit(self, scope, text, operands, type, views=()):
        name = self.name()
        self.used.update(operands)
        scope.ops.append(Op("op", [(name, type)], list(operands), text, views=list(views)))
        return name

    def operation(self, scope, op, operands, type, result=None):
        """An operation that prints its operands and one type, which the result has if it has no other."""
        return self.emit(scope, f"{op} {places(operands)} : {type}", operands, result or type)

    def convert(self, scope, op, name, source, result):
        """An operation that prints the type of its operand and of its result."""
        arrow = "->" if op.startswith("tile.") else "to"
        return self.emit(scope, f"{op} {{0}} : {source} {arrow} {result}", [name], result)

    def round(self, scope, name, dims):
        return self.convert(scope, "arith.truncf", name, tile(dims), tile(dims, "$T"))

    def extend(self, scope, name, dims):
        return self.convert(scope, "arith.extf", name, tile(dims, "$T"), tile(dims))

    def reduce_columns(self, scope, kind, source, dims):
        rows = tile(dims[:1])
        return self.emit(scope, f"tile.reduce {kind} {{0}} axis 1 : {tile(dims)} -> {rows}", [source], rows)

    def add_tile(self, scope, name, dims, bound):
        self.bound[name] = bound
        scope.tiles.append((name, dims))
        return name

    @property
    def limit(self):
        return LIMITS[self.program.integers][0]

    @property
    def carried_limit(self):
        return LIMITS[self.program.integers][1]

    # Indices.

    def index(self, scope, value, text=None):
        """A constant. `text` has the parameters that it follows from."""
        text = text or str(value)
        if text not in scope.constants:
            scope.constants[text] = self.emit(scope, f"arith.constant {text} : index", [], "index")
            self.range[scope.constants[text]] = (value, value)
        return scope.constants[text]

    def width(self, scope, dim, factor=1):
        """The extent of tiles along `dim`, or a multiple of it."""
        text = f"$({factor} * {dim})" if factor != 1 else f"${dim}"
        return self.index(scope, factor * self.size[dim], text)

    def index_op(self, scope, op, a, b):
        (al, ah), (bl, bh) = self.range[a], self.range[b]
        ceil = lambda x, y: -(-x // y)
        corners = {
            "addi": lambda x, y: x + y, "subi": lambda x, y: x - y, "muli": lambda x, y: x * y,
            "minsi": min, "maxsi": max, "ceildivsi": ceil, "floordivsi": lambda x, y: x // y,
            "divui": lambda x, y: x // y, "remui": lambda x, y: x % y,
        }[op]
        found = [corners(x, y) for x in (al, ah) for y in (bl, bh)]
        if op == "remui":
            found = [0, bh - 1]
        name = self.emit(scope, f"arith.{op} {{0}}, {{1}} : index", [a, b], "index")
        self.range[name] = (min(found), max(found))
        return name

    def dim(self, scope, dim):
        if dim not in scope.constants:
            scope.constants[dim] = self.emit(scope, f'tile.dim "{dim}"', [], "index")
            self.range[scope.constants[dim]] = (self.program.dims[dim],) * 2
        return scope.constants[dim]

    def inside(self, scope, extent):
        """An index that lies in [0, extent)."""
        fits = [i for i in scope.indices if 0 <= self.range[i][0] and self.range[i][1] < extent]
        if fits and self.chance(0.7):
            return self.rng.choice(fits)
        return self.index(scope, self.rng.randrange(extent))

    def extent(self, dim):
        """The extent of a view's dimension: a name, a number or an expression of parameters."""
        if dim in self.program.dims:
            return self.program.dims[dim]
        return eval(dim.strip("$()"), {}, self.size)  # of our own making: "D", "2 * D" or "64"

    # Views and loads.

    def new_view(self, dims, element, kind="a"):
        name = f"{kind}{len(self.program.views)}"
        self.program.views[name] = View(dims, element)
        return name

    def leads(self):
        choices = [[], [], ["H"], ["B", "H"], ["HK"], [str(self.rng.choice((2, 3)))]]
        return self.rng.choice([lead for lead in choices if all(d in self.program.dims or d.isdigit() for d in lead)])

    def columns_of(self, column):
        return self.rng.choice((f"${column}", f"${column}", f"$(2 * {column})", f"$(3 * {column})", "W"))

    def view(self, dims, element, rank):
        """An input that has `rank` dimensions besides leading ones, for a tile of `dims`."""
        known = [name for name, view in self.program.views.items()
                 if name not in self.outputs and view.element == element and len(view.dims) >= rank
                 and (rank == 1 or view.dims[-1][0] in "$W")]
        if known and self.chance(0.55):
            return self.rng.choice(known)
        static = str(self.rng.choice((1, 40, 64, 100))) if dims[0] != "BM" else None
        rows = ("N", "N", "M", "L", static) if static else ("M", "M", "M", "N")
        if rank == 1:
            return self.new_view(self.leads() + [self.rng.choice(rows)], element)
        return self.new_view(self.leads() + [self.rng.choice(rows), self.columns_of(dims[1])], element)

    def place(self, scope, dim):
        """An index along a dimension that a tile's `dim` covers."""
        if dim == "BM" and scope.row and self.chance(0.65):
            return scope.row
        if scope.blocks and self.chance(0.65):
            return self.rng.choice(scope.blocks[-2:])
        if scope.indices and self.chance(0.15):
            return self.rng.choice(scope.indices)
        if self.chance(0.2):
            return self.width(scope, dim, self.rng.choice((1, 1, 2)))
        return self.index(scope, self.rng.choice((0, 0, 0, 1, 8, 16, -8)))

    def place_column(self, scope, dim):
        """An index along a tile's columns. Bulk copies start at multiples of 8, so few are none."""
        if self.chance(0.6):
            return self.index(scope, 0)
        if self.chance(0.1):
            return self.place(scope, dim)
        if scope.blocks and self.chance(0.5):
            return self.rng.choice(scope.blocks[-2:])
        if scope.indices and self.chance(0.3):
            return self.index_op(scope, "muli", self.rng.choice(scope.indices), self.index(scope, self.unit))
        return self.index(scope, self.unit * self.rng.choice((1, 2, 5, 8, -1, -4)))

    def load(self, scope, dims, element):
        """A tile of rank 1 or 2; its bound is set."""
        view = self.view(dims, element, len(dims))
        declared = self.program.views[view].dims
        leads, box = declared[:-len(dims)], ""
        indices = [self.inside(scope, self.extent(dim)) for dim in leads]
        if leads and self.extent(leads[-1]) >= 2 and self.chance(0.08):
            # Rows of two neighbours, half of them of each.
            indices[-1] = self.inside(scope, self.extent(leads[-1]) - 1)
            box = self.box(leads, dims)
        indices.append(self.place(scope, dims[0]))
        if len(dims) == 2:
            indices.append(self.place_column(scope, dims[1]))
        type = tile(dims, element)
        name = self.load_from(scope, view, indices, box, type)
        self.bound[name] = LARGEST_INPUT
        return name

    def load_from(self, scope, view, indices, box, type):
        text = f"tile.load %{view}[{places(indices)}]{box} : !V_{view} -> {type}"
        return self.emit(scope, text, indices, type, [view])

    def box(self, leads, dims):
        extents = ["1"] * (len(leads) - 1) + ["2", f"$({dims[0]} / 2)"] + [f"${dim}" for dim in dims[1:]]
        return f" box [{', '.join(extents)}]"

    def load_scalar(self, scope):
        view = self.view(("BM",), "f32", 1)
        indices = [self.inside(scope, self.extent(dim)) for dim in self.program.views[view].dims]
        name = self.load_from(scope, view, indices, "", "f32")
        self.bound[name] = LARGEST_INPUT
        scope.scalars.append(name)
        return name

    def load_arithmetic(self, scope, dims):
        """A loaded tile as f32."""
        if self.chance(0.6) or self.is_vector_of_bytes(dims):
            name = self.load(scope, dims, "f32")
        else:
            narrow = self.load(scope, dims, "$T")
            name = self.extend(scope, narrow, dims)
        return self.add_tile(scope, name, dims, LARGEST_INPUT)

    def is_vector_of_bytes(self, dims):
        """Elements of 8 bits come four to a register, which those of a vector do not."""
        return self.has_bytes and len(dims) == 1

    # Arithmetic.

    def constant(self, scope, dims, value):
        name = self.emit(scope, f"arith.constant dense<{float(value)!r}> : {tile(dims)}", [], tile(dims))
        self.bound[name] = abs(value)
        self.constants.add(name)
        return name

    def apply(self, scope, op, operands, dims, bound):
        return self.add_tile(scope, self.operation(scope, op, operands, tile(dims)), dims, bound)

    def bounded(self, scope, name, dims, limit):
        """`name`, or something made of it whose magnitude is at most `limit`."""
        if self.bound[name] <= limit:
            return name
        if not self.program.integers:
            factor = 1.0
            while self.bound[name] * factor > limit:
                factor /= 2
            scale = self.constant(scope, dims, factor)
            return self.apply(scope, "arith.mulf", [name, scale], dims, self.bound[name] * factor)
        limit = max(1, int(limit))
        low = self.apply(scope, "arith.maximumf", [name, self.constant(scope, dims, -limit)], dims, self.bound[name])
        return self.apply(scope, "arith.minimumf", [low, self.constant(scope, dims, limit)], dims, limit)

    def pick(self, scope, *dims):
        """A tile of `dims`, one of the latest and rather one that nothing uses; made if there is none."""
        found = scope.find(*dims)
        if not found:
            return self.fresh(scope, dims)
        unused = [name for name in found[-6:] if name not in self.used]
        return self.rng.choice(unused if unused and self.chance(0.7) else found[-3:])

    def gather(self, scope, dims):
        """One tile of all of `dims` that nothing uses, the first of them and sums."""
        unused = [name for name in scope.find(*dims) if name not in self.used and name not in self.constants]
        if not unused:
            return None
        total = unused[-1]
        for name in unused[-4:-1]:
            terms = [self.bounded(scope, term, dims, self.limit) for term in (total, name)]
            total = self.apply(scope, "arith.addf", terms, dims, sum(self.bound[term] for term in terms))
        return total

    def fresh(self, scope, dims):
        kind = self.rng.random()
        if len(dims) == 2 and kind < 0.35:
            vector = self.pick(scope, "BM") if self.chance(0.7) else None
            if vector:
                return self.broadcast(scope, vector, dims, 1)
        if len(dims) == 2 and kind < 0.5:
            return self.broadcast(scope, self.load_arithmetic(scope, (dims[1],)), dims, 0)
        if kind < 0.75:
            return self.load_arithmetic(scope, dims)
        if kind < 0.85 and scope.scalars:
            source = self.rng.choice(scope.scalars)
            name = self.emit(scope, f"tile.splat {{0}} : f32 -> {tile(dims)}", [source], tile(dims))
            return self.add_tile(scope, name, dims, self.bound[source])
        if kind < 0.93:
            return self.add_tile(scope, self.constant(scope, dims, self.rng.choice((-2, 0, 1, 3))), dims, 3)
        return self.from_iota(scope, dims)

    def broadcast(self, scope, vector, dims, axis):
        source = tile((dims[1 - axis],))
        name = self.emit(scope, f"tile.broadcast {{0}} axis {axis} : {source} -> {tile(dims)}", [vector], tile(dims))
        return self.add_tile(scope, name, dims, self.bound[vector])

    def from_iota(self, scope, dims):
        """Indices as f32, as for ALiBi."""
        axis = self.rng.randrange(len(dims))
        indices = self.iota(scope, dims, axis)
        if len(dims) == 2 and self.chance(0.5):
            other = self.iota(scope, dims, 1 - axis)
            indices = self.operation(scope, "arith.subi", [indices, other], tile(dims, "i32"))
        name = self.convert(scope, "arith.sitofp", indices, tile(dims, "i32"), tile(dims))
        self.bound[name] = 4096
        return self.bounded(scope, self.add_tile(scope, name, dims, 4096), dims, 64)

    def iota(self, scope, dims, axis):
        start = self.place(scope, dims[axis])
        type = tile(dims, "i32")
        return self.emit(scope, f"tile.iota {{0}} axis {axis} : {type}", [start], type)

    def binary(self, scope, dims):
        a, b = self.pick(scope, *dims), self.pick(scope, *dims)
        op = self.rng.choice(("addf", "addf", "subf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"))
        if op == "mulf":
            a, b = self.bounded(scope, a, dims, 64), self.bounded(scope, b, dims, 64)
            bound = self.bound[a] * self.bound[b]
        else:
            a, b = self.bounded(scope, a, dims, self.limit), self.bounded(scope, b, dims, self.limit)
            bound = self.bound[a] + self.bound[b] if op in ("addf", "subf") else max(self.bound[a], self.bound[b])
        return self.apply(scope, f"arith.{op}", [a, b], dims, bound)

    def unary(self, scope, dims):
        a = self.pick(scope, *dims)
        exact = [("math.absf", None), ("arith.negf", None), ("math.floor", None)]
        op, limit = self.rng.choice(exact if self.program.integers else exact[:2] + [
            ("math.exp2", 6), ("math.exp2", 6), ("math.exp", 4), ("math.tanh", None), ("root", None), ("log", None),
            ("inverse", None), ("math.sin", 3), ("math.cos", 3)])
        if limit:
            a = self.bounded(scope, a, dims, limit)
        if op in ("root", "log", "inverse"):
            positive = self.apply(scope, "math.absf", [a], dims, self.bound[a])
            above = self.apply(scope, "arith.addf", [positive, self.constant(scope, dims, 1)], dims, self.bound[a] + 1)
            if op == "inverse":
                b = self.pick(scope, *dims)
                return self.apply(scope, "arith.divf", [b, above], dims, self.bound[b])
            return self.apply(scope, "math.rsqrt" if op == "root" else "math.log", [above], dims, 12)
        if op == "math.tanh":  # its error is one of 1, whatever its result (docs/language.md, Exactness)
            a = self.apply(scope, "arith.addf", [a, self.constant(scope, dims, 1)], dims, self.bound[a] + 1)
        bound = {"math.exp2": 64, "math.exp": 64}.get(op, self.bound[a])
        return self.apply(scope, op, [a], dims, bound)

    def reduce(self, scope, column):
        """A reduction along the columns."""
        dims = ("BM", column)
        source = self.pick(scope, *dims)
        if self.scans.random() < 0.25:
            source = self.scan(scope, source, dims)
        kind = self.rng.choice(("sum", "sum", "max", "max", "min", "maximum", "minimum"))
        if kind == "sum":
            source = self.bounded(scope, source, dims, self.limit)
        # What rounds in another order may have its largest elsewhere.
        if kind != "sum" and self.program.integers and self.firsts.random() < 0.4:
            return self.reduce_index(scope, kind, source, dims)
        factor = self.size[column] if kind == "sum" else 1
        name = self.reduce_columns(scope, kind, source, dims)
        self.add_tile(scope, name, ("BM",), self.bound[source] * factor)
        return self.bounded(scope, name, ("BM",), self.limit)

    def reduce_index(self, scope, kind, source, dims):
        """The largest or smallest of each row, and its place as f32."""
        value, place, rows = self.name(), self.name(), dims[:1]
        types = tile(rows), tile(rows, "i32")
        text = f"tile.reduce_index {kind} {{0}} axis 1 : {tile(dims)} -> {', '.join(types)}"
        self.used.add(source)
        scope.ops.append(Op("op", list(zip((value, place), types)), [source], text))
        self.add_tile(scope, value, rows, self.bound[source])
        name = self.convert(scope, "arith.sitofp", place, types[1], types[0])
        return self.add_tile(scope, name, rows, self.size[dims[1]])

    def scan(self, scope, source, dims):
        """A scan along columns, or along the rows of one warpgroup. What an exclusive one has where it begins stays in range."""
        axis = self.scans.choice((0, 1) if self.size["BM"] == 64 else (1,))
        if self.signs.random() < 0.4:
            flags = self.signs.choice(("", " reverse", " exclusive", " exclusive reverse"))
            name = self.emit(scope, f"tile.scan product {{0}} axis {axis}{flags} : {tile(dims)}", [self.sign(scope, dims)], tile(dims))
            return self.add_tile(scope, name, dims, 1)
        kind = self.scans.choice(("sum", "sum", "max", "min", "maximum", "minimum"))
        flags = self.scans.choice(("", " reverse", " exclusive", " exclusive reverse") if kind == "sum" else ("", " reverse"))
        if kind == "sum":
            source = self.bounded(scope, source, dims, self.limit)
        factor = self.size[dims[axis]] if kind == "sum" else 1
        name = self.emit(scope, f"tile.scan {kind} {{0}} axis {axis}{flags} : {tile(dims)}", [source], tile(dims))
        return self.add_tile(scope, name, dims, self.bound[source] * factor)

    def sign(self, scope, dims):
        """-1 where a comparison of rows, columns and numbers holds, else 1."""
        operands = [self.comparison(scope, dims), self.constant(scope, dims, -1), self.constant(scope, dims, 1)]
        name = self.operation(scope, "arith.select", operands, f"{tile(dims, 'i1')}, {tile(dims)}", tile(dims))
        self.bound[name] = 1
        return name

    def round_trip(self, scope, dims):
        """Through 16 bits and back."""
        a = self.bounded(scope, self.pick(scope, *dims), dims, 4096)
        narrow = self.round(scope, a, dims)
        name = self.extend(scope, narrow, dims)
        return self.add_tile(scope, name, dims, self.bound[a] * 1.01)

    # Masks.

    def limit_tile(self, scope, dims):
        """An i32 tile of one number: a dimension, a scalar argument, an index or a constant."""
        type = tile(dims, "i32")
        kind = self.rng.random()
        if kind < 0.15:
            return self.emit(scope, f"arith.constant dense<{self.rng.choice(NUMBERS)}> : {type}", [], type)
        if kind < 0.3 and scope.numbers:
            return self.emit(scope, f"tile.splat {{0}} : i32 -> {type}", [self.rng.choice(scope.numbers)], type)
        source = self.dim(scope, self.rng.choice([d for d in ("M", "N") if d in self.program.dims]))
        if kind > 0.6 and scope.indices:
            source = self.rng.choice(scope.indices)
        narrow = self.emit(scope, "arith.index_cast {0} : index to i32", [source], "i32")
        return self.emit(scope, f"tile.splat {{0}} : i32 -> {type}", [narrow], type)

    def comparison(self, scope, dims):
        axis = self.rng.randrange(len(dims))
        left = self.iota(scope, dims, axis)
        if len(dims) == 2 and self.chance(0.5):
            right = self.iota(scope, dims, 1 - axis)
        else:
            right = self.limit_tile(scope, dims)
        if self.chance(0.2):
            op = self.rng.choice(("arith.addi", "arith.subi"))
            left = self.operation(scope, op, [left, self.limit_tile(scope, dims)], tile(dims, "i32"))
        predicate = self.rng.choice(("slt", "sle", "sgt", "sge", "slt", "sle", "eq", "ne"))
        return self.operation(scope, f"arith.cmpi {predicate},", [left, right], tile(dims, "i32"), tile(dims, "i1"))

    def mask(self, scope, dims):
        type = tile(dims, "i1")
        condition = self.comparison(scope, dims)
        if self.chance(0.35):
            other = self.comparison(scope, dims)
            condition = self.operation(scope, self.rng.choice(("arith.andi", "arith.ori")), [condition, other], type)
        elif self.program.integers and self.chance(0.3):
            # Inputs are exact, and so is every comparison of what is computed from them.
            a, b = self.pick(scope, *dims), self.pick(scope, *dims)
            predicate = self.rng.choice(("olt", "oge", "oeq", "une", "ogt"))
            condition = self.operation(scope, f"arith.cmpf {predicate},", [a, b], tile(dims), type)
        a = self.pick(scope, *dims)
        b = self.constant(scope, dims, self.rng.choice((0, 0, 1, -30))) if self.chance(0.7) else self.pick(scope, *dims)
        name = self.operation(scope, "arith.select", [condition, a, b], f"{type}, {tile(dims)}", tile(dims))
        return self.add_tile(scope, name, dims, max(self.bound[a], self.bound[b]))

    # Stores.

    def store(self, scope, name, dims):
        """Stores a tile of the grid point's rows at their place; in a loop, at the iteration's."""
        declared = [dim for dim, _ in self.grid_leads] + [str(max(1, self.range[c][1] + 1)) for c in scope.counters]
        indices = [index for _, index in self.grid_leads] + list(scope.counters)
        boxed = self.chance(0.08)
        adds = not boxed and not self.speculates and self.summing.random() < 0.12
        if adds:
            self.drop_some(declared, indices)
        if boxed:
            declared += ["2", "M2"]
            indices += [self.index(scope, 0), self.index_op(scope, "muli", self.block, self.index(
                scope, self.size["BM"] // 2, "$(BM / 2)"))]
        else:
            declared.append("M")
            indices.append(scope.row)
        if len(dims) == 2:
            self.store_columns(scope, dims[1], declared, indices)
        if len(declared) > 4:
            return
        box = self.box(declared[:-len(dims)], dims) if boxed else ""
        is_wide = adds or self.is_vector_of_bytes(dims)
        view = self.new_view(declared, "f32" if is_wide else self.rng.choice(("f32", "$T")))
        self.outputs.add(view)
        if adds:
            # No more than a thousand grid points and iterations add to one place.
            self.store_at(scope, self.bounded(scope, name, dims, 2.0**14), dims, view, indices, " add")
            return
        self.store_at(scope, name, dims, view, indices, box)
        if not self.speculates and self.chance(0.04):
            self.load_again(scope, dims, view, indices, box)
        if self.chance(0.04):
            self.store_at(scope, self.pick(scope, *dims), dims, view, indices, box)

    def drop_some(self, declared, indices):
        """Leaves indices out, over which grid points or iterations add to one place."""
        for at in reversed(range(len(declared))):
            if self.summing.random() < 0.6:
                del declared[at], indices[at]

    def store_columns(self, scope, column, declared, indices):
        """The last dimension and index of a store."""
        if column == "BN" and "NB" in declared and self.chance(0.6):
            # The grid has the columns too, as for a product of matrices.
            at = declared.index("NB")
            del declared[at], indices[at]
            declared.append("NC")
            indices.append(self.column_of_grid)
            return
        factor = 2 if self.chance(0.2) else 1
        declared.append(f"$({factor} * {column})" if factor == 2 else f"${column}")
        indices.append(self.width(scope, column) if factor == 2 and self.chance(0.5) else self.index(scope, 0))

    def store_at(self, scope, name, dims, view, indices, box):
        element, value = self.program.views[view].element, name
        if element == "$T":
            value = self.bounded(scope, name, dims, 4096)
            value = self.round(scope, value, dims)
        self.used.add(name)
        scope.ops.append(Op("op", [], [value] + indices, f"tile.store {{0}}, %{view}[{places(indices, 1)}]{box} : "
                            f"{tile(dims, element)}, !V_{view}", views=[view]))

    def load_again(self, scope, dims, view, indices, box):
        """What the grid point has just stored."""
        element = self.program.views[view].element
        name = self.load_from(scope, view, indices, box, tile(dims, element))
        if element == "$T":
            name = self.extend(scope, name, dims)
        self.add_tile(scope, name, dims, 4096)
