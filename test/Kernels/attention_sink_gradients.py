# RUN: mkdir -p %t
# RUN: %python %s attention_gradients.tile %t
# RUN: %python %s attention_gradients_fixed.tile %t
"""Compares the gradients of attention with sinks, and those of the sinks, with the formulas on the interpreter, and the formulas
with central differences: sinks far below and far above the scores, none, and rows that see nothing but their sink."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from gradients import CAUSAL, SCALE, Case, dot, rows  # noqa: E402
from reference import compare, load, run, save  # noqa: E402

SINKS = (-math.inf, -100.0, 0.5, 3.0, 300.0)
SOURCE = """$import "variants/sink.tile"
$import "variants/causal.tile"
$import "{}"

func.func private @sink_gradients(i32, i32, f32)
    attributes {{tile.gradient_of = @sink, tile.with_respect_to = ["sinks"]}}
"""


class SinkCase(Case):
    """Attention in which each row sees a key more, with the value 0."""

    def __init__(self, heads, kv_heads, sq, sk, d, sinks):
        super().__init__(heads, kv_heads, sq, sk, d, d, CAUSAL)
        self.sinks = list(sinks)

    def forward(self, q, k, v):
        v = rows(v, self.dv)
        for h, _, scores in self.products(q, k):
            top = max(self.sinks[h], *scores.values(), -1e30)
            total = sum(math.exp(s - top) for s in (self.sinks[h], *scores.values()))
            weights = {c: math.exp(s - top) / total for c, s in scores.items()}
            o = [sum(w * v[self.first_key(h) + c][j] for c, w in weights.items()) for j in range(self.dv)]
            yield o, top + math.log(total) if total else -math.inf, weights

    def loss(self, q, k, v):
        outputs = zip(self.forward(q, k, v), rows(self.do, self.dv), self.dlse)
        return sum(dot(o, do) + (0 if lse == -math.inf else lse * dlse) for (o, lse, _), do, dlse in outputs)

    def of_sinks(self):
        """The gradients of the sinks."""
        found = [0.0] * self.heads
        for i, ((o, lse, _), do) in enumerate(zip(self.forward(self.q, self.k, self.v), rows(self.do, self.dv))):
            sink = self.sinks[i // self.sq]
            if sink > -math.inf:
                found[i // self.sq] += math.exp(sink - lse) * (self.dlse[i] - dot(o, do))
        return found


def check_formula():
    case, step = SinkCase(2, 1, 5, 3, 4, (0.5, -0.25)), 1e-4
    for h, found in enumerate(case.of_sinks()):
        losses = []
        for sign in (1, -1):
            case.sinks[h] += sign * step
            losses.append(case.loss(case.q, case.k, case.v))
            case.sinks[h] -= sign * step
        compare("dsinks by differences", [found], [(losses[0] - losses[1]) / (2 * step)], 1e-6)


def check(template, folder, kv_heads, sq, sk, *more):
    heads, d = len(SINKS), 64
    case = SinkCase(heads, kv_heads, sq, sk, d, SINKS)
    outputs = list(case.forward(case.q, case.k, case.v))
    tensors = {
        "q": (case.q, (1, heads, sq, d)), "k": (case.k, (1, kv_heads, sk, d)), "v": (case.v, (1, kv_heads, sk, d)),
        "o": ([x for o, _, _ in outputs for x in o], (1, heads, sq, d)), "do": (case.do, (1, heads, sq, d)),
        "lse": ([lse for _, lse, _ in outputs], (1, heads, sq)), "dlse": (case.dlse, (1, heads, sq)),
        "sinks": (case.sinks, (heads,)), "dsinks": ([0.0] * heads, (heads,)),
    }  # fmt: skip
    path = f"{folder}/sinks.tile"
    with open(path, "w", encoding="utf-8") as file:
        file.write(SOURCE.format(template))
    arguments = [path, "--kernel", "attention_gradients", "-DD=64", "-DDLSE=true", "--set", f"scale={SCALE}", *more]
    for name, (values, shape) in tensors.items():
        save(f"{folder}/{name}.npy", values, shape)
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    expected = {**case.backward(True), "dsinks": case.of_sinks()}
    for name in expected:
        arguments += ["--output", f"{name}={folder}/{name}.npy"]
    run(*arguments)
    for name, values in expected.items():
        # Inputs are rounded to bf16: only O is not exact there.
        compare(f"{template} SQ={sq} SK={sk} {more}: {name}", load(f"{folder}/{name}.npy"), values, 2e-2)


def main(template, folder):
    check_formula()
    # The first three queries see nothing.
    check(template, folder, 1, 36, 33, "--precision", "exact")
    check(template, folder, 5, 33, 50, "--precision", "exact", "--level", "scheduled")
    check(template, folder, 5, 33, 30, "--device", "sim", "--pad-rows", "8")


main(*sys.argv[1:])
