#!/usr/bin/env python3
"""Random masks of integers of 32 bits, up to the ends of these, against whole numbers of Python (docs/testing.md).

    masks.py DIR --count 2000 --seed 0        2000 masks, some in each kernel
    masks.py DIR --seed 137 --count 1         the kernel of one seed

Each kernel counts for each row how many columns its masks leave: in a loop over all columns, in one over those that
tile.visits finds, or of one tile. The interpreter, the scheduled form and the simulator, with loops split and not, count alike.
"""

import argparse
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Kernels" / "Inputs"))
import random_masks  # noqa: E402
from reference import load, save, save_integers  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

BLOCK, MASKS, SCALARS = 64, 6, 4
# "No limit", and what is near it.
ENDS = [-(2**31), -(2**31) + 1, -(2**31) + 100, -2_000_000_000, -(2**30), 2**30, 2_000_000_000, 2**31 - 100, 2**31 - 1]
RUNS = {
    "interpreter": [],
    "scheduled": ["--level", "scheduled"],
    "simulator, split": ["--device", "sim", "--seeds", "1"],
    "simulator, not split": ["--device", "sim", "--seeds", "1", "--no-split"],
}

HEAD = """!C = tensor<{block}x{block}xi32>
!B = tensor<{block}x{block}xi1>
!M = tensor<{block}x{block}xi1>
!T = tensor<{block}x{block}xf32>
!R = tensor<{block}xf32>
!V = tensor<{block}xi32>
tile.kernel @k(%y: !tile.view<[COUNT, M], f32>, %x: !tile.view<[N], f32>, %rows: !tile.view<[M], i32>,
               %columns: !tile.view<[N], i32>, %numbers: !tile.view<[{scalars}], i32>, {arguments}) grid(%m = M ceildiv {block}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %block = arith.constant {block} : index
  %row = arith.muli %m, %block : index
  %n = tile.dim "N"
  %blocks = arith.ceildivsi %n, %block : index
  %nothing = arith.constant dense<0.0> : !T
  %none = arith.constant dense<0.0> : !R
  %of_rows = tile.load %rows[%row] : !tile.view<[M], i32> -> !V
"""
LOADED = """  %at{i} = arith.constant {i} : index
  %c_{i} = tile.load %numbers[%at{i}] : !tile.view<[{scalars}], i32> -> i32
  %ahead{i} = arith.index_cast %a_{i} : i32 to index
"""
# What a mask is computed of, and what it leaves of ones.
TILES = """    %q = tile.iota %row axis 0 : !C
    %k = tile.iota %col axis 1 : !C
    %l = tile.broadcast %of_rows axis 1 : !V -> !C
    %of_columns = tile.load %columns[%col] : !tile.view<[N], i32> -> !V
    %w = tile.broadcast %of_columns axis 0 : !V -> !C
    %loaded = tile.load %x[%col] : !tile.view<[N], f32> -> !R
    %ones = tile.broadcast %loaded axis 0 : !R -> !T
"""
SEEN = """    %s = arith.select {mask}, %ones, %nothing : !M, !T
    %here = tile.reduce sum %s axis 1 : !T -> !R
"""
LOOP = """  %r{i} = scf.for %j = {first} to {past} step %c1 iter_args(%old = %none) -> (!R) {{
    %col = arith.muli %j, %block : index
{tiles}{body}{seen}    %new = arith.addf %old, %here : !R
    scf.yield %new : !R
  }}
"""
VISITS = """  %first{i}, %past{i} = tile.visits %j = %c0 to %blocks {{
    %col = arith.muli %j, %block : index
{tiles}{body}    tile.mask {mask} : !M
  }}
"""
STORE = """  %o{i} = arith.constant {i} : index
  tile.store %r{i}, %y[%o{i}, %row] : !R, !tile.view<[COUNT, M], f32>
"""


def remainder(a, b):
    """Towards zero, as arith.remsi has it."""
    return numpy.fmod(a, b) if numpy else (abs(a) % abs(b)) * (1 if a >= 0 else -1)


def choose(condition, a, b):
    return numpy.where(condition, a, b) if numpy else (a if condition else b)


