# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/gemm.tile %t
"""Compares the matrix product on the interpreter with the definition, over layouts, bias and activations."""

import itertools
import math
import os
import struct
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
    check_weights(kernel, folder, a, b)
    check_scales(kernel, folder, a, b)
    check_words(kernel, folder)


def check_weights(kernel, folder, a, b):
    """B of 8 bits, which the numbers of `draw` are, beside A of 16."""
    expected = [sum(a[m * K + k] * b[k * N + n] for k in range(K)) for m in range(M) for n in range(N)]
    for transposed in (False, True):
        save(f"{folder}/b.npy", [b[k * N + n] for n in range(N) for k in range(K)] if transposed else b,
             (N, K) if transposed else (K, N))  # fmt: skip
        defines = [f"-DB_TRANSPOSED={str(transposed).lower()}", "-DTB=f8E4M3FN", "-DBM=64", "-DBN=32", "-DBK=32"]
        inputs = ["--input", f"a={folder}/a.npy", "--input", f"b={folder}/b.npy"]
        run(kernel, *defines, *inputs, "--precision", "exact", "--output", f"c={folder}/c.npy")
        compare(" ".join(defines), load(f"{folder}/c.npy"), expected, 4e-3)


def check_scales(kernel, folder, a, b):
    """Numbers of 8 bits, which those of `draw` are, times scales of the tensors, of rows and columns, or of blocks."""
    depth, blocks = 32, 2
    rows, columns = (draw(seed, blocks, extent) for seed, extent in ((3, M), (4, N)))
    save(f"{folder}/b.npy", [b[k * N + n] for n in range(N) for k in range(K)], (N, K))
    inputs = ["--input", f"a={folder}/a.npy", "--input", f"b={folder}/b.npy"]
    for scales in ("tensor", "rows", "blocks"):
        counted = blocks if scales == "blocks" else 1
        for name, values, extent in (("sa", rows, M), ("sb", columns, N)):
            shape = (blocks, extent) if scales == "blocks" else (extent,)
            save(f"{folder}/{name}.npy", values[: counted * extent], shape)
        given = ["--input", f"sa={folder}/sa.npy", "--input", f"sb={folder}/sb.npy"]
        given = ["--set", "scale=0.75"] if scales == "tensor" else given
        defines = ["-DT=f8E4M3FN", f"-DSCALES={scales}", "-DBM=64", "-DBN=16", f"-DBK={depth}"]
        run(kernel, *defines, *inputs, *given, "--precision", "exact", "--output", f"c={folder}/c.npy")

        def factor(m, n, k):
            i = k // depth if scales == "blocks" else 0
            return 0.75 if scales == "tensor" else rows[i * M + m] * columns[i * N + n]

        expected = [
            sum(a[m * K + k] * b[k * N + n] * factor(m, n, k) for k in range(K)) for m in range(M) for n in range(N)
        ]
        compare(" ".join(defines), load(f"{folder}/c.npy"), expected, 4e-3)


def check_words(kernel, folder):
    """f32 rounded to the 10 bits of tf32's mantissa, up or down as of what is drawn here. Of odd extents, on the interpreter and the
    simulator, with all that a product may have beside it."""
    n_padded, k_padded = N + 5, K + 1  # rows of 16 bytes, also of C in bf16
    a, b, bias = ([x + 2.0**-11 + 2.0**-14 for x in draw(*given)] for given in ((5, M, k_padded), (6, n_padded, k_padded), (7, n_padded)))
    save(f"{folder}/a.npy", a, (M, k_padded))
    save(f"{folder}/b.npy", b, (n_padded, k_padded))
    save(f"{folder}/bias.npy", bias, (n_padded,))
    rows, columns = ([round_tf32(x) for x in values] for values in (a, b))
    for extra, with_bias, activation in (([], False, "none"), (["-DBIAS=true"], True, "gelu"), (["-DOUT=bf16"], False, "relu")):
        defines = ["-DT=f32", f"-DACTIVATION={activation}", "-DBM=64", "-DBN=16", "-DBK=16", *extra]
        inputs = ["--input", f"a={folder}/a.npy", "--input", f"b={folder}/b.npy"]
        inputs += ["--input", f"bias={folder}/bias.npy"] if with_bias else []
        expected = [
            ACTIVATIONS[activation](
                sum(p * q for p, q in zip(rows[m * k_padded :][:k_padded], columns[n * k_padded :][:k_padded]))
                + (bias[n] if with_bias else 0.0)
            )
            for m in range(M)
            for n in range(n_padded)
        ]
        for device in ("interp", "sim"):
            run(kernel, *defines, *inputs, "--output", f"c={folder}/c.npy", "--device", device)
            compare(" ".join([*defines, device]), load(f"{folder}/c.npy"), expected, 4e-3 if "-DOUT=bf16" in extra else 1e-5)


def round_tf32(x):
    """To nearest, ties to even, to 10 bits of the mantissa."""
    bits = struct.unpack("I", struct.pack("f", x))[0]
    bits += 0xFFF + (bits >> 13 & 1)
    return struct.unpack("f", struct.pack("I", bits & 0xFFFFE000))[0]


main(*sys.argv[1:])
