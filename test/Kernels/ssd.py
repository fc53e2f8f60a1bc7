# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear/ssd.tile %t
"""Compares state-space duality with its recurrence, token by token: lengths that no chunk divides, a state before and behind, steps
that forget all and nothing, heads that share keys, and values that pass by the state. With logarithms of factors, of which some are of
0, and with z. On the interpreter, and on the simulator."""

import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from recurrences import check  # noqa: E402
from reference import draw, run  # noqa: E402

DK, DV, HEADS = 64, 32, 2


def recur(q, k, v, steps, rate, skip, state, logs=None):
    """The outputs of a head, and its state behind them, which is changed in place."""
    outputs = []
    for t, step in enumerate(steps):
        query, key, value = q[t * DK :][:DK], k[t * DK :][:DK], v[t * DV :][:DV]
        decay = math.exp(rate * step if logs is None else logs[t])
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


def check_outputs(kernel, folder):
    """Logarithms of factors, some of which are 0, z and a part of the values for each element; and of logarithms walks from the end, and
    gradients, on the simulator."""
    length = 150
    steps = [random.uniform(0, 1) for _ in range(HEADS * length)]
    logs = [-110.0 if t % 150 in (0, 1, 63, 64, 100) else random.uniform(-1, 0) for t in range(HEADS * length)]
    q, k = (draw(seed, length, DK) for seed in (1, 2))
    v, z, start = draw(3, HEADS, length, DV), draw(5, HEADS, length, DV), draw(4, HEADS, DK, DV)
    skips = draw(6, HEADS, DV)
    inputs = {"q": (q, (1, 1, length, DK)), "k": (k, (1, 1, length, DK)),
              "v": (v, (1, HEADS, length, DV)), "z": (z, (1, HEADS, length, DV)),
              "gates": (logs, (1, HEADS, length)), "dt": (steps, (1, HEADS, length)), "rates": ([1.0] * HEADS, (HEADS,)),
              "skip": (skips, (HEADS, DV))}  # fmt: skip

    def of_head(head, state):
        own = slice(head * length, (head + 1) * length)
        values, of_z = (x[head * length * DV :][: length * DV] for x in (v, z))
        outputs = recur(q, k, values, steps[own], 1.0, 0.0, state, logs[own])
        skip = skips[head * DV :][:DV]
        return [(y + skip[i % DV] * x) * gate / (1 + math.exp(-gate)) for i, (y, x, gate) in enumerate(zip(outputs, values, of_z))]

    form = ["-DSKIP=true", "-DELEMENTS=true", "-DGATED=true", "-DRESETS=true"]
    check(kernel, folder, inputs, start, (HEADS, DK, DV), of_head, length, None, form, ["--pad-rows", "8"])
    given = [word for name in ("q", "k", "v", "gates", "dt", "rates") for word in ("--input", f"{name}={folder}/{name}.npy")]
    back = [f"-D{name}" for name in (f"DK={DK}", f"DV={DV}", "RESETS=true", "REVERSE=true", "STEPS=own")]
    run(kernel, *back, *given, "--device", "sim", "--check")
    changes = [f"{folder}/{name}.npy" for name in ("gates", "dt")]
    given = [word for name, path in zip(("logs", "gates"), changes) for word in ("--input", f"{name}={path}")]
    shape = f"B=1,H={HEADS},P=3,PM=3,R={length},N={-(-length // 64)}"
    run(os.path.join(os.path.dirname(kernel), "ssd_changes.tile"), "-DRESETS=true", *given, "--shape", shape, "--pad-rows", "4",
        "--device", "sim", "--check")  # fmt: skip


main(*sys.argv[1:])
check_outputs(*sys.argv[1:])
