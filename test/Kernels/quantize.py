# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/quantize.tile %t
"""Compares quantization on the interpreter with its definition: rows, blocks and rotated rows, of odd numbers, with
zeros, infinities and NaN."""

import math
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import draw, load, run, save  # noqa: E402

# Bits of a significand, the exponent of the smallest normal number, and the largest number.
FORMATS = {"f8E4M3FN": (4, -6, 448.0), "f8E5M2": (3, -14, 57344.0)}


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0] if math.isfinite(x) else x


def round8(x, name):
    """To nearest even; beyond the largest number to that."""
    bits, least, most = FORMATS[name]
    if x == 0 or x != x:
        return x
    if abs(x) >= most:
        return math.copysign(most, x)
    exponent = max(math.frexp(x)[1] - 1, least)
    step = 2.0 ** (exponent - bits + 1)
    return min(round(abs(x) / step) * step, most) * math.copysign(1, x)  # round() is to even


def quantize(rows, name, block, powers):
    """The numbers and the scale of each row, in f32 as the kernel computes them."""
    per_number = f32(1 / FORMATS[name][2])
    numbers, scales = [], []
    for first in range(0, len(rows), block):
        group = rows[first : first + block]
        sizes = [abs(x) for row in group for x in row]
        largest = math.nan if any(x != x for x in sizes) else max(sizes)
        scale = f32(largest * per_number)
        scale = scale if scale != scale else max(scale, 2.0**-50)
        if powers and math.isfinite(scale):
            scale = 2.0 ** math.ceil(math.log2(scale))
        inverse = f32(1 / scale)
        scales += [scale] * len(group)
        numbers += [round8(f32(x * inverse) if math.isfinite(x) else x * inverse, name) for row in group for x in row]
    return numbers, scales


def same(a, b):
    return a == b or (a != a and b != b)


def check(kernel, folder, rows, defines, block=1, rotation=None, shape=None):
    name = next((d[6:] for d in defines if d.startswith("-DOUT=")), "f8E4M3FN")
    width = len(rows[0])
    save(f"{folder}/x.npy", [x for row in rows for x in row], shape or (1, 1, len(rows), width))
    inputs = ["--input", f"x={folder}/x.npy"]
    if rotation:
        save(f"{folder}/r.npy", [x for row in rotation for x in row], (width, width))
        inputs += ["--input", f"r={folder}/r.npy"]
        rows = [[sum(x * r[j] for x, r in zip(row, rotation)) for j in range(width)] for row in rows]
    numbers, scales = quantize(rows, name, block, "-DPOWERS=true" in defines)
    run(kernel, f"-DD={width}", *defines, *inputs, "--output", f"q={folder}/q.npy", "--output", f"s={folder}/s.npy")
    for what, actual, expected in (("s", load(f"{folder}/s.npy"), scales), ("q", load(f"{folder}/q.npy"), numbers)):
        wrong = [i for i, (a, b) in enumerate(zip(actual, expected)) if not same(a, b)]
        if wrong or len(actual) != len(expected):
            i = wrong[0]
            sys.exit(f"{defines} of {width}: {what}[{i}] is {actual[i]}, expected {expected[i]}")


def split(values, width):
    return [values[i : i + width] for i in range(0, len(values), width)]


def hadamard(width):
    return [[(-1.0) ** bin(i & j).count("1") for j in range(width)] for i in range(width)]


def main(kernel, folder):
    for count, width in ((1, 16), (5, 64), (130, 128), (3, 1040)):
        for name in FORMATS:
            rows = split(draw(width, count, width), width)
            check(kernel, folder, rows, [f"-DOUT={name}"])
            check(kernel, folder, rows, [f"-DOUT={name}", "-DT=f16", "-DBLOCKS=true", "-DBM=64"], block=64)
    # Rows of zeros, with an infinity and with NaN, and numbers that are too small to have a scale.
    rows = split(draw(1, 6, 64), 64)
    rows[1] = [0.0] * 64
    rows[2][5] = math.inf
    rows[3][7] = -math.inf
    rows[4][9] = math.nan
    rows[5] = [2.0**-120] * 64
    check(kernel, folder, rows, [])
    check(kernel, folder, rows, ["-DPOWERS=true"])
    check(kernel, folder, rows[:2], ["-DBLOCKS=true"], block=2)
    check(kernel, folder, rows[:4], ["-DBLOCKS=true"], block=4)
    for width in (64, 128):
        rows = split(draw(7, 70, width), width)
        check(kernel, folder, rows, ["-DROTATE=true"], rotation=hadamard(width))
        check(kernel, folder, rows, ["-DROTATE=true", "-DHALVES=true"], rotation=hadamard(width))
        check(kernel, folder, rows, ["-DROTATE=true", "-DBLOCKS=true", "-DBM=64"], block=64, rotation=hadamard(width))


main(*sys.argv[1:])
