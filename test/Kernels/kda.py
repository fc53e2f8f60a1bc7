# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear/kda.tile %t
"""Compares the delta rule with gates of channels with its recurrence, token by token: lengths that no chunk divides, a state before
and behind, channels that forget all and nothing, heads that share keys or have their own, keys that repeat. On the interpreter, and on
the simulator."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from recurrences import check, recur  # noqa: E402
from reference import draw  # noqa: E402

DK, DV, HEADS, SCALE = 64, 32, 2, 0.125


def main(kernel, folder):
    random.seed(1)
    for length, initial, most, of_keys in ((1, False, 1, 1), (63, True, 5, 2), (64, False, 40, 1), (150, True, 0.01, 2)):
        per, rows = length * DK, of_keys * length
        gates = [-random.uniform(0, most) for _ in range(rows * DK)]
        q, few = draw(1, rows, DK), [[random.choice((-0.125, 0.125)) for _ in range(DK)] for _ in range(5)]
        k = [x for t in range(rows) for x in few[t % 5]]
        rates = [random.uniform(0.5, 1) for _ in range(HEADS * length)]
        v, start = draw(3, HEADS, length, DV), draw(4, HEADS, DK, DV)
        of_q, of_v = (1, of_keys, length, DK), (1, HEADS, length, DV)
        inputs = {"q": (q, of_q), "k": (k, of_q), "v": (v, of_v), "g": (gates, of_q), "beta": (rates, (1, HEADS, length))}

        def of_head(head, state):
            of_key = slice(head * of_keys // HEADS * per, None)
            own = (x[of_key][:per] for x in (q, k))
            return recur(length, *own, v[head * length * DV :], gates[of_key][:per], state, SCALE, rates[head * length :])

        parameters = [f"-DOWN={str(of_keys == HEADS).lower()}"]
        shape = HEADS, DK, DV
        check(kernel, folder, inputs, start if initial else None, shape, of_head, length, SCALE, parameters, ["--pad-rows", "8"])


main(*sys.argv[1:])
