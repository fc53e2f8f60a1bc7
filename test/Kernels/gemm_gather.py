# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/gemm_gather.tile %t
"""Compares the product of listed rows on the interpreter with the definition; numbers outside give rows of 0."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402


def check(kernel, folder, shape, kind, transposed):
    rows, m, n, k = shape
    a, b = draw(0, rows, k), draw(1, k, n)
    chosen = random.Random(m).choices([*range(-2, rows + 2), -(2**31), 2**31 - 1], k=m)
    save(f"{folder}/a.npy", a, (rows, k))
    save_integers(f"{folder}/list.npy", chosen, kind)
    stored = [b[i * n + j] for j in range(n) for i in range(k)] if transposed else b
    save(f"{folder}/b.npy", stored, (n, k) if transposed else (k, n))
    expected = []
    for number in chosen:
        row = a[number * k : (number + 1) * k] if 0 <= number < rows else [0.0] * k
        expected += [sum(row[i] * b[i * n + j] for i in range(k)) for j in range(n)]
    for level in ("bound", "scheduled"):
        defines = [f"-DI={kind}", f"-DB_TRANSPOSED={str(transposed).lower()}", "-DBM=64", "-DBN=16", "-DBK=32"]
        inputs = [part for name in ("a", "list", "b") for part in ("--input", f"{name}={folder}/{name}.npy")]
        run(kernel, *defines, *inputs, "--level", level, "--precision", "exact", "--output", f"c={folder}/c.npy")
        compare(f"{shape} {' '.join(defines)} {level}", load(f"{folder}/c.npy"), expected, 4e-3)


def main(kernel, folder):
    check(kernel, folder, (1, 1, 1, 1), "i32", True)
    check(kernel, folder, (9, 67, 19, 35), "i32", True)
    check(kernel, folder, (50, 33, 21, 70), "i64", False)


main(*sys.argv[1:])
