# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/variants %t
"""Packed sequences, whose blocks follow from values that are loaded for each row: attention is attention, in all forms of the
program, and tiles visit no more than their sequences. On the interpreter and on the simulator."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import run, save  # noqa: E402


def pack(sk, count):
    """The first key of the sequence of each key, and the first behind it."""
    cuts = [0, *sorted(random.sample(range(1, sk), min(count, sk) - 1)), sk]
    starts, ends = [], []
    for first, past in zip(cuts, cuts[1:]):
        starts += [first] * (past - first)
        ends += [past] * (past - first)
    return starts, ends


def main(variants, folder):
    random.seed(2)
    for sq, sk, count, causal, schedules in (
        (203, 203, 4, True, ("", "speculate=false", "persistent=none")),
        (64, 1023, 6, True, ("", "producer=none")),
        (1, 113, 3, False, ("",)),
        (300, 40, 2, True, ("",)),
        (403, 700, 7, False, ("", "persistent=static")),
    ):
        both = [pack(sk, count) for _ in range(2)]
        inputs = []
        for i, name in enumerate(("starts", "ends")):
            save(f"{folder}/{name}.npy", [x for one in both for x in one[i]], (2, sk))
            if not causal or name == "starts":
                inputs += ["--input", f"{name}={folder}/{name}.npy"]
        shape = ["--shape", f"B=2,H=2,HK=1,SQ={sq},SK={sk}"]
        for schedule in schedules:
            options = ["-DD=64", "--schedule", schedule, "--set", "scale=0.125"]
            run(f"{variants}/{'packed' if causal else 'packed_full'}.tile", *options, *shape, *inputs, "--device", "sim", "--check")


main(*sys.argv[1:])
