# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear/retention.tile %t
"""Compares retention with its recurrence, token by token: lengths that no chunk divides, a state before and behind, and heads that
forget fast and slowly. On the interpreter, and on the simulator beside it."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from recurrences import check, recur  # noqa: E402
from reference import draw  # noqa: E402

DV, HEADS, SCALE = 32, 2, 0.125


def main(kernel, folder):
    decays = [math.log2(1 - 2**-5), -12.0]
    for length, initial, chunk in ((1, False, 64), (63, True, 64), (64, False, 64), (65, True, 64), (200, True, 128)):
        # Rows of the state and of a chunk are divided among two consumers, or one has all.
        rows, schedule = (128, ["--schedule", "consumers=2"]) if chunk == 128 else (64, [])
        q, k = (draw(seed, HEADS, length, rows) for seed in (1, 2))
        v, start = draw(3, HEADS, length, DV), draw(4, HEADS, rows, DV)
        inputs = {name: (values, (1, HEADS, length, columns)) for name, values, columns in (("q", q, rows), ("k", k, rows), ("v", v, DV))}
        inputs["log2_decay"] = (decays, (HEADS,))
        def of_head(head, state):
            own = [tile[head * length * n :][: length * n] for tile, n in ((q, rows), (k, rows), (v, DV))]
            return recur(length, *own, [decays[head] * math.log(2)] * length, state, SCALE)

        check(kernel, folder, inputs, start if initial else None, (HEADS, rows, DV), of_head, length, SCALE, [f"-DC={chunk}"], schedule)


main(*sys.argv[1:])
