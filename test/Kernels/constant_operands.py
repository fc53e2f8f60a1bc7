# RUN: mkdir -p %t
# RUN: %python %s %S/Inputs/constant-operands.tile %t
"""Matrices that a kernel makes of places as operands of a dot, of either side: Hadamard's, a band and the identity. Products of numbers
of few bits with these are exact, on the interpreter and the simulator."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

SIZE, ROWS = 64, 70
KINDS = {
    "hadamard": lambda i, j: (-1) ** bin(i & j).count("1"),
    "band": lambda i, j: float(abs(i - j) <= 3),
    "identity": lambda i, j: float(i == j),
}


def main(source, folder):
    for kind, element in KINDS.items():
        for left, rows in ((False, ROWS), (True, SIZE)):
            x = draw(len(kind), rows, SIZE)
            save(f"{folder}/x.npy", x, (rows, SIZE))
            matrix = [[element(i, j) for j in range(SIZE)] for i in range(SIZE)]
            of_row = lambda r: matrix[r] if left else x[r * SIZE :][:SIZE]
            of_column = lambda c: x[c::SIZE] if left else [row[c] for row in matrix]
            expected = [sum(map(float.__mul__, map(float, of_row(r)), map(float, of_column(c)))) for r in range(rows) for c in range(SIZE)]
            for device in ("interp", "sim"):
                given = ["-D", f"KIND={kind}", "-D", f"LEFT={str(left).lower()}", "--device", device]
                run(source, *given, "--input", f"x={folder}/x.npy", "--output", f"y={folder}/y.npy")
                compare(f"{kind}, {'left' if left else 'right'}, {device}", load(f"{folder}/y.npy"), expected, 0)


main(*sys.argv[1:])
