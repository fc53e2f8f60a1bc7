# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/attention_bwd.tile %t
# RUN: %python %s %source/kernels/attention_bwd_deterministic.tile %t
# RUN: %python %s %source/kernels/attention_bwd_wide.tile %t
"""Compares the gradients of attention on the interpreter with the formulas, over masks, head groups, awkward lengths,
queries that see nothing and gradients of LSE; and the formulas with central differences."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

SCALE = 0.125


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def rows(values, width):
    return [values[start : start + width] for start in range(0, len(values), width)]


class Case:
    """Attention of one batch: queries of `heads`, keys and values of `kv_heads`."""

    def __init__(self, heads, kv_heads, sq, sk, d, dv, causal):
        self.heads, self.kv_heads, self.sq, self.sk, self.d, self.dv, self.causal = heads, kv_heads, sq, sk, d, dv, causal
        self.q, self.k, self.v = draw(0, heads, sq, d), draw(1, kv_heads, sk, d), draw(2, kv_heads, sk, dv)
        self.do, self.dlse = draw(3, heads, sq, dv), draw(4, heads, sq)

    def forward(self, q, k, v):
        """The rows of O, LSE and the weights of each query."""
        q, k, v = rows(q, self.d), rows(k, self.d), rows(v, self.dv)
        for h in range(self.heads):
            first = h // (self.heads // self.kv_heads) * self.sk
            for r in range(self.sq):
                seen = max(0, min(self.sk, r + self.sk - self.sq + 1)) if self.causal else self.sk
                scores = [SCALE * dot(q[h * self.sq + r], k[first + c]) for c in range(seen)]
                top = max(scores, default=0)
                total = sum(math.exp(s - top) for s in scores)
                weights = [math.exp(s - top) / total for s in scores]
                o = [sum(w * v[first + c][j] for c, w in enumerate(weights)) for j in range(self.dv)]
                yield o, top + math.log(total) if scores else -math.inf, weights

    def loss(self, q, k, v):
        """What has the gradients dO and dLSE."""
        outputs = zip(self.forward(q, k, v), rows(self.do, self.dv), self.dlse)
        return sum(dot(o, do) + (lse * dlse if weights else 0) for (o, lse, weights), do, dlse in outputs)

    def backward(self, has_dlse):
        """dQ, dK and dV as flat lists."""
        dq, dk, dv = [0.0] * len(self.q), [0.0] * len(self.k), [0.0] * len(self.v)
        q, k, v, do = rows(self.q, self.d), rows(self.k, self.d), rows(self.v, self.dv), rows(self.do, self.dv)
        for i, (o, _, weights) in enumerate(self.forward(self.q, self.k, self.v)):
            first = i // self.sq // (self.heads // self.kv_heads) * self.sk
            delta = dot(o, do[i]) - (self.dlse[i] if has_dlse else 0)
            for c, p in enumerate(weights, first):
                ds = SCALE * p * (dot(do[i], v[c]) - delta)
                for j in range(self.d):
                    dq[i * self.d + j] += ds * k[c][j]
                    dk[c * self.d + j] += ds * q[i][j]
                for j in range(self.dv):
                    dv[c * self.dv + j] += p * do[i][j]
        return {"dq": dq, "dk": dk, "dv": dv}


def check_formulas():
    """Some elements of each gradient, against central differences."""
    case, step = Case(2, 1, 5, 7, 4, 4, True), 1e-4
    gradients = case.backward(True)
    for name, values in (("q", case.q), ("k", case.k), ("v", case.v)):
        for index in range(0, len(values), 3):
            losses = []
            for sign in (1, -1):
                moved = list(values)
                moved[index] += sign * step
                losses.append(case.loss(**{"q": case.q, "k": case.k, "v": case.v, name: moved}))
            difference = (losses[0] - losses[1]) / (2 * step)
            compare(f"d{name} by differences", [gradients[f"d{name}"][index]], [difference], 1e-6)


def check(kernel, folder, heads, kv_heads, sq, sk, d, dv, causal, has_dlse, *defines):
    case = Case(heads, kv_heads, sq, sk, d, dv, causal)
    outputs = list(case.forward(case.q, case.k, case.v))
    tensors = {
        "q": (case.q, (1, heads, sq, d)), "k": (case.k, (1, kv_heads, sk, d)), "v": (case.v, (1, kv_heads, sk, dv)),
        "o": ([x for o, _, _ in outputs for x in o], (1, heads, sq, dv)), "do": (case.do, (1, heads, sq, dv)),
        "lse": ([lse for _, lse, _ in outputs], (1, heads, sq)),
    }  # fmt: skip
    if has_dlse:
        tensors["dlse"] = case.dlse, (1, heads, sq)
    arguments = [kernel, f"-DD={d}", f"-DDV={dv}", f"-DCAUSAL={str(causal).lower()}", f"-DDLSE={str(has_dlse).lower()}"]
    arguments += [*defines, "--set", f"scale={SCALE}", "--precision", "exact"]
    for name, (values, shape) in tensors.items():
        save(f"{folder}/{name}.npy", values, shape)
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    for name in ("dq", "dk", "dv"):
        arguments += ["--output", f"{name}={folder}/{name}.npy"]
    run(*arguments)
    what = f"H={heads} HK={kv_heads} SQ={sq} SK={sk} D={d} DV={dv} CAUSAL={causal} DLSE={has_dlse} {' '.join(defines)}"
    for name, expected in case.backward(has_dlse).items():
        # Inputs are rounded to bf16: only O is not exact there.
        compare(f"{what}: {name}", load(f"{folder}/{name}.npy"), expected, 2e-2)


def main(kernel, folder):
    check_formulas()
    check(kernel, folder, 1, 1, 1, 1, 64, 64, False, False)
    check(kernel, folder, 2, 1, 33, 50, 64, 64, False, True, "--level", "scheduled")
    check(kernel, folder, 3, 1, 50, 33, 64, 64, True, True, "-DT=f16")
    check(kernel, folder, 2, 2, 70, 70, 64, 64, True, False, "--level", "scheduled")
    check(kernel, folder, 2, 1, 20, 21, 96, 64, True, True)
    if "wide" in kernel:
        check(kernel, folder, 2, 1, 20, 37, 192, 128, True, True)


main(*sys.argv[1:])
