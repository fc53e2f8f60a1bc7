# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear/delta_rule.tile %t
# RUN: %python %s %source/kernels/linear/delta_rule_states.tile %t
"""Compares the gated delta rule with its recurrence, token by token: lengths that no chunk divides, a state before and behind, gates
near 0 and near 1, and keys that repeat, for which the inverse is at its worst. On the interpreter, and on the simulator beside it."""

import math
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from recurrences import check, recur  # noqa: E402

DK, DV, HEADS, SCALE = 64, 32, 2, 0.125


def to_bf16(x):
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    return struct.unpack("<f", struct.pack("<I", bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000))[0]


def normal(columns, length=None):
    """A row of numbers that bf16 has, of this length."""
    row = [random.gauss(0, 1) for _ in range(columns)]
    scale = length / math.sqrt(sum(x * x for x in row)) if length else 1
    return [to_bf16(scale * x) for x in row]


def draw_keys(length, repeats):
    """Rows of length 1, few different ones where they repeat."""
    rows = [normal(DK, length=1) for _ in range(min(length, 3) if repeats else length)]
    return [x for t in range(length) for x in rows[t % len(rows)]]


def main(kernel, folder):
    random.seed(1)
    for length, initial, gates, repeats in (
        (1, False, (-1, 0), False), (63, True, (-1, 0), False), (64, False, (-30, -20), False),
        (65, True, (-0.01, 0), True), (150, True, (-2, 0), False),
    ):  # fmt: skip
        q = [x for _ in range(length) for x in normal(DK)]
        k = draw_keys(length, repeats)
        v = [x for _ in range(HEADS * length) for x in normal(DV)]
        start = [x for _ in range(HEADS * DK) for x in normal(DV)]
        g = [random.uniform(*gates) for _ in range(HEADS * length)]
        beta = [1.0 if repeats else random.uniform(0, 1) for _ in range(HEADS * length)]
        inputs = {"q": (q, (1, 1, length, DK)), "k": (k, (1, 1, length, DK)), "v": (v, (1, HEADS, length, DV)),
                  "g": (g, (1, HEADS, length)), "beta": (beta, (1, HEADS, length))}  # fmt: skip
        def of_head(head, state):
            own = slice(head * length, (head + 1) * length)
            return recur(length, q, k, v[head * length * DV :], g[own], state, SCALE, beta[own])

        check(kernel, folder, inputs, start if initial else None, (HEADS, DK, DV), of_head, length, SCALE, simulated=["--pad-rows", "8"])


main(*sys.argv[1:])
