# RUN: mkdir -p %t
# RUN: %python %s %t
"""Compares attention with sinks with the definition: rows that see keys and rows that see none, sinks far below and far above
the scores, and none."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

HEADS, D, SCALE = 5, 64, 0.125


def attend(q, k, v, sink, sees):
    scores = [SCALE * sum(a * b for a, b in zip(q, key)) if sees(j) else -math.inf for j, key in enumerate(k)]
    highest = max(*scores, sink)
    if highest == -math.inf:
        return [0.0] * D, -math.inf
    weights = [math.exp(score - highest) for score in scores]
    total = sum(weights) + math.exp(sink - highest)
    return [sum(w * value[d] for w, value in zip(weights, v)) / total for d in range(D)], highest + math.log(total)


def rows(values, count):
    return [values[i * D : i * D + D] for i in range(count)]


def main(folder):
    source = f"{folder}/both.tile"
    with open(source, "w") as file:
        file.write('$import "variants/sink.tile"\n$import "variants/causal.tile"\n')
    sq, sk = 9, 6  # The first three queries see nothing.
    sinks = [-math.inf, -100.0, 0.5, 3.0, 300.0]
    q, k, v = draw(1, HEADS, sq, D), draw(2, HEADS, sk, D), draw(3, HEADS, sk, D)
    for name, values, shape in (("q", q, (1, HEADS, sq, D)), ("k", k, (1, HEADS, sk, D)), ("v", v, (1, HEADS, sk, D))):
        save(f"{folder}/{name}.npy", values, shape)
    save(f"{folder}/sinks.npy", sinks, (HEADS,))
    expected_o, expected_lse = [], []
    for h in range(HEADS):
        of_head = [rows(x[h * n * D : (h + 1) * n * D], n) for x, n in ((q, sq), (k, sk), (v, sk))]
        for i in range(sq):
            o, lse = attend(of_head[0][i], *of_head[1:], sinks[h], lambda j, i=i: j <= i + sk - sq)
            expected_o += o
            expected_lse.append(lse)
    inputs = [word for name in ("q", "k", "v", "sinks") for word in ("--input", f"{name}={folder}/{name}.npy")]
    outputs = ["--output", f"o={folder}/o.npy", "--output", f"lse={folder}/lse.npy"]
    for device, exact, tolerance in (("interp", ["--precision", "exact"], 4e-3), ("sim", [], 2e-2)):
        run(source, "-DD=64", *inputs, *outputs, "--set", f"scale={SCALE}", "--device", device, *exact)
        compare(f"o of {device}", load(f"{folder}/o.npy"), expected_o, tolerance)
        compare(f"lse of {device}", load(f"{folder}/lse.npy"), expected_lse, 1e-5)


main(*sys.argv[1:])
