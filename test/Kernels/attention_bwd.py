# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/attention_bwd.tile %t
# RUN: %python %s %source/kernels/attention_bwd_deterministic.tile %t
"""Compares the gradients of attention on the interpreter with the formulas, over masks, head groups, awkward lengths,
queries that see nothing and gradients of LSE; and the formulas with central differences."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from gradients import CAUSAL, FULL, check, check_formulas  # noqa: E402


def main(kernel, folder):
    def compare(heads, kv_heads, sq, sk, d, dv, causal, has_dlse, *more):
        mask = CAUSAL if causal else FULL
        check(kernel, folder, heads, kv_heads, sq, sk, d, dv, mask, has_dlse, f"-DCAUSAL={str(causal).lower()}", *more)

    check_formulas(CAUSAL)
    compare(1, 1, 1, 1, 64, 64, False, False)
    compare(2, 1, 33, 50, 64, 64, False, True, "--level", "scheduled")
    compare(3, 1, 50, 33, 64, 64, True, True, "-DT=f16")
    compare(2, 2, 70, 70, 64, 64, True, False, "--level", "scheduled")
    compare(2, 1, 20, 21, 96, 64, True, True)
    compare(2, 1, 20, 37, 192, 128, True, True)
    if not kernel.endswith("deterministic.tile"):
        compare(1, 1, 33, 50, 64, 64, True, False, "-DSHIFT=base2", "-DGM=64", "-DGN=64")
        compare(2, 1, 150, 200, 64, 64, True, False, "-DTOGETHER=2", "-DGM=64", "-DGN=64")
        compare(4, 2, 50, 37, 64, 64, True, True, "-DPARTS=2")
        # Parts of unequal numbers of heads, and of none.
        compare(6, 2, 33, 150, 128, 64, False, False, "-DPARTS=2", "--level", "scheduled")
        compare(7, 1, 33, 50, 64, 64, True, False, "-DPARTS=4", "-DT=f16")
        compare(5, 1, 150, 130, 64, 64, True, False, "-DPARTS=4", "-DGROUP=8", "-DCHUNK=1", "--level", "scheduled")
        compare(6, 2, 150, 130, 128, 128, True, True, "-DPARTS=8", "-DGROUP=8", "-DCHUNK=2", "--level", "scheduled")
        compare(4, 1, 150, 130, 64, 64, True, True, "-DPARTS=2", "-DFIXED=true", "-DGROUP=8", "--level", "scheduled")
        compare(4, 2, 150, 200, 64, 64, True, True, "-DCHUNK=1", "-DGM=64", "-DGN=64")
        compare(4, 2, 150, 130, 128, 128, True, True, "-DCHUNK=2", "-DGROUP=8", "--level", "scheduled")
        compare(4, 2, 150, 130, 128, 128, True, True, "-DFIXED=true", "-DGROUP=8", "-DCHUNK=1", "--level", "scheduled")


main(*sys.argv[1:])
