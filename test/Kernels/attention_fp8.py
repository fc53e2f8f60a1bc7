# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/attention_fp8.tile %t
"""Compares attention of 8-bit numbers on the interpreter with the definition: scales, both forms of V, queries of 16
bits, masks, scores, head groups and awkward lengths."""

import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

SCALE, D, BN = 0.125, 64, 32
WIDER = 96


def keep(s, h, own, c):
    return s


def see_all(own, c):
    return True


def see_before(own, c):
    return c <= own


def attention(q, k, v, group, score, sees):
    """O and LSE of one batch as flat lists, of nested lists by head, position and dimension. A query's own key is aligned at
    the end."""
    output, lse = [], []
    for h, rows in enumerate(q):
        keys, values = k[h // group], v[h // group]
        for r, row in enumerate(rows):
            own = r + len(keys) - len(rows)
            seen = [c for c in range(len(keys)) if sees(own, c)]
            scores = [score(SCALE * sum(a * b for a, b in zip(row, keys[c])), h, own, c) for c in seen]
            top = max(scores, default=0)
            weights = [math.exp(s - top) for s in scores]
            lse.append(top + math.log(sum(weights)) if scores else -math.inf)
            for j in range(len(values[0])):
                value = sum(w * values[c][j] for c, w in zip(seen, weights))
                output.append(value / sum(weights) if scores else 0.0)
    return output, lse


def flatten(nested):
    return [x for part in nested for x in flatten(part)] if isinstance(nested, list) else [nested]


def nest(seed, heads, length, width=D):
    flat = iter(draw(seed, heads, length, width))
    return [[[next(flat) for _ in range(width)] for _ in range(length)] for _ in range(heads)]


def multiply(tensor, scales):
    return [[[x * s for x in row] for row, s in zip(rows, of_head)] for rows, of_head in zip(tensor, scales)]


def check(kernel, folder, heads, kv_heads, sq, sk, scales, transposed, *defines, dv=D, score=keep, sees=see_all):
    what = f"{os.path.basename(kernel)} H={heads} HK={kv_heads} SQ={sq} SK={sk} SCALES={scales} V_TRANSPOSED={transposed} {defines}"
    generator = random.Random(what)
    arguments = [kernel, "-DT=f8E4M3FN", f"-DD={D}", "-DBM=64", f"-DBN={BN}", f"-DSCALES={scales}"]
    arguments += [f"-DV_TRANSPOSED={str(transposed).lower()}", f"-DDV={dv}", *defines, "--set", f"scale={SCALE}", "--precision", "exact"]

    def give(name, nested, shape):
        save(f"{folder}/{name}.npy", flatten(nested), (1, *shape))
        arguments.extend(["--input", f"{name}={folder}/{name}.npy"])

    q, k, v = nest(0, heads, sq), nest(1, kv_heads, sk), nest(2, kv_heads, sk, dv)
    give("q", q, (heads, sq, D))
    give("k", k, (kv_heads, sk, D))
    turned = [[[row[j] for row in rows] for j in range(dv)] for rows in v]
    give("v", *((turned, (kv_heads, dv, sk)) if transposed else (v, (kv_heads, sk, dv))))
    if scales == "tensor":
        arguments += ["--set", "v_scale=0.75"]
        v = multiply(v, [[0.75] * sk] * kv_heads)
    elif scales == "heads":
        of_heads = [[generator.uniform(0.5, 2) for _ in range(kv_heads)] for _ in "qkv"]
        for name, values in zip(("q_scale", "k_scale", "v_scale"), of_heads):
            give(name, values, (kv_heads,))
        group = heads // kv_heads
        q = multiply(q, [[of_heads[0][h // group]] * sq for h in range(heads)])
        k, v = (multiply(x, [[s] * sk for s in own]) for x, own in zip((k, v), of_heads[1:]))
    else:
        q_scale = [[generator.uniform(0.5, 2) for _ in range(sq)] for _ in range(heads)]
        k_scale, v_scale = ([[0.0] * sk for _ in range(kv_heads)] for _ in range(2))
        for rows in (*k_scale, *v_scale):
            for first in range(0, sk, BN):
                rows[first : first + BN] = [generator.uniform(0.5, 2)] * len(rows[first : first + BN])
        for name, values, rows in (("q_scale", q_scale, sq), ("k_scale", k_scale, sk), ("v_scale", v_scale, sk)):
            give(name, values, (len(values), rows))
        q, k, v = multiply(q, q_scale), multiply(k, k_scale), multiply(v, v_scale)
    run(*arguments, "--output", f"o={folder}/o.npy", "--output", f"lse={folder}/lse.npy")
    output, lse = attention(q, k, v, heads // kv_heads, score, sees)
    # O is stored in bf16 (2^-9); LSE in f32, with constants rounded to f32.
    compare(f"{what}: O", load(f"{folder}/o.npy"), output, 4e-3)
    compare(f"{what}: LSE", load(f"{folder}/lse.npy"), lse, 1e-5)


def check_variants(kernels, folder, scales, transposed):
    """The template of variants, in which a mask or a score is another one."""

    def check_variant(name, sq, sk, *defines, **functions):
        check(f"{kernels}/{name}.tile", folder, 2, 1, sq, sk, scales, transposed, *defines, **functions)

    slopes = [0.5, 0.03]
    save(f"{folder}/slopes.npy", slopes, (2,))
    check_variant("attention", 5, 70, "-DPROMOTE=2")
    check_variant("variants/causal", 70, 33, sees=see_before)
    check_variant("variants/window", 9, 130, "--set", "left=40", "--set", "right=2",
                  sees=lambda own, c: own - 40 <= c <= own + 2)  # fmt: skip
    check_variant("variants/softcap", 5, 70, "-DNEAR=false", "--set", "cap=2",
                  score=lambda s, h, own, c: 2 * math.tanh(s / 2))  # fmt: skip
    check_variant("variants/alibi", 5, 100, "--input", f"slopes={folder}/slopes.npy",
                  score=lambda s, h, own, c: s - slopes[h] * abs(own - c))  # fmt: skip


def main(kernel, folder):
    causal = {"sees": see_before}
    for scales in ("tensor", "blocks"):
        for transposed in (True, False):
            check(kernel, folder, 4, 2, 5, 70, scales, transposed)
            check(kernel, folder, 1, 1, 70, 33, scales, transposed, "-DCAUSAL=true", **causal)
            check(kernel, folder, 2, 1, 5, 70, scales, transposed, "-DCAUSAL=true", dv=WIDER, **causal)
        check(kernel, folder, 1, 1, 1, 1, scales, True, "-DOUT=f16")
        check(kernel, folder, 2, 1, 67, 130, scales, False, "-DCAUSAL=true", "-DRAISED=0", **causal)
        for promote in (1, 3):
            check(kernel, folder, 1, 1, 3, 300, scales, True, f"-DPROMOTE={promote}")
        check_variants(os.path.dirname(kernel), folder, scales, scales == "tensor")
        for wide, transposed in (("bf16", True), ("f16", False)):
            check(kernel, folder, 4, 2, 5, 70, scales, transposed, f"-DTQ={wide}")
            check(kernel, folder, 2, 1, 67, 130, scales, transposed, f"-DTQ={wide}", "-DCAUSAL=true", **causal)
            check(kernel, folder, 1, 1, 1, 1, scales, transposed, f"-DTQ={wide}")
    for transposed, causal in ((True, {}), (False, {"sees": see_before})):
        check(kernel, folder, 4, 2, 67, 70, "heads", transposed, *(["-DCAUSAL=true"] if causal else []), **causal)
    check(kernel, folder, 4, 2, 5, 70, "heads", True, "-DTQ=bf16")
    check_variants(os.path.dirname(kernel), folder, "heads", True)


main(*sys.argv[1:])
