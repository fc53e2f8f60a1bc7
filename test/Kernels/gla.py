# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear/gla.tile %t
"""Compares gated linear attention with its recurrence, token by token: lengths that no chunk divides, a state before and behind,
channels that forget all and nothing, heads that share keys. On the interpreter, and on the simulator."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from recurrences import check, recur  # noqa: E402
from reference import draw  # noqa: E402

DK, DV, HEADS, SCALE = 64, 32, 2, 0.125


def main(kernel, folder):
    random.seed(1)
    for length, initial, most in ((1, False, 1), (63, True, 1), (64, False, 40), (150, True, 0.01), (65, False, 40)):
        gates = [-random.uniform(0, most) for _ in range(length * DK)]
        q, k = (draw(seed, length, DK) for seed in (1, 2))
        v, start = draw(3, HEADS, length, DV), draw(4, HEADS, DK, DV)
        inputs = {"q": (q, (1, 1, length, DK)), "k": (k, (1, 1, length, DK)), "v": (v, (1, HEADS, length, DV)),
                  "g": (gates, (1, 1, length, DK))}  # fmt: skip
        of_head = lambda head, state: recur(length, q, k, v[head * length * DV :], gates, state, SCALE)
        check(kernel, folder, inputs, start if initial else None, (HEADS, DK, DV), of_head, length, SCALE)


main(*sys.argv[1:])