class Mask(random_masks.Mask):
    """A mask as lines of a kernel, and as an expression of Python of q, k, l, w and numbers a and c."""

    def number(self, depth):
        leaves = ["q", "k", "k", "a", "a", "c", "l", "w", "constant", "ahead", "sum of scalars"]
        kinds = [*leaves, *["sum", "difference"] * 4, "scaled", "min", "max", "abs", "divided", "remainder", "shifted", "bits",
                 "chosen", "chunk", "chunk"]  # fmt: skip
        kind = self.rng.choice(kinds if depth else leaves)
        place = self.rng.randrange(SCALARS)
        if kind in "qklw":
            return f"%{kind}", kind
        if kind in "ac":
            return self.emit(f"tile.splat %{kind}_{place} : i32 -> !C"), f"{kind}[{place}]"
        if kind == "constant":
            value = self.rng.choice([*ENDS, self.rng.randint(-80, 200)])
            return self.constant(value), f"({value})"
        if kind == "ahead":
            axis, start = self.rng.choice([(0, "row"), (1, "col")])
            first, number = f"({'qk'[axis]} // {BLOCK} * {BLOCK})", f"a[{place}]"
            operation = self.rng.choice(["addi", "subi", "minsi", "chunk"])
            if operation == "chunk":
                chunk = self.emit(f"arith.floordivsi %ahead{place}, %block : index")
                begin, value = self.emit(f"arith.muli {chunk}, %block : index"), f"({number} // {BLOCK} * {BLOCK})"
            else:
                begin = self.emit(f"arith.{operation} %{start}, %ahead{place} : index")
                value = {"addi": f"({first} + {number})", "subi": f"({first} - {number})", "minsi": f"min({first}, {number})"}[operation]
            return self.emit(f"tile.iota {begin} axis {axis} : !C"), f"({'qk'[axis]} - {first} + {value})"
        if kind == "sum of scalars":
            other = self.rng.randrange(SCALARS)
            both = self.emit(f"arith.addi %a_{place}, %c_{other} : i32")
            return self.emit(f"tile.splat {both} : i32 -> !C"), f"(a[{place}] + c[{other}])"
        return self.combined(kind, depth)

    def combined(self, kind, depth):
        a, f = self.number(depth - 1)
        if kind in ("abs", "scaled"):
            return self.of_one(kind, a, f)
        if kind == "divided":
            operation = self.rng.choice(["floordivsi", "ceildivsi"])
            divisor = self.rng.choice([-7, -1, 3, 16, 64])
            quotient = f"({f} // {divisor})" if operation == "floordivsi" else f"(-(-{f} // {divisor}))"
            return self.emit(f"arith.{operation} {a}, {self.constant(divisor)} : !C"), quotient
        if kind == "remainder":
            divisor = self.rng.choice([3, 16, 100])
            return self.emit(f"arith.remsi {a}, {self.constant(divisor)} : !C"), f"remainder({f}, {divisor})"
        if kind == "chunk":
            divisor = self.rng.choice([16, 50, 64])
            size = self.constant(divisor)
            quotient = self.emit(f"arith.floordivsi {a}, {size} : !C")
            return self.emit(f"arith.muli {quotient}, {size} : !C"), f"({f} // {divisor} * {divisor})"
        if kind == "shifted":
            amount, operation = self.rng.choice([(1, "shli"), (3, "shrsi"), (31, "shrsi")])
            shifted = f"({f} << {amount})" if operation == "shli" else f"({f} >> {amount})"
            return self.emit(f"arith.{operation} {a}, {self.constant(amount)} : !C"), shifted
        if kind == "bits":
            bits = self.rng.choice([63, 255, -8])
            return self.emit(f"arith.andi {a}, {self.constant(bits)} : !C"), f"({f} & {bits})"
        b, g = self.number(depth - 1)
        if kind == "chosen":
            condition, h = self.condition(0)
            return self.emit(f"arith.select {condition}, {a}, {b} : !B, !C"), f"choose({h}, {f}, {g})"
        return self.of_two(kind, a, f, b, g)

    def condition(self, depth):
        kind = self.rng.choice(["compare", "compare", "and", "or", "not"]) if depth else "compare"
        if kind == "compare":
            return self.compare(lambda: (self.number(min(depth, 2)), self.number(min(depth, 1))))
        return self.join(kind, depth)


