# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/layer_norm.tile %t
"""Compares the norms on the interpreter with the definition, for rows in one tile and in several."""

import itertools
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

EPS = 0.01


def normalize(row, weight, bias, rms):
    mean = 0.0 if rms else sum(row) / len(row)
    scale = 1 / math.sqrt(sum((value - mean) ** 2 for value in row) / len(row) + EPS)
    return [(value - mean) * scale * w + b for value, w, b in zip(row, weight, bias)]


def main(kernel, folder):
    sizes = ((1, 1, 64), (5, 113, 128), (2, 1000, 1024), (4, 200, 64))
    for (rows, width, tile), rms in itertools.product(sizes, (False, True)):
        x, weight = draw(width, rows, width), draw(width + 1, width)
        bias = [0.0] * width if rms else draw(width + 2, width)
        save(f"{folder}/x.npy", x, (rows, width))
        save(f"{folder}/weight.npy", weight, (width,))
        save(f"{folder}/bias.npy", bias, (width,))
        arguments = [f"-DD={width}", f"-DBN={tile}", "-DBM=16", "-DT=f32", f"-DRMS={str(rms).lower()}"]
        for name in ("x", "weight") if rms else ("x", "weight", "bias"):
            arguments += ["--input", f"{name}={folder}/{name}.npy"]
        arguments += ["--set", f"eps={EPS}", "--precision", "exact", "--output", f"y={folder}/y.npy"]
        run(kernel, *arguments)
        expected = [
            value
            for row in range(rows)
            for value in normalize(x[row * width : (row + 1) * width], weight, bias, rms)
        ]
        compare(" ".join(arguments), load(f"{folder}/y.npy"), expected, 1e-6)


main(*sys.argv[1:])
