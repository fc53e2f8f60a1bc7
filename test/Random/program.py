"""A kernel as a tree that can be printed, taken apart and put together again.

Values are named ("%v7") and typed by the text of their type, in which parameters keep their names
("tensor<$BMx$BNxf32>"): a smaller tile size is another value of one parameter, not another tree.
"""

import copy
import dataclasses
import re
from typing import Dict, List, Tuple

Named = Tuple[str, str]  # a value's name and type


@dataclasses.dataclass
class Region:
    args: List[Named]
    ops: List["Op"]
    yields: List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Op:
    """One operation. `kind` is "op" for what `text` prints, with {0}, {1}, ... for the operands; or
    "for", "if", "call", "speculate", "split", of which `text` is the callee of a call, and how a range is split."""

    kind: str
    results: List[Named]
    operands: List[str]
    text: str = ""
    regions: List[Region] = dataclasses.field(default_factory=list)
    views: List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class View:
    dims: List[str]
    element: str

    @property
    def type(self):
        return f"!tile.view<[{', '.join(self.dims)}], {self.element}>"


@dataclasses.dataclass
class Function:
    name: str
    args: List[Named]
    ops: List[Op]
    returns: List[str]


@dataclasses.dataclass
class Program:
    params: Dict[str, str]  # name: value, in the source
    views: Dict[str, View]
    scalars: Dict[str, Named]  # name: type and value
    grid: List[Tuple[str, List[str]]]  # index and ways to write its extent, of which one has dimensions of views in use
    ops: List[Op]
    functions: List[Function]
    dims: Dict[str, int]  # extents of the run-time dimensions
    integers: bool = False  # inputs that make sums exact
    seed: int = 0
    orders: Dict[str, str] = dataclasses.field(default_factory=dict)
    schedule: Dict[str, str] = dataclasses.field(default_factory=dict)
    fixed_sums: bool = False

    def clone(self):
        return copy.deepcopy(self)


def walk(ops):
    """Yields every operation, those of regions after the one that holds them."""
    for op in ops:
        yield op
        for region in op.regions:
            yield from walk(region.ops)


def all_ops(program):
    """The operations of the kernel and of the functions that it calls."""
    yield from walk(program.ops)
    for function in called_functions(program, program.ops):
        yield from walk(function.ops)


def rename(ops, names):
    """Replaces names of values in `ops`, results and arguments of regions too."""
    name = lambda value: names.get(value, value)
    for op in walk(ops):
        op.results = [(name(result), type) for result, type in op.results]
        op.operands = [name(operand) for operand in op.operands]
        for region in op.regions:
            region.args = [(name(argument), type) for argument, type in region.args]
            region.yields = [name(value) for value in region.yields]


def definitions(ops):
    """The names that `ops` define, in nested regions too."""
    names = []
    for op in walk(ops):
        names += [name for name, _ in op.results]
        for region in op.regions:
            names += [name for name, _ in region.args]
    return names


def uses(program):
    """How often each value is used."""
    counts = {}
    for op in all_ops(program):
        for name in op.operands:
            counts[name] = counts.get(name, 0) + 1
        for region in op.regions:
            for name in region.yields:
                counts[name] = counts.get(name, 0) + 1
    for function in called_functions(program, program.ops):
        for name in function.returns:
            counts[name] = counts.get(name, 0) + 1
    return counts


def blocks_of(program):
    """Every list of operations with how it ends: (ops, the names that its end uses)."""
    found = [(program.ops, [])]
    for function in called_functions(program, program.ops):
        found.append((function.ops, function.returns))
    for op in list(all_ops(program)):
        for region in op.regions:
            found.append((region.ops, region.yields))
    return found


def remove_dead(program):
    """Removes what nothing uses; stores stay."""
    while True:
        counts, changed = uses(program), False
        for ops, _ in blocks_of(program):
            kept = [op for op in ops if op_is_live(op, counts)]
            changed |= len(kept) != len(ops)
            ops[:] = kept
        if not changed:
            return program


def op_is_live(op, counts):
    stores = any("tile.store" in inner.text for inner in walk([op]))
    return stores or any(counts.get(name) for name, _ in op.results)


def types(program):
    """The type of every value."""
    found = {name: type for name, (type, _) in program.scalars.items()}
    found.update((index, "index") for index, _ in program.grid)
    for function in program.functions:
        found.update(function.args)
    for op in all_ops(program):
        found.update(op.results)
        for region in op.regions:
            found.update(region.args)
    return found


def views_of(program, ops):
    """The views that `ops` use, through calls too."""
    found = set()
    for op in walk(ops):
        found.update(op.views)
        if op.kind == "call":
            found.update(views_of(program, get_function(program, op.text).ops))
    return sorted(found)


def get_function(program, name):
    return next(function for function in program.functions if function.name == name)


def called_functions(program, ops):
    """The functions that `ops` call, through calls too, each once and after those that it calls."""
    found = []
    for op in walk(ops):
        if op.kind == "call":
            function = get_function(program, op.text)
            for inner in called_functions(program, function.ops) + [function]:
                if inner not in found:
                    found.append(inner)
    return found


def used_views(program):
    return views_of(program, program.ops)


def used_dims(program):
    """The run-time dimensions of the views in use."""
    return sorted({dim for name in used_views(program) for dim in program.views[name].dims
                   if re.fullmatch(r"[A-Z][A-Z0-9]*", dim)})


def choose_extent(program, extents):
    """The first of them that names a dimension of a view in use."""
    dims = used_dims(program)
    return next((extent for extent in extents if extent.split()[0] in dims), extents[0])


