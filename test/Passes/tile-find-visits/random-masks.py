# RUN: %python %s %t
"""Bounds of random masks against the masks themselves: no needed iteration is left out, and none is taken that a mask of one
comparison does not need. With numpy a million takes minutes: --seeds 170 --points 100."""

import argparse
import pathlib
import random
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Kernels" / "Inputs"))
import random_masks  # noqa: E402
from reference import save_integers  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

BLOCK, ROWS, COUNT, CONSTANTS, MOST_BLOCKS = 16, 64, 60, 12, 12
# Numbers that are no places: without a limit.
ENDS = [-(2**31), -(2**31) + 1, -(2**30), 2**30, 2**31 - 100, 2**31 - 1]
# Grid points have constants, loaded rows, places and numbers of blocks of their own: each is another mask.
SOURCE = """
!C = tensor<{rows}x{block}xi32>
!C8 = tensor<{rows}x{block}xi8>
!M = tensor<{rows}x{block}xi1>
!V = !tile.view<[G, {count}], f32>
!P = !tile.view<[G, {constants}], i32>
tile.kernel @k(%y: !V, %r: !tile.view<[{length}], i32>, %p: !P, %ns: !tile.view<[G], i32>) grid(%g = G ceildiv 1) {{
  %c0 = arith.constant 0 : index
  %block = arith.constant {block} : index
  %rows = arith.constant {rows} : index
  %three = arith.constant 3 : index
  %which = arith.remui %g, %three : index
  %row = arith.muli %which, %rows : index
  %begin = arith.muli %g, %rows : index
  %shift = arith.constant {shift} : index
  %place = arith.addi %begin, %shift : index
  %own = tile.load %r[%place] : !tile.view<[{length}], i32> -> tensor<{rows}xi32>
  %n_i32 = tile.load %ns[%g] : !tile.view<[G], i32> -> i32
  %n = arith.index_cast %n_i32 : i32 to index
{loads}{masks}}}
"""
LOAD = """  %at{i} = arith.constant {i} : index
  %const{i} = tile.load %p[%g, %at{i}] : !P -> i32
"""
MASK = """  %first{i}, %past{i} = tile.visits %j = %c0 to %n {{
    %col = arith.muli %j, %block : index
    %k = tile.iota %col axis 1 : !C
    %q = tile.iota %row axis 0 : !C
    %l = tile.broadcast %own axis 1 : tensor<{rows}xi32> -> !C
{body}    tile.mask {mask} : !M
  }}
  %i{i} = arith.constant 4096 : index
  %a{i} = arith.constant 2048 : index
  %n{i} = arith.constant -2048 : index
  %x{i} = arith.minsi %first{i}, %a{i} : index
  %z{i} = arith.maxsi %past{i}, %n{i} : index
  %s{i} = arith.addi %z{i}, %a{i} : index
  %p{i} = arith.muli %x{i}, %i{i} : index
  %b{i} = arith.addi %p{i}, %s{i} : index
  %w{i} = arith.index_cast %b{i} : index to i32
  %f{i} = arith.sitofp %w{i} : i32 to f32
  %t{i} = tile.splat %f{i} : f32 -> tensor<1x1xf32>
  %o{i} = arith.constant {i} : index
  tile.store %t{i}, %y[%g, %o{i}] : tensor<1x1xf32>, !V
"""


