# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/gemm_pair.tile %t
"""Compares a pair of products with the definition, on the interpreter and simulated: with rows of both in each consumer, and with a product
for each of two consumers, one of which gets the other's result."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402


def product(a, w, m, n, k):
    return [sum(a[i * k + l] * w[l * n + j] for l in range(k)) for i in range(m) for j in range(n)]


def activate(x, activation):
    return max(x, 0.0) if activation == "relu" else x / (1 + math.exp(-x))


def check(kernel, folder, shape, transposed, activation, *options):
    m, n, k = shape
    a, w, v = draw(1, m, k), draw(2, k, n), draw(3, k, n)
    save(f"{folder}/a.npy", a, (m, k))
    for name, values in (("w", w), ("v", v)):
        stored = [values[l * n + j] for j in range(n) for l in range(k)] if transposed else values
        save(f"{folder}/{name}.npy", stored, (n, k) if transposed else (k, n))
    expected = [activate(x, activation) * y for x, y in zip(product(a, w, m, n, k), product(a, v, m, n, k))]
    inputs = [part for name in "awv" for part in ("--input", f"{name}={folder}/{name}.npy")]
    defines = [f"-DW_TRANSPOSED={str(transposed).lower()}", f"-DACTIVATION={activation}", *options]
    for device, exact in (("interp", ["--precision", "exact"]), ("sim", [])):
        run(kernel, *defines, *inputs, "--device", device, *exact, "--output", f"c={folder}/c.npy")
        compare(f"{shape} {' '.join(defines)} on {device}", load(f"{folder}/c.npy"), expected, 1e-2)


def main(kernel, folder):
    check(kernel, folder, (1, 8, 8), True, "silu")
    check(kernel, folder, (67, 24, 40), True, "silu", "-DBM=64", "-DBN=16", "-DBK=32")
    check(kernel, folder, (67, 136, 72), False, "relu")
    check(kernel, folder, (67, 264, 72), True, "silu", "-DBM=64", "-DBN=256")


main(*sys.argv[1:])
