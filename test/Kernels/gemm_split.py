# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/gemm.tile %t
"""Compares the matrix product in parts on the interpreter with the definition: one part, several, a last one with less."""

import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402


def main(kernel, folder):
    for (m, n, k), transposed in itertools.product(((67, 19, 35), (3, 1, 200), (65, 70, 129)), (False, True)):
        a, b = draw(0, m, k), draw(1, k, n)
        save(f"{folder}/a.npy", a, (m, k))
        stored = [b[row * n + col] for col in range(n) for row in range(k)] if transposed else b
        save(f"{folder}/b.npy", stored, (n, k) if transposed else (k, n))
        expected = [
            sum(a[row * k + i] * b[i * n + col] for i in range(k)) for row in range(m) for col in range(n)
        ]
        for level in ("bound", "scheduled"):
            defines = [f"-DB_TRANSPOSED={str(transposed).lower()}", "-DPART=1", "-DBM=64", "-DBN=16", "--level", level]
            inputs = ["--input", f"a={folder}/a.npy", "--input", f"b={folder}/b.npy"]
            run(kernel, *defines, *inputs, "--precision", "exact", "--output", f"c={folder}/c.npy")
            compare(f"{m}x{n}x{k} {' '.join(defines)}", load(f"{folder}/c.npy"), expected, 4e-3)


main(*sys.argv[1:])
