# RUN: mkdir -p %t
# RUN: %python %s %t
"""Scans against their definition, element by element: kinds, both axes, both directions, with and without the element itself, of
numbers and of integers that wrap. In the precision of the kernel, in double precision, and on the simulator."""

import functools
import math
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "Kernels", "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402

ROWS, COLUMNS = 64, 32
KERNEL = """!X = !tile.view<[M, 32], f32>
!T = tensor<64x32xf32>
tile.kernel @k(%x: !X, %y: !X) grid(%m = M ceildiv 64) {{
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = tile.load %x[%row, %c0] : !X -> !T
  %s = tile.scan {kind} %t axis {axis} {flags} : !T
  tile.store %s, %y[%row, %c0] : !T, !X
}}
"""
INTEGERS = """!X = !tile.view<[M], {type}>
!T = tensor<512x{type}>
tile.kernel @k(%x: !X, %y: !X) grid(%m = M ceildiv 512) {{
  %c512 = arith.constant 512 : index
  %row = arith.muli %m, %c512 : index
  %t = tile.load %x[%row] : !X -> !T
  %s = tile.scan {kind} %t axis 0 {flags} : !T
  tile.store %s, %y[%row] : !T, !X
}}
"""
LEAST = {"sum": 0, "product": 1, "max": -math.inf, "maximum": -math.inf, "min": math.inf, "minimum": math.inf}
COMBINE = {"sum": lambda a, b: a + b, "product": lambda a, b: a * b, "max": max, "maximum": max, "min": min, "minimum": min}


def scan(line, kind, flags, least):
    """The definition: each element combines those before it, and itself without `exclusive`."""
    line = line[::-1] if "reverse" in flags else line
    counted = [line[: i + ("exclusive" not in flags)] for i in range(len(line))]
    made = [functools.reduce(COMBINE[kind], part) if part else least for part in counted]
    return made[::-1] if "reverse" in flags else made


def scan_tile(values, kind, axis, flags):
    rows = [values[i * COLUMNS :][:COLUMNS] for i in range(ROWS)]
    lines = rows if axis == 1 else list(map(list, zip(*rows)))
    lines = [scan(line, kind, flags, LEAST[kind]) for line in lines]
    rows = lines if axis == 1 else list(map(list, zip(*lines)))
    return [x for row in rows for x in row]


def check_integers(folder, bits, kind, flags):
    half = 2 ** (bits - 1)
    numbers = [(i * 0x9E3779B97F4A7C15 + 12345) % (2 * half) - half for i in range(512)]
    source, inputs, outputs = (f"{folder}/{name}" for name in ("k.tile", "n.npy", "o.npy"))
    with open(source, "w") as file:
        file.write(INTEGERS.format(type=f"i{bits}", kind=kind, flags=flags))
    save_integers(inputs, numbers, f"i{bits}")
    least = {"sum": 0, "product": 1, "max": -half, "min": half - 1}[kind]
    wanted = [(x + half) % (2 * half) - half for x in scan(numbers, kind, flags, least)]
    save_integers(f"{folder}/e.npy", wanted, f"i{bits}")
    for device in ([], ["--device", "sim"]):
        run(source, "--input", f"x={inputs}", "--output", f"y={outputs}", *device)
        with open(outputs, "rb") as found, open(f"{folder}/e.npy", "rb") as expected:
            bytes_of_all = 512 * bits // 8
            assert found.read()[-bytes_of_all:] == expected.read()[-bytes_of_all:], (bits, kind, flags, device)


def main(folder):
    drawn = draw(1, ROWS, COLUMNS)
    for kind, axis, flags in (("sum", 0, ""), ("sum", 1, "exclusive"), ("sum", 0, "exclusive reverse"), ("max", 1, "reverse"),
                              ("min", 0, "exclusive"), ("maximum", 0, "exclusive reverse"), ("minimum", 1, ""),
                              ("product", 1, "exclusive reverse"), ("product", 0, "")):  # fmt: skip
        with open(f"{folder}/k.tile", "w") as file:
            file.write(KERNEL.format(kind=kind, axis=axis, flags=flags))
        # Numbers near 1, whose products stay in range.
        values = [1 + x / 16 for x in drawn] if kind == "product" else drawn
        save(f"{folder}/x.npy", values, (ROWS, COLUMNS))
        wanted = scan_tile(values, kind, axis, flags)
        for options in ([], ["--precision", "exact"], ["--device", "sim"]):
            run(f"{folder}/k.tile", "--input", f"x={folder}/x.npy", "--output", f"y={folder}/y.npy", *options)
            compare(f"{kind} {axis} {flags} {options}", load(f"{folder}/y.npy"), wanted, 1e-6)
    for bits, kind, flags in ((32, "sum", "exclusive"), (32, "max", "reverse"), (64, "sum", "reverse"), (64, "min", "exclusive"),
                              (32, "product", "exclusive"), (64, "product", "reverse")):  # fmt: skip
        check_integers(folder, bits, kind, flags)


main(*sys.argv[1:])
