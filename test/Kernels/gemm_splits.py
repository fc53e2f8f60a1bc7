# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/gemm.tile %t
# RUN: not tessera params %source/kernels/gemm.tile -DSPLITS=2 -DPART=4 2>&1 | FileCheck %s --check-prefix=PART
# PART: parameter 'PART' cannot be 4; allowed: 0..0
# RUN: not tessera params %source/kernels/gemm.tile -DSPLITS=2 -DACTIVATION=relu 2>&1 | FileCheck %s --check-prefix=ACTIVATION
# ACTIVATION: parameter 'ACTIVATION' cannot be relu; allowed: none
# RUN: tessera params %source/kernels/gemm.tile -DSPLITS=2 -DPROMOTE=1 | FileCheck %s --check-prefix=CHOSEN
# CHOSEN: BN {{.*}} 128
# RUN: tessera compile %source/kernels/gemm.tile -DSPLITS=2 --alternatives --ptx -o %t/splits.bundle
"""Compares the matrix product whose parts of K are added to memory on the interpreter with the definition; sums go on
from what C holds, and one part has the bias."""

import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

M, N = 67, 40


def check_bias(kernel, folder, scales):
    """One of the grid points adds the bias, whatever the sums are multiplied by."""
    depth = 35
    a, b, bias = draw(0, M, depth), draw(1, N, depth), draw(3, N)
    rows, columns = draw(4, M), draw(5, N)
    save(f"{folder}/a.npy", a, (M, depth))
    save(f"{folder}/b.npy", b, (N, depth))
    save(f"{folder}/bias.npy", bias, (N,))
    save(f"{folder}/sa.npy", rows, (M,))
    save(f"{folder}/sb.npy", columns, (N,))
    save(f"{folder}/c.npy", [0.0] * (M * N), (M, N))
    names = ["a", "b", "c", "bias", *(["sa", "sb"] if scales == "rows" else [])]
    inputs = [part for name in names for part in ("--input", f"{name}={folder}/{name}.npy")]
    defines = ["-DSPLITS=3", "-DBIAS=true", f"-DSCALES={scales}", "-DBM=64", "-DBN=32", "-DBK=16"]
    run(kernel, *defines, *inputs, "--precision", "exact", "--output", f"c={folder}/sum.npy")
    factor = (lambda m, n: rows[m] * columns[n]) if scales == "rows" else (lambda m, n: 1)
    expected = [
        bias[n] + factor(m, n) * sum(a[m * depth + k] * b[n * depth + k] for k in range(depth)) for m in range(M) for n in range(N)
    ]
    compare(" ".join(defines), load(f"{folder}/sum.npy"), expected, 1e-6)


def main(kernel, folder):
    for scales in ("none", "rows"):
        check_bias(kernel, folder, scales)
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
