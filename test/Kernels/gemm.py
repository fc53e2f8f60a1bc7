# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/gemm.tile %t
"""Compares the matrix product on the interpreter with the definition, over layouts, bias and activations."""

import itertools
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

M, N, K = 67, 19, 35
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


def main(kernel, folder):
    a, b, bias = draw(0, M, K), draw(1, K, N), draw(2, N)
    save(f"{folder}/a.npy", a, (M, K))
    save(f"{folder}/bias.npy", bias, (N,))
    for transposed, with_bias, activation in itertools.product((False, True), (False, True), ACTIVATIONS):
        stored = [b[k * N + n] for n in range(N) for k in range(K)] if transposed else b
        save(f"{folder}/b.npy", stored, (N, K) if transposed else (K, N))
        defines = [f"-DB_TRANSPOSED={str(transposed).lower()}", f"-DBIAS={str(with_bias).lower()}"]
        defines += [f"-DACTIVATION={activation}", "-DBM=64", "-DBN=16", "-DBK=16"]
        inputs = ["--input", f"a={folder}/a.npy", "--input", f"b={folder}/b.npy"]
        inputs += ["--input", f"bias={folder}/bias.npy"] if with_bias else []
        run(kernel, *defines, *inputs, "--precision", "exact", "--output", f"c={folder}/c.npy")
        expected = [
            ACTIVATIONS[activation](
                sum(a[m * K + k] * b[k * N + n] for k in range(K)) + (bias[n] if with_bias else 0.0)
            )
            for m in range(M)
            for n in range(N)
        ]
        compare(" ".join(defines), load(f"{folder}/c.npy"), expected, 4e-3)


main(*sys.argv[1:])
