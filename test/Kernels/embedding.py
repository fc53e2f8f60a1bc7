# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/embedding.tile %t
"""Compares the rows that embedding.tile takes on the interpreter with those of the table; numbers outside give 0."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402


def main(kernel, folder):
    for rows, numbers, width, kind in ((1, 1, 1, "i32"), (50, 77, 64, "i64"), (9, 203, 113, "i32"), (70, 33, 1100, "i64")):
        table = draw(width, rows, width)
        largest = 2**31 if kind == "i32" else 2**40
        choices = [*range(-3, rows + 3), -largest, largest - 1]
        chosen = random.Random(rows).choices(choices, k=numbers)
        save(f"{folder}/x.npy", table, (rows, width))
        save_integers(f"{folder}/list.npy", chosen, kind)
        expected = []
        for number in chosen:
            inside = 0 <= number < rows
            expected += table[number * width : (number + 1) * width] if inside else [0.0] * width
        for level in ("bound", "scheduled"):
            defines = [f"-DD={width}", "-DT=f32", f"-DI={kind}", "--level", level]
            inputs = ["--input", f"x={folder}/x.npy", "--input", f"list={folder}/list.npy"]
            run(kernel, *defines, *inputs, "--output", f"y={folder}/y.npy")
            compare(" ".join(defines), load(f"{folder}/y.npy"), expected, 0)


main(*sys.argv[1:])