def derive_dims(program):
    """Sets the extents that follow from others: blocks of rows, halves of them, columns of blocks."""
    dims = program.dims
    dims["MB"] = -(-dims["M"] // int(program.params["BM"]))
    dims["M2"] = -(-dims["M"] // 2)
    dims["NC"] = dims["NB"] * int(program.params["BN"]) - dims["NX"]


class _Printer:
    def __init__(self, program):
        self.program = program
        self.types = types(program)
        self.lines = []

    def typed(self, names):
        return ", ".join(self.types[name] for name in names)

    def op(self, op, indent):
        space = "  " * indent
        results = ", ".join(name for name, _ in op.results)
        equals = f"{results} = " if results else ""
        types_of = ", ".join(type for _, type in op.results)
        if op.kind == "op":
            self.lines.append(space + equals + op.text.format(*op.operands))
        elif op.kind == "call":
            views = views_of(self.program, [op])
            arguments = op.operands + [f"%{view}" for view in views]
            signature = [self.types[name] for name in op.operands] + [f"!V_{view}" for view in views]
            self.lines.append(f"{space}{equals}func.call @{op.text}({', '.join(arguments)}) : "
                              f"({', '.join(signature)}) -> ({types_of})")
        else:
            getattr(self, "print_" + op.kind)(op, indent, space, equals, types_of)

    def body(self, region, indent, terminator):
        for op in region.ops:
            self.op(op, indent)
        if region.yields:
            self.lines.append(f"{'  ' * indent}{terminator} {', '.join(region.yields)} : {self.typed(region.yields)}")

    def print_for(self, op, indent, space, equals, types_of):
        lower, upper, step = op.operands[:3]
        (index, _), *carried = op.regions[0].args
        args = ""
        if carried:
            pairs = ", ".join(f"{name} = {init}" for (name, _), init in zip(carried, op.operands[3:]))
            args = f" iter_args({pairs}) -> ({types_of})"
        self.lines.append(f"{space}{equals}scf.for {index} = {lower} to {upper} step {step}{args} {{")
        self.body(op.regions[0], indent + 1, "scf.yield")
        self.lines.append(space + "}")

    def print_if(self, op, indent, space, equals, types_of):
        arrow = f" -> ({types_of})" if op.results else ""
        self.lines.append(f"{space}{equals}scf.if {op.operands[0]}{arrow} {{")
        self.body(op.regions[0], indent + 1, "scf.yield")
        if op.results or op.regions[1].ops:
            self.lines.append(space + "} else {")
            self.body(op.regions[1], indent + 1, "scf.yield")
        self.lines.append(space + "}")

    def print_speculate(self, op, indent, space, equals, types_of):
        self.lines.append(f"{space}{equals}tile.speculate -> {types_of} {{")
        self.body(op.regions[0], indent + 1, "tile.yield_if")
        self.lines.append(space + "} exact {")
        self.body(op.regions[1], indent + 1, "tile.yield")
        self.lines.append(space + "}")

    def print_split(self, op, indent, space, equals, types_of):
        lower, upper = op.operands
        part, merge = op.regions
        first, past = (name for name, _ in part.args)
        half = len(merge.args) // 2
        left, right = (", ".join(name for name, _ in side) for side in (merge.args[:half], merge.args[half:]))
        how = f" {op.text}" if op.text else ""
        self.lines.append(f"{space}{equals}tile.split_reduce {first}, {past} = {lower} to {upper}{how} -> {types_of} {{")
        self.body(part, indent + 1, "tile.yield")
        self.lines.append(f"{space}}} merge {left} with {right} {{")
        self.body(merge, indent + 1, "tile.yield")
        self.lines.append(space + "}")


def print_source(program):
    """The .tile source of a program."""
    printer = _Printer(program)
    views = used_views(program)
    lines = printer.lines = [f"!V_{name} = {program.views[name].type}" for name in views]
    for function in called_functions(program, program.ops):
        inner = views_of(program, function.ops)
        arguments = [f"{name}: {type}" for name, type in function.args] + [f"%{view}: !V_{view}" for view in inner]
        result_types = printer.typed(function.returns)
        lines.append(f"func.func @{function.name}({', '.join(arguments)}) -> ({result_types}) {{")
        for op in function.ops:
            printer.op(op, 1)
        lines += [f"  func.return {', '.join(function.returns)} : {result_types}", "}"]
    counts = uses(program)
    arguments = [f"%{name}: !V_{name}" for name in views]
    arguments += [f"{name}: {type}" for name, (type, _) in program.scalars.items() if counts.get(name)]
    grid = ", ".join(f"{index} = {choose_extent(program, extents)}" for index, extents in program.grid)
    lines.append(f"tile.kernel @k({', '.join(arguments)}) grid({grid}){' fixed_sums' if program.fixed_sums else ''} {{")
    for op in program.ops:
        printer.op(op, 1)
    text = "\n".join(lines + ["}", ""])
    params = [(name, value) for name, value in program.params.items()
              if re.search(rf"\${name}(?![A-Z0-9_])|\$\([^)]*\b{name}\b", text)]
    return "".join(f"param {name} : {'type' if name == 'T' else 'int'} = {value}\n" for name, value in params) + text


def data_options(program):
    """The options of tessera that give a program its inputs."""
    counts = uses(program)
    dims = used_dims(program)
    options = []
    if dims:
        options += ["--shape", ",".join(f"{dim}={program.dims[dim]}" for dim in dims)]
    for name, (_, value) in program.scalars.items():
        if counts.get(name):
            options += ["--set", f"{name[1:]}={value}"]
    views = used_views(program)
    for name, order in program.orders.items():
        if name in views:
            options += ["--order", f"{name}={order}"]
    if program.integers:
        options.append("--integers")
    return options + ["--seed", str(program.seed)]


def schedule_text(program):
    return ",".join(f"{name}={value}" for name, value in program.schedule.items())
