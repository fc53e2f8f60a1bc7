# RUN: %python %s %source/kernels/linear/unit_rows.tile
"""Rows divided by their lengths, and the gradients of that, on the simulator beside the interpreter: a last tile in part, rows with
strides. What they compute is compared in test/Torch."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import run  # noqa: E402


def main(source):
    for d, t in ((64, "bf16"), (256, "f16")):
        for back in ("false", "true"):
            given = f"-DDK={d}", f"-DT={t}", f"-DBACK={back}", "--shape", "B=1,HK=2,L=45", "--pad-rows", "8"
            run(source, *given, "--device", "sim", "--check")


main(*sys.argv[1:])
