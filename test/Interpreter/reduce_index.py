# RUN: mkdir -p %t
# RUN: %python %s %t
"""Places of the largest and the smallest against their definition, element by element: of both axes, with elements that are equal, zeros
of either sign, infinities and NaN. In the precision of the kernel, in double precision, and on the simulator."""

import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "Kernels", "Inputs"))
from reference import load, run, save  # noqa: E402

ROWS, COLUMNS = 64, 32
KERNEL = """!X = !tile.view<[64, 32], f32>
!T = tensor<64x32xf32>
tile.kernel @k(%x: !X, %y: !tile.view<[{size}], f32>, %n: !tile.view<[{size}], i32>) grid(%m = 1) {{
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !X -> !T
  %v, %i = tile.reduce_index {kind} %t axis {axis} : !T -> tensor<{size}xf32>, tensor<{size}xi32>
  tile.store %v, %y[%c0] : tensor<{size}xf32>, !tile.view<[{size}], f32>
  tile.store %i, %n[%c0] : tensor<{size}xi32>, !tile.view<[{size}], i32>
}}
"""
NUMBERS = (-math.inf, -2.0, -1.0, -0.0, 0.0, 0.0, 1.0, 2.0, math.inf, math.nan)


def find(line, kind):
    """The definition: numpy's argmax for `maximum`, and that of what is no NaN for `max`."""
    if kind.endswith("imum") and any(map(math.isnan, line)):
        return math.nan, [math.isnan(x) for x in line].index(True)
    numbers = [x for x in line if not math.isnan(x)]
    if not numbers:
        return math.nan, 0
    value = (max if kind.startswith("max") else min)(numbers)
    return value, line.index(value)


def draw_line(generator, size, line):
    """Of few numbers, so that several are equal; a line of NaN, lines of some, and lines without."""
    numbers = [math.nan] if line == 0 else NUMBERS if line % 3 == 0 else NUMBERS[:-1] if line % 3 == 1 else (-0.0, 0.0, -1.0)
    return [generator.choice(numbers) for _ in range(size)]


def main(folder):
    generator = random.Random(1)
    for kind, axis in (("max", 1), ("maximum", 1), ("min", 1), ("minimum", 0), ("maximum", 0), ("max", 0)):
        lines = [draw_line(generator, COLUMNS if axis else ROWS, line) for line in range(ROWS if axis else COLUMNS)]
        rows = lines if axis else list(zip(*lines))
        save(f"{folder}/x.npy", [x for row in rows for x in row], (ROWS, COLUMNS))
        with open(f"{folder}/k.tile", "w") as file:
            file.write(KERNEL.format(kind=kind, axis=axis, size=len(lines)))
        wanted = [find(line, kind) for line in lines]
        for options in ([], ["--precision", "exact"], ["--device", "sim"]):
            outputs = ["--output", f"y={folder}/y.npy", "--output", f"n={folder}/n.npy"]
            run(f"{folder}/k.tile", "--input", f"x={folder}/x.npy", *outputs, *options)
            for line, (value, place), *found in zip(lines, wanted, load(f"{folder}/y.npy"), load(f"{folder}/n.npy")):
                same = found[0] == value or math.isnan(found[0]) and math.isnan(value)
                assert same and found[1] == place, (kind, axis, options, line, found, (value, place))


main(*sys.argv[1:])
