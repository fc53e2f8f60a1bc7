# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear/retention.tile %t
"""Compares retention with its recurrence, token by token: lengths that no chunk divides, a state before and behind, and heads that
forget fast and slowly. On the interpreter, and on the simulator beside it."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

DV, HEADS, SCALE = 32, 2, 0.125


def recur(q, k, v, decay, length, state):
    """The outputs of a head, and its state behind them, which is changed in place."""
    outputs = []
    for t in range(length):
        rows = len(state)
        query, key, value = q[t * rows :][:rows], k[t * rows :][:rows], v[t * DV :][:DV]
        for i, row in enumerate(state):
            for j in range(DV):
                row[j] = decay * row[j] + key[i] * value[j]
        outputs += [SCALE * sum(x * row[j] for x, row in zip(query, state)) for j in range(DV)]
    return outputs


def main(kernel, folder):
    decays = [math.log2(1 - 2**-5), -12.0]
    save(f"{folder}/log2_decay.npy", decays, (HEADS,))
    for length, initial, chunk in ((1, False, 64), (63, True, 64), (64, False, 64), (65, True, 64), (200, True, 128)):
        # Rows of the state and of a chunk are divided among two consumers, or one has all.
        rows, schedule = (128, ["--schedule", "consumers=2"]) if chunk == 128 else (64, [])
        q, k = (draw(seed, HEADS, length, rows) for seed in (1, 2))
        v, start = draw(3, HEADS, length, DV), draw(4, HEADS, rows, DV)
        for name, values, columns in (("q", q, rows), ("k", k, rows), ("v", v, DV)):
            save(f"{folder}/{name}.npy", values, (1, HEADS, length, columns))
        save(f"{folder}/s0.npy", start, (1, HEADS, rows, DV))
        names = ["q", "k", "v", "log2_decay"] + ["s0"] * initial
        options = [f"-DDK={rows}", f"-DDV={DV}", f"-DC={chunk}", "-DFINAL=true", f"-DINITIAL={str(initial).lower()}"]
        options += [word for name in names for word in ("--input", f"{name}={folder}/{name}.npy")]
        options += ["--set", f"scale={SCALE}"]
        outputs = [word for name in ("o", "s1") for word in ("--output", f"{name}={folder}/{name}.npy")]
        run(kernel, *options, *outputs, "--precision", "exact")
        out, states = [], []
        for head in range(HEADS):
            state = [start[(head * rows + i) * DV :][:DV] if initial else [0.0] * DV for i in range(rows)]
            of = [tile[head * length * n :][: length * n] for tile, n in ((q, rows), (k, rows), (v, DV))]
            out += recur(*of, 2 ** decays[head], length, state)
            states += [value for row in state for value in row]
        compare(f"o, {length} tokens", load(f"{folder}/o.npy"), out, 1e-6)
        compare(f"s1, {length} tokens", load(f"{folder}/s1.npy"), states, 1e-6)
        run(kernel, *options, *schedule, "--device", "sim", "--check")


main(*sys.argv[1:])
