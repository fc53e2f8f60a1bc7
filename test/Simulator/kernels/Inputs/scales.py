"""Writes scales of blocks for kernels/attention_fp8.tile, of one batch: between 1/2 and 2, one block of V in 7 times 40, and
NaN for the block of K from key NAN on.

    scales.py DIRECTORY H HK SQ SK ROWS [NAN]
"""

import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "Kernels", "Inputs"))
from reference import save  # noqa: E402


def main(directory, *numbers):
    heads, kv_heads, sq, sk, rows, *nans = map(int, numbers)
    generator = random.Random(0)
    for name, count, length, block in (("q", heads, sq, 1), ("k", kv_heads, sk, rows), ("v", kv_heads, sk, rows)):
        scales = []
        for _ in range(count):
            of_blocks = [generator.uniform(0.5, 2) for _ in range(-(-length // block))]
            if name == "v":
                of_blocks[3::7] = [40 * scale for scale in of_blocks[3::7]]
            if name == "k":
                of_blocks = [math.nan if index * block in nans else scale for index, scale in enumerate(of_blocks)]
            scales += [of_blocks[row // block] for row in range(length)]
        save(f"{directory}/{name}_scale.npy", scales, (1, count, length))


main(*sys.argv[1:])