class Problem:
    """The kernel of a seed, what it gets, and what it gives."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.rows, self.columns = rng.choice([1, 63, 64, 100, 150]), rng.choice([1, 64, 100, 130, 257])
        self.masks = [Mask(rng) for _ in range(MASKS)]
        self.places = [rng.choice(["loop", "loop", "visits", "tile"]) for _ in self.masks]
        self.numbers = {name: [self.draw() for _ in range(SCALARS)] for name in "ac"}
        self.of_rows = self.draw_many(self.rows)
        self.of_columns = self.draw_many(self.columns)

    def draw(self):
        return self.rng.choice(ENDS) if self.rng.random() < 0.5 else self.rng.randint(-80, 260)

    def draw_many(self, count):
        """Numbers of rows or columns: any, or all near one another."""
        kind = self.rng.random()
        if kind < 0.3:
            return [self.draw() for _ in range(count)]
        start = self.rng.choice([0, self.draw()])
        numbers = [start + self.rng.randint(0, 70) * (1 if start < 2**30 else -1) for _ in range(count)]
        return sorted(numbers) if kind < 0.6 else numbers

    def source(self):
        text = HEAD.format(
            block=BLOCK, scalars=SCALARS, arguments=", ".join(f"%a_{i}: i32" for i in range(SCALARS))
        ) + "".join(LOADED.format(i=i, scalars=SCALARS) for i in range(SCALARS))
        for i, (mask, place) in enumerate(zip(self.masks, self.places)):
            fields = {"i": i, "tiles": TILES, "body": "".join(mask.lines), "mask": mask.name,
                      "seen": SEEN.format(mask=mask.name), "first": "%c0", "past": "%blocks"}  # fmt: skip
            if place == "visits":
                text += VISITS.format(**fields)
                fields.update(first=f"%first{i}", past=f"%past{i}")
            if place == "tile":
                text += self.write_tile(i, TILES + fields["body"] + fields["seen"])
            else:
                text += LOOP.format(**fields)
            text += STORE.format(i=i)
        return text + "}\n"

    @staticmethod
    def write_tile(i, inside):
        """The lines of one tile, at the first column, with names of their own."""
        names = inside.replace("%col]", "%c0]").replace("%col ", "%c0 ").replace("%col,", "%c0,")
        for name in ("q", "k", "l", "w", "of_columns", "loaded", "ones", "s"):
            for end in (" ", ",", "\n"):
                names = names.replace(f"%{name}{end}", f"%{name}_{i}{end}")
        names = names.replace("%v", f"%v{i}_")
        return names.replace("%here =", f"%r{i} =")

    def expect(self):
        """For each mask how many columns each row sees."""
        return [self.count(mask, place) for mask, place in zip(self.masks, self.places)]

    def count(self, mask, place):
        columns = min(self.columns, BLOCK) if place == "tile" else self.columns
        names = {"remainder": remainder, "choose": choose, **self.numbers}
        if numpy:
            names.update(q=numpy.arange(self.rows)[:, None], k=numpy.arange(columns)[None], min=numpy.minimum,
                         l=numpy.array(self.of_rows)[:, None], w=numpy.array(self.of_columns[:columns])[None],
                         max=numpy.maximum)  # fmt: skip
            seen = numpy.broadcast_to(eval(mask.code, names), (self.rows, columns))
            return [int(row) for row in seen.sum(1)]
        return [
            sum(bool(eval(mask.code, {**names, "q": q, "k": k, "l": self.of_rows[q], "w": self.of_columns[k]}))
                for k in range(columns))
            for q in range(self.rows)
        ]  # fmt: skip

    def save(self, folder):
        """The arguments of a run."""
        save(f"{folder}/x.npy", [1.0] * self.columns, (self.columns,))
        inputs = {"rows": self.of_rows, "columns": self.of_columns, "numbers": self.numbers["c"]}
        options = ["--input", f"x={folder}/x.npy", "--shape", f"COUNT={MASKS}"]
        for name, values in inputs.items():
            save_integers(f"{folder}/{name}.npy", values, "i32")
            options += ["--input", f"{name}={folder}/{name}.npy"]
        for i, value in enumerate(self.numbers["a"]):
            options += ["--set", f"a_{i}={value}"]
        return options


def check(seed, folder):
    """Why a kernel counts otherwise than Python; None where it does not."""
    problem = Problem(seed)
    source, stored = folder / "masks.tile", folder / "y.npy"
    source.write_text(problem.source())
    options, expected = problem.save(folder), problem.expect()
    for name, run in RUNS.items():
        command = ["tessera", "run", str(source), *options, *run, "--output", f"y={stored}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return f"seed {seed}, {name}: {' '.join(command)}\n{done.stderr}"
        values = load(stored)
        for i, mask in enumerate(problem.masks):
            counts = [int(value) for value in values[i * problem.rows : (i + 1) * problem.rows]]
            if counts != expected[i]:
                row = next(row for row, count in enumerate(counts) if count != expected[i][row])
                return (
                    f"seed {seed}, {name}, mask {i} ({problem.places[i]}): row {row} sees {counts[row]} columns, not "
                    f"{expected[i][row]}\n{mask.expression}\n{problem.numbers}, l = {problem.of_rows[row]}\n{' '.join(command)}"
                )
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=60, help=f"masks, {MASKS} in each kernel")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--all", action="store_true", help="go on behind a failure")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    kernels, failures = -(-options.count // MASKS), 0
    for seed in range(options.seed, options.seed + kernels):
        if error := check(seed, options.folder):
            failures += 1
            print(error, flush=True)
            if not options.all:
                break
    print(f"{kernels * MASKS} masks, {failures} kernels fail")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
