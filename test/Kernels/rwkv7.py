# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear/rwkv7.tile %t
"""Compares RWKV-7 with its recurrence, token by token: lengths that no chunk divides, a state before and behind, channels that forget
all and nothing. On the interpreter, and on the simulator."""

import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from recurrences import check  # noqa: E402
from reference import draw  # noqa: E402

DK, DV, SCALE = 64, 32, 0.125


def recur(q, a, b, k, v, gates, state):
    """The outputs of a head, and its state behind them, which is changed in place."""
    outputs = []
    for t in range(len(gates) // DK):
        query, take, put, key, own = (x[t * DK :][:DK] for x in (q, a, b, k, gates))
        moved = [sum(x * row[j] for x, row in zip(take, state)) for j in range(DV)]
        for gate, x, y, row in zip(own, put, key, state):
            row[:] = [math.exp(gate) * held + x * u + y * v[t * DV + j] for j, (held, u) in enumerate(zip(row, moved))]
        outputs += [SCALE * sum(x * row[j] for x, row in zip(query, state)) for j in range(DV)]
    return outputs


def main(kernel, folder):
    random.seed(1)
    for length, initial, most in ((1, False, 1), (63, True, 1), (64, False, 40), (150, True, 0.01)):
        gates = [-random.uniform(0, most) for _ in range(length * DK)]
        q, k = (draw(seed, length, DK) for seed in (1, 2))
        takes = [[random.choice((-0.125, 0.125)) for _ in range(DK)] for _ in range(5)]
        a = [-x for t in range(length) for x in takes[t % 5]]
        b = [x * random.choice((0.25, 0.5, 1)) for t in range(length) for x in takes[t % 5]]
        v, start = draw(3, length, DV), draw(4, DK, DV)
        inputs = {"q": (q, (1, 1, length, DK)), "k": (k, (1, 1, length, DK)), "a": (a, (1, 1, length, DK)), "b": (b, (1, 1, length, DK)),
                  "v": (v, (1, 1, length, DV)),
                  "g": (gates, (1, 1, length, DK))}  # fmt: skip
        of_head = lambda _, state: recur(q, a, b, k, v, gates, state)
        check(kernel, folder, inputs, start if initial else None, (1, DK, DV), of_head, length, SCALE)


main(*sys.argv[1:])
