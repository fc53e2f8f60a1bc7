# RUN: mkdir -p %t
# RUN: %python %s %t
"""Sums of rows whose lengths are loaded, in equal shares (tile.split_reduce balanced): the kernels that the compiler makes of one give its
results on the interpreter and in machine code, whatever the lengths are, also with a list that was made for other lengths."""

import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import load, run, save, save_integers  # noqa: E402

SOURCE = """
!X = !tile.view<[M, K], f32>
!Y = !tile.view<[M, N], f32>
!Ends = !tile.view<[M], i32>
!Row = tensor<512xf32>

// Element n of row m is the sum of row m, times n.
tile.kernel @sums(%x: !X, %ends: !Ends, %y: !Y) grid(%n = N ceildiv 512, %m = M) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %col = arith.muli %n, %c512 : index
  %end_i32 = tile.load %ends[%m] : !Ends -> i32
  %end = arith.index_cast %end_i32 : i32 to index
  %numbers = tile.iota %col axis 0 : tensor<512xi32>
  %factors = arith.sitofp %numbers : tensor<512xi32> to !Row
  %zero = arith.constant dense<0.0> : !Row
  %sum = tile.split_reduce %first, %past = %c0 to %end part LEAST balanced SHARES -> !Row {
    %part = scf.for %i = %first to %past step %c1 iter_args(%old = %zero) -> (!Row) {
      %v = tile.load %x[%m, %i] : !X -> f32
      %all = tile.splat %v : f32 -> !Row
      %new = arith.addf %old, %all : !Row
      scf.yield %new : !Row
    }
    tile.yield %part : !Row
  } merge %left with %right {
    %both = arith.addf %left, %right : !Row
    tile.yield %both : !Row
  }
  %scaled = arith.mulf %sum, %factors : !Row
  tile.store %scaled, %y[%m, %col] : !Row, !Y
}
"""

# The list is that of %old, and the ranges are those of %ends.
STALE = """
tile.sequence @stale(%x: !tile.view<[M, K], f32>, %old: !tile.view<[M], i32>, %ends: !tile.view<[M], i32>, %y: !tile.view<[M, N], f32>)
    dims(TILES = N ceildiv 512, ROUNDS = TILES ceildiv 132, SLOTS = ROUNDS * 132) {
  %counts = tile.workspace : !tile.view<[M], i32>
  %shares = tile.workspace : !tile.view<[5, SLOTS], i32>
  %used = tile.workspace : !tile.view<[1], i32>
  %state = tile.workspace : !tile.view<[SLOTS, 2, 512], f32>
  tile.launch @sums_counts(%old, %counts) : !tile.view<[M], i32>, !tile.view<[M], i32>
  tile.launch @sums_list(%y, %counts, %shares, %used)
    : !tile.view<[M, N], f32>, !tile.view<[M], i32>, !tile.view<[5, SLOTS], i32>, !tile.view<[1], i32>
  tile.launch @sums_shares(%x, %ends, %y, %shares, %used, %state) : !tile.view<[M, K], f32>, !tile.view<[M], i32>,
    !tile.view<[M, N], f32>, !tile.view<[5, SLOTS], i32>, !tile.view<[1], i32>, !tile.view<[SLOTS, 2, 512], f32>
  tile.launch @sums_merge(%y, %shares, %used, %state)
    : !tile.view<[M, N], f32>, !tile.view<[5, SLOTS], i32>, !tile.view<[1], i32>, !tile.view<[SLOTS, 2, 512], f32>
}
"""


def make(folder, least):
    """The file of a module with the kernels that the compiler makes of the source, and the sequence with another list."""
    whole, made = f"{folder}/whole.mlir", f"{folder}/shares.mlir"
    with open(whole, "w") as file:
        file.write(SOURCE.replace("LEAST", str(least)).replace("SHARES", "1"))
    done = subprocess.run(["tessera-opt", whole, "--tile-split-reductions", "--mlir-print-local-scope"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = done.stdout.rstrip()
    assert text.endswith("}"), text[-80:]
    with open(made, "w") as file:
        file.write(f"{text[:-1]}{STALE}}}\n")
    return made


def check(folder, made, ends, columns, old=None):
    rows, width = len(ends), max(*ends, 1)
    generator = random.Random(rows)
    x = [[generator.randint(-8, 8) for _ in range(width)] for _ in ends]
    save(f"{folder}/x.npy", [value for row in x for value in row], (rows, width))
    words = ["--kernel", "sums" if old is None else "stale", "--shape", f"N={columns}"]
    for name, values in (("ends", ends), ("old", old)):
        if values is not None:
            save_integers(f"{folder}/{name}.npy", values, "i32")
            words += ["--input", f"{name}={folder}/{name}.npy"]
    expected = [n * sum(row[:end]) for row, end in zip(x, ends) for n in range(columns)]
    for device in ("interp", "sim"):
        run(made, *words, "--input", f"x={folder}/x.npy", "--output", f"y={folder}/y.npy", "--device", device)
        found = list(load(f"{folder}/y.npy"))
        assert found == expected, (device, ends[:20], old and old[:20], columns)


def main(folder):
    draw = random.Random(3)
    made = make(folder, 1)
    for ends, columns in (([0], 1), ([700], 128), ([1, 0, 64, 65], 530), ([40] * 9, 1), (draw.choices(range(50), k=600), 1), ([0, 900, 3, 0], 1100)):
        check(folder, made, ends, columns)
    for columns in (1, 600):
        ends = draw.choices(range(90), k=40)
        for old in (draw.choices(range(90), k=40), [0] * 40, [5000] + [0] * 39, list(reversed(ends))):
            check(folder, made, ends, columns, old)
    # More tiles of columns than thread blocks at once: each has a share of its own.
    check(folder, made, [3, 0, 5], 512 * 133)
    check(folder, make(folder, 16), [100, 15, 0, 17, 300], 130)


main(*sys.argv[1:])
