# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/softmax.tile %t
"""Compares the softmax on the interpreter with the definition, for rows in one tile and in several."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402


def softmax(row):
    largest = max(row)
    exponentials = [math.exp(value - largest) for value in row]
    total = sum(exponentials)
    return [value / total for value in exponentials]


def main(kernel, folder):
    for rows, width, tile in ((1, 1, 64), (3, 64, 64), (5, 113, 128), (2, 1000, 1024), (4, 200, 64), (3, 256, 128)):
        x = draw(width, rows, width)
        save(f"{folder}/x.npy", x, (rows, width))
        expected = [value for row in range(rows) for value in softmax(x[row * width : (row + 1) * width])]
        for level in ("bound", "scheduled"):
            defines = [f"-DD={width}", f"-DBN={tile}", "-DBM=16", "-DOUT=f32", "--level", level]
            run(kernel, *defines, "--input", f"x={folder}/x.npy", "--precision", "exact", "--output", f"y={folder}/y.npy")
            compare(" ".join(defines), load(f"{folder}/y.npy"), expected, 1e-6)


main(*sys.argv[1:])
