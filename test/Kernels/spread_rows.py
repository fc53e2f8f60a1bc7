# RUN: %python %s %source/kernels
"""Rows that the blocks of a cluster have together, on the simulator beside the interpreter: clusters of 2 to 16 blocks, one tile, two and
a loop over tiles, several rows in a tile, odd lengths, a last tile in part, rows with strides."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import run  # noqa: E402

# kernel, type, length of a row, columns of a tile, rows of a tile, blocks, warpgroups of each, other parameters
CASES = (
    ("softmax", "f32", 2000, 2048, 1, 2, 2, ()),
    ("softmax", "bf16", 4096, 4096, 1, 4, 1, ()),
    ("softmax", "bf16", 3999, 4096, 1, 2, 1, ()),
    ("softmax", "f32", 1024, 1024, 4, 2, 1, ()),
    ("softmax", "f32", 5000, 2048, 2, 2, 1, ()),
    ("softmax", "f32", 8192, 8192, 1, 16, 1, ()),
    ("layer_norm", "bf16", 8000, 4096, 1, 4, 1, ()),
    ("layer_norm", "bf16", 8192, 8192, 1, 8, 1, ("-DRMS=true",)),
    ("layer_norm", "f32", 5000, 2048, 1, 2, 1, ()),
)


def main(kernels):
    for name, kind, width, columns, rows, blocks, warpgroups, others in CASES:
        given = [f"{kernels}/{name}.tile", f"-DT={kind}", f"-DD={width}", f"-DBN={columns}", f"-DBM={rows}", *others]
        given += ["--schedule", f"cluster={blocks},consumers={warpgroups}", "--shape", "M=3", "--pad-rows", "8"]
        if name == "layer_norm":
            given += ["--set", "eps=0.01"]
        run(*given, "--device", "sim", "--check")
    # As rules have it.
    run(f"{kernels}/softmax.tile", "-DD=40000", "--shape", "M=2", "--device", "sim", "--check")
    run(f"{kernels}/layer_norm.tile", "-DD=65544", "--shape", "M=1", "--set", "eps=0.01", "--device", "sim", "--check")


main(*sys.argv[1:])
