# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear/ssd.tile %t
"""Compares state-space duality with its recurrence, token by token: lengths that no chunk divides, a state before and behind, steps
that forget all and nothing, heads that share keys, and values that pass by the state. On the interpreter, and on the simulator."""

import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from recurrences import check  # noqa: E402
from reference import draw  # noqa: E402

DK, DV, HEADS = 64, 32, 2


def recur(q, k, v, steps, rate, skip, state):
    """The outputs of a head, and its state behind them, which is changed in place."""
    outputs = []
    for t, step in enumerate(steps):
        query, key, value = q[t * DK :][:DK], k[t * DK :][:DK], v[t * DV :][:DV]
        decay = math.exp(rate * step)
        for x, row in zip(key, state):
            row[:] = [decay * held + step * x * new for held, new in zip(row, value)]
        outputs += [sum(x * row[j] for x, row in zip(query, state)) + skip * value[j] for j in range(DV)]
    return outputs


def main(kernel, folder):
    random.seed(1)
    for length, initial, most, passes in ((1, False, 1, True), (63, True, 1, False), (64, False, 60, True), (150, True, 0.01, True)):
        steps = [random.uniform(0, most) for _ in range(HEADS * length)]
        rates, skips = [-1.5, -0.25], [0.5, -2.0] if passes else [0.0, 0.0]
        q, k = (draw(seed, length, DK) for seed in (1, 2))
        v, start = draw(3, HEADS, length, DV), draw(4, HEADS, DK, DV)
        inputs = {"q": (q, (1, 1, length, DK)), "k": (k, (1, 1, length, DK)), "v": (v, (1, HEADS, length, DV)),
                  "gates": (steps, (1, HEADS, length)), "dt": (steps, (1, HEADS, length)), "rates": (rates, (HEADS,))}  # fmt: skip
        if passes:
            inputs["skip"] = (skips, (HEADS,))
        def of_head(head, state):
            own = steps[head * length :][:length]
            return recur(q, k, v[head * length * DV :], own, rates[head], skips[head], state)

        check(kernel, folder, inputs, start if initial else None, (HEADS, DK, DV), of_head, length, None, [f"-DSKIP={str(passes).lower()}"],
              ["--pad-rows", "8"])  # fmt: skip


main(*sys.argv[1:])
