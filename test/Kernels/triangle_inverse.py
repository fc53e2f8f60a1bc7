# RUN: mkdir -p %t
# RUN: %python %s %S/Inputs/triangle_inverse.tile %t
"""The inverse of a unit lower triangle, of products of f32 by 16-bit terms: with bf16x6 its error for 64 rows is at most ten times that
of substitution in f32, where keys repeat too. With fewer terms it grows by the bits that a term has. On the interpreter and the simulator."""

import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import load, run, save  # noqa: E402


def to_f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def substitute(lower, rounded):
    """(I + L)^-1 by rows, in f32 or in double precision."""
    keep = to_f32 if rounded else float
    rows = []
    for i, own in enumerate(lower):
        row = [0.0] * len(lower)
        for j in range(i):
            for c in range(j + 1):
                row[c] = keep(row[c] - keep(own[j] * rows[j][c]))
        row[i] = 1.0
        rows.append(row)
    return rows


def draw_triangle(size, repeats):
    """Products of rows of length 1 with each other, scaled by rates, as the delta rule has them."""
    keys = []
    for _ in range(3 if repeats else size):
        key = [random.gauss(0, 1) for _ in range(64)]
        norm = sum(x * x for x in key) ** 0.5
        keys.append([x / norm for x in key])
    of = [keys[i % len(keys)] for i in range(size)]
    rate = [1.0 if repeats else random.random() for _ in range(size)]
    return [[to_f32(rate[i] * sum(x * y for x, y in zip(of[i], of[j]))) if j < i else 0.0 for j in range(size)] for i in range(size)]


def find_error(found, exact):
    return max(abs(x - y) for x, y in zip(found, exact)) / max(map(abs, exact))


def main(kernel, folder):
    random.seed(1)
    for size in (64, 128):
        triangles = [draw_triangle(size, repeats) for repeats in (False, True)]
        save(f"{folder}/l.npy", [x for lower in triangles for row in lower for x in row], (2, size, size))
        for precision in ("bf16", "f16", "bf16x3", "bf16x6"):
            options = [kernel, f"-DC={size}", f"-DPRECISION={precision}", "--input", f"l={folder}/l.npy"]
            run(*options, "--output", f"x={folder}/x.npy")
            found = load(f"{folder}/x.npy")
            for number, lower in enumerate(triangles):
                exact, single = ([x for row in substitute(lower, rounded) for x in row] for rounded in (False, True))
                error, usual = find_error(found[number * size * size :][: size * size], exact), find_error(single, exact)
                bound = {"bf16": 2e-2, "f16": 2.5e-3, "bf16x3": 2e-4, "bf16x6": (10 if size == 64 else 20) * usual}[precision]
                assert error <= bound, f"{size} rows, {precision}, triangle {number}: error {error}, in f32 {usual}"
            if size == 64:
                run(*options, "--device", "sim", "--check")


main(*sys.argv[1:])