class Mask(random_masks.Mask):
    """A mask as lines of a kernel, and as an expression of Python of q, k, l and constants c."""

    def number(self, depth):
        kinds = ["q", "k", "c", "l", "sum", "difference", "scaled", "min", "max", "abs", "divided", "byte"]
        kind = self.rng.choice(kinds if depth else kinds[:4])
        if kind in "qkl":
            return f"%{kind}", kind
        if kind == "c":
            place = self.rng.randrange(CONSTANTS)
            return self.emit(f"tile.splat %const{place} : i32 -> !C"), f"c[{place}]"
        a, f = self.number(depth - 1)
        if kind in ("abs", "scaled"):
            return self.of_one(kind, a, f)
        if kind == "divided":
            divisor = self.rng.choice([-7, -1, 3, 16])
            return self.emit(f"arith.floordivsi {a}, {self.constant(divisor)} : !C"), f"({f} // {divisor})"
        if kind == "byte":
            narrow = self.emit(f"arith.trunci {a} : !C to !C8")
            return self.emit(f"arith.extsi {narrow} : !C8 to !C"), f"(({f} + 128) % 256 - 128)"
        return self.of_two(kind, a, f, *self.number(depth - 1))

    def chunk(self, name):
        """A row or a key, the number of its chunk, or where that begins, in one of the ways to write it."""
        size = self.rng.choice(self.sizes)
        kind = self.rng.choice(["all", "quotient", "begin", "less", "bits"])
        if kind == "all":
            return f"%{name}", name
        if kind == "bits":
            size = 1 << size.bit_length()
            return self.emit(f"arith.andi %{name}, {self.constant(-size)} : !C"), f"({name} // {size} * {size})"
        divisor = self.constant(size)
        if kind == "less":
            rest = self.emit(f"arith.remsi %{name}, {divisor} : !C")
            return self.emit(f"arith.subi %{name}, {rest} : !C"), f"({name} // {size} * {size})"
        quotient = self.emit(f"arith.{self.rng.choice(['floordivsi', 'divsi'])} %{name}, {divisor} : !C")
        if kind == "quotient":
            return quotient, f"({name} // {size})"
        return self.emit(f"arith.muli {quotient}, {divisor} : !C"), f"({name} // {size} * {size})"

    def condition(self, depth):
        kind = self.rng.choice(["cmp", "cmp", "chunks", "and", "or", "not"]) if depth else "cmp"
        if kind == "chunks":
            self.sizes = self.rng.choice([[1, 16, 100], [64]])
            return self.compare(lambda: (self.chunk("q"), self.chunk("k")))
        if kind == "cmp":
            return self.compare(lambda: (self.number(2), self.number(1)))
        return self.join(kind, depth)

    def is_plain(self):
        """One comparison of one affine difference: no part of it hides another, and nothing is loaded, which may go with q."""
        text = "".join(self.lines)
        others = ("%l", "absi", "minsi", "maxsi", "trunci", "eq", "ne,")
        # Rows and keys by their chunks go with nothing else.
        divided = "sizes" not in vars(self) and "floordivsi" in text
        return self.comparisons == 1 and not divided and not any(part in text for part in others)


def read(path):
    """The elements of a little-endian f32 .npy file of two dimensions."""
    data = path.read_bytes()
    header = struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - 10 - header) // 4}f", data[10 + header :])


def look(mask, points):
    """For each grid point which blocks have an element that the mask leaves."""
    if numpy is None:
        return [
            [
                any(
                    eval(mask.code, {"q": q, "k": k, "l": own[q - row], "c": c})
                    for q in range(row, row + ROWS) for k in range(j * BLOCK, (j + 1) * BLOCK)
                )
                for j in range(blocks)
            ]
            for row, blocks, own, c in points
        ]  # fmt: skip
    of_points = numpy.array([point[0] for point in points])[:, None, None]
    names = {
        "q": of_points + numpy.arange(ROWS)[:, None], "k": numpy.arange(MOST_BLOCKS * BLOCK),
        "l": numpy.array([point[2] for point in points])[:, :, None],
        "c": list(numpy.array([point[3] for point in points]).T[:, :, None, None]),
        "min": numpy.minimum, "max": numpy.maximum,
    }  # fmt: skip
    seen = numpy.broadcast_to(eval(mask.code, names), (len(points), ROWS, MOST_BLOCKS * BLOCK))
    some = seen.any(1).reshape(len(points), MOST_BLOCKS, BLOCK).any(2)
    return [row[:blocks] for row, (_, blocks, _, _) in zip(some.tolist(), points)]


