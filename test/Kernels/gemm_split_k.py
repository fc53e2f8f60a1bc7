# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/gemm_split_k.tile %t
"""Compares the matrix product by parts of K on the interpreter with the definition; sums go on from what C holds."""

import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

M, N = 67, 40


def main(kernel, folder):
    for depth, splits, transposed in itertools.product((35, 96), (1, 3, 8), (False, True)):
        a, b, c = draw(0, M, depth), draw(1, depth, N), draw(2, M, N)
        stored = [b[k * N + n] for n in range(N) for k in range(depth)] if transposed else b
        save(f"{folder}/a.npy", a, (M, depth))
        save(f"{folder}/b.npy", stored, (N, depth) if transposed else (depth, N))
        save(f"{folder}/c.npy", c, (M, N))
        defines = [f"-DB_TRANSPOSED={str(transposed).lower()}", f"-DSPLITS={splits}", "-DBM=64", "-DBN=32", "-DBK=16"]
        inputs = [part for name in "abc" for part in ("--input", f"{name}={folder}/{name}.npy")]
        run(kernel, *defines, *inputs, "--precision", "exact", "--output", f"c={folder}/sum.npy")
        expected = [
            c[m * N + n] + sum(a[m * depth + k] * b[k * N + n] for k in range(depth)) for m in range(M) for n in range(N)
        ]
        compare(" ".join(defines), load(f"{folder}/sum.npy"), expected, 1e-6)


main(*sys.argv[1:])
