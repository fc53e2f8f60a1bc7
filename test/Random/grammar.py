"""Draws a random program: sizes, grid, body, data."""

import random

from control import Control
from program import Program, all_ops, derive_dims, remove_dead, used_dims, used_views
from values import COLUMNS, NUMBERS, Scope

SPLIT = 0.06  # how many programs begin with a range that is split
WIDE = 0.08  # how many programs of 64 rows have tiles of 512 columns
ODD_EXTENTS = (1, 7, 63, 64, 65, 100, 113, 128, 203)


def draw_sizes(rng, seed):
    rows = rng.choices((64, 128, 192, 256), (60, 28, 8, 4))[0]
    columns = (16, 32, 48, 64, 80, 96, 128) if rows <= 128 else (16, 32, 64)
    weights = (1, 2, 1, 5, 1, 1, 1)[:len(columns)]
    size = {"BM": rows}
    for name in COLUMNS:
        size[name] = rng.choices(columns, weights)[0]
    # Accumulators that no warpgroup holds, by draws of their own: other programs stay what they are.
    wide = random.Random(f"wide accumulators {seed}")
    if rows == 64 and wide.random() < WIDE:
        size.update(BN=min(size["BN"], 64), D=min(size["D"], 64), DV=512)
    return size


def draw_dims(rng, size):
    """Extents of the run-time dimensions. Those along which bulk copies step are multiples of 8."""
    extents = lambda most: rng.choice([extent for extent in ODD_EXTENTS if extent <= most] + [rng.randint(1, most)])
    dims = {"M": extents(min(203, 2 * size["BM"] + 20)), "N": extents(4 * size["BN"]), "L": extents(128),
            "W": 8 * rng.randint(1, 20), "H": rng.choice((1, 2, 2, 3)), "B": rng.choice((1, 2)),
            "NB": rng.choice((1, 2, 3)), "NX": rng.choice((0, 8))}
    dims["HK"] = rng.choice([k for k in (1, 2, 3) if dims["H"] % k == 0])
    return dims


def draw_program(seed):
    """The program of a seed; the same on every machine."""
    rng = random.Random(seed)
    size = draw_sizes(rng, seed)
    dims = draw_dims(rng, size)
    integers = rng.random() < 0.5
    params = {"T": rng.choice(("bf16", "f16")), **{name: str(value) for name, value in size.items()}}
    leads = rng.choice(([], [], [("H", "%h")], [("H", "%h"), ("B", "%b")], [("NB", "%n")]))
    extents = {"NB": ["NB", "NC ceildiv $BN"]}
    grid = [("%m", ["M ceildiv $BM", "MB", "M2 ceildiv $(BM / 2)"])]
    grid += [(index, extents.get(dim, [dim])) for dim, index in leads]
    program = Program(params, {}, {}, grid, [], [], dims, integers=integers, seed=seed % 1000)
    draw_bytes(program, size)
    control = Control(rng, program, size)
    control.grid_leads = leads
    control.block = "%m"
    control.walk = rng.choice(("BN", "BN", "BN", "D"))
    derive_dims(program)
    draw_body(control, program)
    settle_dims(program)
    draw_orders(rng, program)
    return program


def draw_bytes(program, size):
    """Makes elements of a tenth of the programs ones of 8 bits, and their columns what products of these take."""
    rng = random.Random(f"elements {program.seed} of 8 bits")
    if rng.random() > 0.1:
        return
    program.params["T"] = "f8E4M3FN"
    for name in COLUMNS:
        size[name] = 32 * -(-size[name] // 32)
        program.params[name] = str(size[name])


def draw_body(control, program):
    rng, dims = control.rng, program.dims
    scope = Scope()
    control.range["%m"] = (0, dims["MB"] - 1)
    scope.indices.append("%m")
    scope.row = control.index_op(scope, "muli", "%m", control.width(scope, "BM"))
    scope.indices.append(scope.row)
    for dim, index in control.grid_leads:
        control.range[index] = (0, dims[dim] - 1)
        scope.indices.append(index)
    if ("NB", "%n") in control.grid_leads:
        control.column_of_grid = control.index_op(scope, "muli", "%n", control.width(scope, "BN"))
        scope.blocks.append(control.column_of_grid)
        scope.indices.append(control.column_of_grid)
    if any(dim == "H" for dim, _ in control.grid_leads) and rng.random() < 0.5:
        group = control.index(scope, dims["H"] // dims["HK"])
        scope.indices.append(control.index_op(scope, "divui", "%h", group))
    for number in range(rng.choice((0, 0, 1, 2))):
        value = rng.choice((-2, 1, 2, 3)) if program.integers else rng.choice((0.125, 0.5, 1, -2))
        program.scalars[f"%s{number}"] = ("f32", str(value))
        control.bound[f"%s{number}"] = 3
        scope.scalars.append(f"%s{number}")
    for number in range(rng.choice((0, 0, 1, 2))):
        program.scalars[f"%n{number}"] = ("i32", str(rng.choice(NUMBERS)))
        scope.numbers.append(f"%n{number}")
    # Nothing is stored before.
    if control.ranges.random() < SPLIT:
        control.split(scope)
    control.speculates = rng.random() < 0.15
    control.statements(scope, rng.randint(1, 5))
    if control.speculates:
        control.speculate(scope, rng.randint(2, 4))
        control.statements(scope, rng.randint(0, 2))
    store_results(control, scope)


def store_results(control, scope):
    """Stores what nothing uses yet, as nothing else can be seen, and one product in any case."""
    rng, program = control.rng, control.program
    shapes = list(dict.fromkeys(dims for _, dims in reversed(scope.tiles) if dims[0] == "BM"))
    for dims in shapes[:rng.choice((2, 2, 3, 4))]:
        name = control.gather(scope, dims)
        if name:
            control.store(scope, name, dims)
    program.ops = scope.ops
    if not any("tile.dot" in op.text for op in all_ops(remove_dead(program.clone()))):
        column = rng.choice(COLUMNS)
        control.store(scope, control.dot(scope, column), ("BM", column))
    if rng.random() < 0.7:
        remove_dead(program)


def settle_dims(program):
    """Makes constants of the dimensions that no view has."""
    declared = used_dims(program)
    for op in all_ops(program):
        if op.text.startswith("tile.dim"):
            dim = op.text.split('"')[1]
            if dim not in declared:
                op.text = f"arith.constant {program.dims[dim]} : index"


def draw_orders(rng, program):
    """Some views are stored as BSHD is: another dimension than the first is the slowest."""
    for name in used_views(program):
        rank = len(program.views[name].dims)
        if rank >= 3 and rng.random() < 0.3:
            order = list(range(rank - 1))
            rng.shuffle(order)
            program.orders[name] = ",".join(map(str, order + [rank - 1]))