class Problem:
    """Masks at grid points, with what they compare, and the kernel that stores their bounds."""

    def __init__(self, seed, folder, count, suits=lambda mask: True):
        self.seed, self.folder, self.count = seed, folder, count
        rng = random.Random(seed)
        extent = ROWS * count
        numbers = [rng.randint(1, MOST_BLOCKS) for _ in range(count)]
        loaded = [rng.randint(-20, BLOCK * rng.choice(numbers) + 20) for _ in range(extent)]
        if rng.random() < 0.5:
            loaded = [value for at in range(0, extent, ROWS) for value in sorted(loaded[at : at + ROWS])]
        # What rows load may lie behind the end of the view, or before its start, and is 0 there; or the view ends with the rows.
        shift, length = rng.choice([(0, "M"), (0, "R"), (9, "R"), (-9, "R"), (9, "M")])
        padded = [0] * ROWS + loaded + [0] * ROWS
        constants = [
            [rng.choice(ENDS) if rng.random() < 0.2 else rng.randint(-80, 200) for _ in range(CONSTANTS)] for _ in range(count)
        ]
        self.masks = []
        while len(self.masks) < COUNT:
            mask = Mask(rng)
            self.masks += [mask] if suits(mask) else []
        texts = (MASK.format(i=i, rows=ROWS, body="".join(mask.lines), mask=mask.name) for i, mask in enumerate(self.masks))
        loads = "".join(LOAD.format(i=i) for i in range(CONSTANTS))
        source = folder / "masks.tile"
        fields = {"rows": ROWS, "block": BLOCK, "count": COUNT, "constants": CONSTANTS, "length": length, "shift": shift}
        source.write_text(SOURCE.format(**fields, loads=loads, masks="".join(texts)))
        options = ["--tile-widen-comparisons", "--tile-find-visits", "--mlir-print-op-on-diagnostic=false"]
        #: The kernel with bounds in the place of masks.
        self.found = subprocess.run(["tessera-opt", source, *options], check=True, capture_output=True, text=True).stdout
        self.inputs = []
        inputs = {"r": (loaded, (extent,)), "p": (sum(constants, []), (count, CONSTANTS)), "ns": (numbers, (count,))}
        for name, (values, shape) in inputs.items():
            save_integers(f"{folder}/{name}.npy", values, "i32", shape)
            self.inputs += ["--input", f"{name}={folder}/{name}.npy"]
        begins = [ROWS + shift + ROWS * g for g in range(count)]
        self.points = [(g % 3 * ROWS, numbers[g], padded[begins[g] : begins[g] + ROWS], constants[g]) for g in range(count)]
        #: For each mask, at each grid point, the iterations that are needed.
        self.needed = [[[j for j, some in enumerate(row) if some] for row in look(mask, self.points)] for mask in self.masks]

    def run(self, text):
        """For each mask, at each grid point, (first, past) as a kernel computes them."""
        level, stored = self.folder / "found.mlir", self.folder / "y.npy"
        level.write_text(text)
        subprocess.run(["tessera", "run", level, "--output", f"y={stored}", *self.inputs], check=True, capture_output=True)
        values = [divmod(int(value), 4096) for value in read(stored)]
        return [[(first, past - 2048) for first, past in values[i::COUNT]] for i in range(COUNT)]

    def find_error(self, bounds):
        """Where bounds leave out an iteration that is needed, or take one that a plain mask does not need; None where not."""
        for i, mask in enumerate(self.masks):
            is_plain = mask.is_plain()
            for g, ((first, past), needed) in enumerate(zip(bounds[i], self.needed[i])):
                holds = all(first <= j < past for j in needed)
                if not holds or (is_plain and max(past - first, 0) != len(needed)):
                    return (
                        f"seed {self.seed}, mask {i}, grid point {g}: {first} to {past}, needed {needed}\n{mask.expression}\n"
                        f"{self.points[g]}"
                    )
        return None


def check(seed, folder, count):
    problem = Problem(seed, folder, count)
    error = problem.find_error(problem.run(problem.found))
    assert error is None, error
    return COUNT * count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3, help=f"times {COUNT} masks by what they compare")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--points", type=int, default=2, help="times other constants, rows and lengths")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    seeds = range(options.first, options.first + options.seeds)
    print(sum(check(seed, options.folder, options.points) for seed in seeds), "masks hold")


if __name__ == "__main__":
    main()
