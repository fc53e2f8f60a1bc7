# Bounds of random masks against the masks themselves: no needed iteration is left out, and none is taken that a mask of
# one or two comparisons does not need.
#
# RUN: %python %s %t
import pathlib
import random
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Kernels" / "Inputs"))
from reference import save  # noqa: E402

BLOCK, ROWS, COUNT = 16, 64, 60
SOURCE = """
!C = tensor<{rows}x{block}xi32>
!M = tensor<{rows}x{block}xi1>
!T = tensor<{rows}x{block}xf32>
!V = !tile.view<[M, {block}], f32>
tile.kernel @k({views}, %r: !tile.view<[{length}], i32>, %n: index) grid(%m = M ceildiv {rows}) {{
  %c0 = arith.constant 0 : index
  %block = arith.constant {block} : index
  %rows = arith.constant {rows} : index
  %row = arith.muli %m, %rows : index
  %shift = arith.constant {shift} : index
  %place = arith.addi %row, %shift : index
  %own = tile.load %r[%place] : !tile.view<[{length}], i32> -> tensor<{rows}xi32>
{masks}}}
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
  %s{i} = arith.addi %past{i}, %a{i} : index
  %p{i} = arith.muli %first{i}, %i{i} : index
  %b{i} = arith.addi %p{i}, %s{i} : index
  %w{i} = arith.index_cast %b{i} : index to i32
  %f{i} = arith.sitofp %w{i} : i32 to f32
  %t{i} = tile.splat %f{i} : f32 -> !T
  tile.store %t{i}, %y{i}[%row, %c0] : !T, !V
"""
PREDICATES = {
    "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b, "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip


class Mask:
    """A mask as text and as a function of q and k."""

    def __init__(self, rng, loaded):
        self.loaded, self.rng, self.lines, self.comparisons, self.count = loaded, rng, [], 0, 0
        self.name, self.function = self.condition(2)

    def emit(self, text):
        self.count += 1
        self.lines.append(f"    %v{self.count} = {text}\n")
        return f"%v{self.count}"

    def constant(self, value):
        return self.emit(f"arith.constant dense<{value}> : !C")

    def number(self, depth):
        kind = self.rng.choice(["q", "k", "c", "l", "sum", "difference", "scaled", "min", "max", "abs"][: 10 if depth else 4])
        if kind in "qk":
            return f"%{kind}", (lambda q, k: q) if kind == "q" else (lambda q, k: k)
        if kind == "l":
            return "%l", lambda q, k: self.loaded[q]
        if kind == "c":
            value = self.rng.randint(-80, 200)
            return self.constant(value), lambda q, k: value
        a, f = self.number(depth - 1)
        if kind == "abs":
            return self.emit(f"math.absi {a} : !C"), lambda q, k: abs(f(q, k))
        if kind == "scaled":
            factor = self.rng.choice([-2, -1, 2, 3])
            return self.emit(f"arith.muli {a}, {self.constant(factor)} : !C"), lambda q, k: factor * f(q, k)
        b, g = self.number(depth - 1)
        op, combine = {
            "sum": ("addi", lambda x, y: x + y), "difference": ("subi", lambda x, y: x - y),
            "min": ("minsi", min), "max": ("maxsi", max),
        }[kind]  # fmt: skip
        return self.emit(f"arith.{op} {a}, {b} : !C"), lambda q, k: combine(f(q, k), g(q, k))

    def condition(self, depth):
        kind = self.rng.choice(["cmp", "cmp", "and", "or", "not"]) if depth else "cmp"
        if kind == "cmp":
            self.comparisons += 1
            predicate = self.rng.choice(list(PREDICATES))
            (a, f), (b, g) = self.number(2), self.number(1)
            compare = PREDICATES[predicate]
            return self.emit(f"arith.cmpi {predicate}, {a}, {b} : !C"), lambda q, k: compare(f(q, k), g(q, k))
        a, f = self.condition(depth - 1)
        if kind == "not":
            true = self.emit("arith.constant dense<true> : !M")
            return self.emit(f"arith.xori {a}, {true} : !M"), lambda q, k: not f(q, k)
        b, g = self.condition(depth - 1)
        if kind == "and":
            return self.emit(f"arith.andi {a}, {b} : !M"), lambda q, k: f(q, k) and g(q, k)
        return self.emit(f"arith.ori {a}, {b} : !M"), lambda q, k: f(q, k) or g(q, k)

    def is_plain(self):
        """One comparison of one affine difference: no part of it hides another, and nothing is loaded, which may go with q."""
        text = "".join(self.lines)
        return self.comparisons == 1 and "%l" not in text and "absi" not in text and "minsi" not in text and "maxsi" not in text and not (
            "eq" in text or "ne," in text)  # fmt: skip


def read(path):
    """The elements of a little-endian f32 .npy file of two dimensions."""
    data = path.read_bytes()
    header = struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - 10 - header) // 4}f", data[10 + header :])


def check(seed, folder):
    rng = random.Random(seed)
    blocks, extent = rng.randint(1, 12), ROWS * rng.randint(1, 2)
    loaded = [rng.randint(-20, BLOCK * blocks + 20) for _ in range(extent)]
    if rng.random() < 0.5:
        loaded.sort()
    # What rows load may lie behind the end of the view, or before its start, and is 0 there; or the view ends with the rows.
    shift, length = rng.choice([(0, "M"), (0, "R"), (9, "R"), (-9, "R"), (9, "M")])
    own = [loaded[q + shift] if 0 <= q + shift < extent else 0 for q in range(extent)]
    masks = [Mask(rng, own) for _ in range(COUNT)]
    views = ", ".join(f"%y{i}: !V" for i in range(COUNT))
    texts = (MASK.format(i=i, rows=ROWS, body="".join(mask.lines), mask=mask.name) for i, mask in enumerate(masks))
    source, level = folder / "masks.tile", folder / "found.mlir"
    source.write_text(SOURCE.format(rows=ROWS, block=BLOCK, views=views, shift=shift, length=length, masks="".join(texts)))
    found = subprocess.run(["tessera-opt", source, "--tile-find-visits"], check=True, capture_output=True, text=True)
    level.write_text(found.stdout)
    save(f"{folder}/r.npy", loaded, (extent,))
    command = ["tessera", "run", level, "--shape", f"M={extent}", "--set", f"n={blocks}", "--input", f"r={folder}/r.npy"]
    for i in range(COUNT):
        command += ["--output", f"y{i}={folder}/y{i}.npy"]
    subprocess.run(command, check=True, capture_output=True)
    for i, mask in enumerate(masks):
        values = read(folder / f"y{i}.npy")
        for row in range(0, extent, ROWS):
            first, past = divmod(int(values[row * BLOCK]), 4096)
            past -= 2048
            seen = [
                any(mask.function(q, k) for q in range(row, row + ROWS) for k in range(j * BLOCK, (j + 1) * BLOCK))
                for j in range(blocks)
            ]
            needed = [j for j, some in enumerate(seen) if some]
            where = f"seed {seed}, mask {i}, row {row}, {blocks} blocks: {first} to {past}, needed {needed}"
            assert all(first <= j < past for j in needed), where + "\n" + "".join(mask.lines)
            if mask.is_plain():
                assert max(past - first, 0) == len(needed), where + "\n" + "".join(mask.lines)


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3):
    check(seed, folder)
