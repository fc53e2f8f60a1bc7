"""Draws the dots of a random kernel: operands that are loaded, gathered, masked, transposed, converted and computed, and
products that are work for helpers."""

from values import COLUMNS, LARGEST_INPUT, Values, places, tile


class Dots(Values):
    """Adds dots."""

    def operand(self, scope, dims):
        """A loaded 16-bit tile, at times one that another dot has."""
        found = [name for name, had in scope.operands if had == dims]
        if found and self.chance(0.4):
            return self.rng.choice(found)
        # The lanes that copy a row take it in turn with those of other rows.
        units = self.size[dims[1]] // 8
        shares = self.size[dims[0]] % (128 // min(units & -units, 8)) == 0 if units else False
        gathers = self.gathers and shares and self.lists.random() < 0.6
        name = self.gathered(scope, dims) if gathers else self.load(scope, dims, "$T")
        scope.operands.append((name, dims))
        return name

    def gathered(self, scope, dims):
        """Rows that a loaded list names, with as many that are in no list or view. Copies of 16 bytes begin at multiples of 8."""
        known = [name for name, view in self.program.views.items() if view.element == "i32"]
        listed = self.lists.choice(known) if known and self.lists.random() < 0.5 else self.new_view(["M"], "i32")
        type = tile(dims[:1], "i32")
        numbers = self.load_from(scope, listed, [self.place(scope, dims[0])], "", type)
        view = self.view(dims, "$T", 2)
        indices = [self.inside(scope, self.extent(dim)) for dim in self.program.views[view].dims[:-2]]
        indices += [self.index(scope, 0), self.index(scope, self.unit * self.lists.choice((0, 0, 1, 4)))]
        text = f"tile.gather %{view}[{places(indices)}] rows {{{len(indices)}}} : !V_{view}, {type} -> {tile(dims, '$T')}"
        name = self.emit(scope, text, [*indices, numbers], tile(dims, "$T"), [view])
        self.bound[name] = LARGEST_INPUT
        return name

    def transpose(self, scope, source, dims, element="$T"):
        return self.convert(scope, "tile.transpose", source, tile(dims[::-1], element), tile(dims, element))

    def transposed(self, scope, dims):
        return self.transpose(scope, self.operand(scope, dims[::-1]), dims)

    def converted(self, scope, dims):
        """A loaded tile of 8 bits as one of 16, for which there is a converter."""
        narrow = self.load(scope, dims, "f8E4M3FN")
        if self.helpers.random() < 0.7:
            return self.convert(scope, "arith.extf", narrow, tile(dims, "f8E4M3FN"), tile(dims, "$T"))
        wide = self.convert(scope, "arith.extf", narrow, tile(dims, "f8E4M3FN"), tile(dims))
        factor = self.emit(scope, f"arith.constant dense<0.5> : {tile(dims)}", [], tile(dims))
        return self.round(scope, self.operation(scope, "arith.mulf", [wide, factor], tile(dims)), dims)

    def masked(self, scope, dims):
        """A loaded tile of 16 bits with zeros in some rows or columns, and with other signs at times."""
        wide = self.extend(scope, self.load(scope, dims, "$T"), dims)
        if self.hiding.random() < 0.5:
            wide = self.operation(scope, "arith.negf", [wide], tile(dims))
        operands = [self.comparison(scope, dims), wide, self.constant(scope, dims, 0)]
        types = f"{tile(dims, 'i1')}, {tile(dims)}"
        return self.round(scope, self.operation(scope, "arith.select", operands, types, tile(dims)), dims)

    def may_mask(self, dims):
        """Whether to mask an operand: those who multiply hold multiples of 64 rows."""
        return not self.has_bytes and self.size[dims[0]] % 64 == 0 and self.hiding.random() < 0.12

    def second_operand(self, scope, dims, first):
        """The second operand of a dot, transposed or not. Of two loaded tiles of bytes one lies along the contraction."""
        is_transposed = self.chance(0.5) or (self.has_bytes and first in (name for name, _ in scope.operands))
        source = dims[::-1] if is_transposed else dims
        if self.may_mask(source):
            name = self.masked(scope, source)
            return self.transpose(scope, name, dims) if is_transposed else name
        if not self.converts or self.size[source[1]] % 32 or self.helpers.random() < 0.4:
            return self.transposed(scope, dims) if is_transposed else self.operand(scope, dims)
        name = self.converted(scope, source)
        return self.transpose(scope, name, dims) if is_transposed else name

    def first_operand(self, scope, depth):
        dims = ("BM", depth)
        if scope.find(*dims) and self.chance(0.5):
            return self.computed(scope, dims)
        if self.chance(0.06) and self.size["BM"] == 64:
            name = self.transposed(scope, dims)
        elif self.may_mask(dims):
            name = self.masked(scope, dims)
        else:
            name = self.operand(scope, dims)
        self.bound[name] = LARGEST_INPUT
        return name

    def computed(self, scope, dims):
        """A computed tile of 16 bits."""
        a = self.bounded(scope, self.pick(scope, *dims), dims, 16)
        name = self.round(scope, a, dims)
        self.bound[name] = self.bound[a]
        return name

    def operands(self, scope, column):
        """The operands of a dot and what it contracts; the second one is computed at times, or a constant matrix is one of them."""
        if not self.has_bytes and self.size["BM"] % 64 == 0 and self.signs.random() < 0.1:
            (of_loaded, of_constant), is_second = (("BM", "BM"), ("BM", column)), self.signs.random() < 0.5
            if not is_second:
                of_loaded, of_constant = of_constant, of_loaded
            loaded, constant = self.operand(scope, of_loaded), self.round(scope, self.sign(scope, of_constant), of_constant)
            self.bound[loaded], self.bound[constant] = LARGEST_INPUT, 1
            return (loaded, constant, "BM") if is_second else (constant, loaded, "BM")
        if not self.has_bytes and scope.find("BM", column) and self.seconds.random() < 0.2:
            a, b = self.operand(scope, ("BM", "BM")), self.computed(scope, ("BM", column))
            self.bound[a] = LARGEST_INPUT
            return a, b, "BM"
        depth = self.rng.choice(COLUMNS)
        a = self.first_operand(scope, depth)
        b = self.second_operand(scope, (depth, column), a)
        self.bound[b] = LARGEST_INPUT
        return a, b, depth

    def operands_of_f32(self, scope, column):
        """Two operands of f32, of which whole numbers up to 16 are exact as any terms."""
        a = self.load_arithmetic(scope, ("BM", "BM"))
        b = self.bounded(scope, self.pick(scope, "BM", column), ("BM", column), 16)
        return a, b, "BM"

    def words(self, scope, column):
        """Two operands of f32 that are multiplied as they are: loaded along the contraction, or computed."""
        names = []
        for dims, is_second in ((("BM", "BM"), False), (("BM", column), True)):
            if self.precisions.random() < 0.5:
                name = self.load(scope, dims[::-1] if is_second else dims, "f32")
                name = self.transpose(scope, name, dims, "f32") if is_second else name
                self.bound[name] = LARGEST_INPUT
            else:
                picked = self.bounded(scope, self.pick(scope, *dims), dims, 16)
                name = self.apply(scope, "arith.negf", [picked], dims, self.bound[picked])
            names.append(name)
        return *names, "BM"

    def bound_of_dot(self, a, b, depth):
        return self.bound[a] * self.bound[b] * (self.size[depth] if self.program.integers else self.size[depth] ** 0.5)

    def dot(self, scope, column, accumulator=None):
        element, word, operands = "$T", "", self.operands
        if not self.has_bytes and scope.find("BM", column) and self.precisions.random() < 0.1:
            precision = self.precisions.choice(("bf16", "f16", "bf16x3", "f16x3", "bf16x6", "tf32", "tf32"))
            element, word, operands = "f32", f" precision {precision}", self.words if precision == "tf32" else self.operands_of_f32
        a, b, depth = operands(scope, column)
        dims = ("BM", column)
        bound = self.bound_of_dot(a, b, depth)
        if accumulator is None and scope.find(*dims) and self.chance(0.3):
            accumulator = self.bounded(scope, self.pick(scope, *dims), dims, self.limit)
        operands, acc = [a, b], ""
        if accumulator:
            operands.append(accumulator)
            acc, bound = ", {2}", bound + self.bound[accumulator]
        types = f"{tile(('BM', depth), element)}, {tile((depth, column), element)}"
        name = self.emit(scope, f"tile.dot {{0}}, {{1}}{acc}{word} : {types} -> {tile(dims)}", operands, tile(dims))
        return self.add_tile(scope, name, dims, bound)

    def sum_of_product(self, scope):
        """A product of a computed tile that only leaves for memory, which adds it up: work of a reducer. Half of them
        are of its transpose, at the place of a block that the loop walks over."""
        inner, column = self.helpers.choice(COLUMNS), self.helpers.choice(COLUMNS)
        a, rows, depth = self.computed(scope, ("BM", inner)), "BM", inner
        place = scope.row
        if not self.has_bytes and self.size[inner] % 64 == 0 and scope.blocks and self.helpers.random() < 0.6:
            rows, depth, place = inner, "BM", scope.blocks[-1]
            a, bound = self.transpose(scope, a, (rows, depth)), self.bound[a]
            self.bound[a] = bound
        b = self.operand(scope, (depth, column))
        self.bound[b] = LARGEST_INPUT
        types = f"{tile((rows, depth), '$T')}, {tile((depth, column), '$T')}"
        dims = (rows, column)
        name = self.emit(scope, f"tile.dot {{0}}, {{1}} : {types} -> {tile(dims)}", [a, b], tile(dims))
        self.bound[name] = self.bound_of_dot(a, b, depth)
        view = self.new_view(["N" if rows != "BM" else "M", f"${column}"], "f32", "sum")
        self.outputs.add(view)
        self.store_at(scope, self.bounded(scope, name, dims, 2.0**14), dims, view, [place, self.index(scope, 0)], " add")
