# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/attention_variants.tile %t
"""Compares attention with a soft cap, ALiBi and a window on the interpreter with the definition."""

import itertools
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

SCALE, D = 0.125, 64


def limits(mask, left, right, own, sk):
    """The columns that a row sees, whose own column is `own`: from the first to before the last."""
    if mask == "none":
        return 0, sk
    before = own if mask == "causal" or left < 0 else left
    after = 0 if mask == "causal" else right if right >= 0 else sk + abs(own)
    return max(0, own - before), max(0, min(sk, own + after + 1))


def attention(q, k, v, slopes, shape, mask, left, right, cap):
    """Returns O and LSE of one batch as flat lists; q is [heads, sq, D], k and v are [kv_heads, sk, D]."""
    heads, kv_heads, sq, sk = shape
    output, lse = [], []
    for h in range(heads):
        kv = h // (heads // kv_heads) * sk
        for r in range(sq):
            row, own = q[(h * sq + r) * D : (h * sq + r + 1) * D], r + sk - sq
            columns = range(*limits(mask, left, right, own, sk))
            scores = [SCALE * sum(a * b for a, b in zip(row, k[(kv + c) * D : (kv + c + 1) * D])) for c in columns]
            if cap:
                scores = [cap * math.tanh(s / cap) for s in scores]
            if slopes:
                scores = [s - slopes[h] * abs(own - c) for s, c in zip(scores, columns)]
            top = max(scores, default=0)
            weights = [math.exp(s - top) for s in scores]
            total = sum(weights)
            lse.append(top + math.log(total) if scores else -math.inf)
            for j in range(D):
                value = sum(w * v[(kv + c) * D + j] for c, w in zip(columns, weights))
                output.append(value / total if scores else 0.0)
    return output, lse


def check(kernel, folder, shape, mask="none", left=-1, right=-1, cap=None, alibi=False, defines=(), last=1, softcap="exact"):
    """With `last` the last key is so many times as large."""
    heads, kv_heads, sq, sk = shape
    what = f"H={heads} HK={kv_heads} SQ={sq} SK={sk} {mask} {left} {right} {softcap} cap {cap} alibi {alibi} {defines} {last}"
    arguments = [kernel, f"-DD={D}", "-DBM=64", "-DBN=16", f"-DMASK={mask}", "--precision", "exact", *defines]
    arguments += ["--set", f"scale={SCALE}"]
    if mask == "window":
        arguments += ["--set", f"left={left}", "--set", f"right={right}"]
    if cap:
        arguments += [f"-DSOFTCAP={softcap}", "--set", f"cap={cap}"]
    inputs = {"q": (1, heads, sq, D), "k": (1, kv_heads, sk, D), "v": (1, kv_heads, sk, D)}
    if alibi:
        arguments += ["-DALIBI=true"]
        inputs["slopes"] = (heads,)
    tensors = {name: draw(seed, *shape) for seed, (name, shape) in enumerate(inputs.items())}
    for head in range(kv_heads):
        begin = (head * sk + sk - 1) * D
        tensors["k"][begin : begin + D] = [last * value for value in tensors["k"][begin : begin + D]]
    for name, values in tensors.items():
        save(f"{folder}/{name}.npy", values, inputs[name])
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    run(*arguments, "--output", f"o={folder}/o.npy", "--output", f"lse={folder}/lse.npy")
    q, k, v, slopes = (tensors.get(name) for name in ("q", "k", "v", "slopes"))
    output, lse = attention(q, k, v, slopes, shape, mask, left, right, cap)
    # O is stored in 16 bits (2^-9 for bf16); LSE in f32, with log2(e) and ln(2) rounded to f32. An approximate soft cap
    # is right to 2^-11.
    approximate = 2**-11 if cap and softcap == "approx" else 0
    compare(f"{what}: O", load(f"{folder}/o.npy"), output, 4e-3 + 4 * approximate)
    compare(f"{what}: LSE", load(f"{folder}/lse.npy"), lse, 1e-5 + approximate)


def check_alone(kernel, folder, sq, sk, *arguments):
    """Rows that see one key give its V, without an error, in the kernel's own precision too."""
    shapes = {"q": (1, 1, sq, D), "k": (1, 1, sk, D), "v": (1, 1, sk, D)}
    tensors = {name: draw(seed, *shape) for seed, (name, shape) in enumerate(shapes.items())}
    # Seven bits, which both types hold.
    tensors["v"] = [max(-7.0, min(7.0, round(16 * value) / 16)) for value in tensors["v"]]
    arguments = [kernel, f"-DD={D}", "-DBM=64", "-DBN=16", "--set", f"scale={SCALE}", *arguments]
    for name, values in tensors.items():
        save(f"{folder}/{name}.npy", values, shapes[name])
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    run(*arguments, "--precision", "kernel", "--output", f"o={folder}/o.npy")
    own = [r + sk - sq for r in range(sq)]
    expected = [value for r in own for value in tensors["v"][r * D : (r + 1) * D]]
    compare(f"one key, {arguments[4:]}: O", load(f"{folder}/o.npy"), expected, 1e-9)


def main(kernel, folder):
    check(kernel, folder, (2, 1, 67, 50))
    check(kernel, folder, (2, 2, 67, 50), "causal")
    # Windows within a block, of several blocks, of everything, of the row's own key, and of one side.
    for left, right in ((0, 0), (3, 5), (40, 0), (0, 20), (1000, 1000), (-1, 2), (7, -1), (-1, -1), (2**31 - 1, 5), (7, 2**31 - 1)):
        check(kernel, folder, (2, 1, 67, 90), "window", left, right)
    # More queries than keys: rows at the top see nothing.
    check(kernel, folder, (1, 1, 90, 33), "window", 10, 3)
    check(kernel, folder, (2, 1, 1, 70), "window", 20, 0)
    for dtype in ("bf16", "f16"):
        own = ("-DMASK=window", "--set", "left=0", "--set", "right=0", f"-DT={dtype}")
        cap = ("-DSOFTCAP=exact", "--set", "cap=30")
        check_alone(kernel, folder, 40, 50, *own)
        check_alone(kernel, folder, 40, 50, *own, *cap)
        check_alone(kernel, folder, 1, 1, "-DREFERENCE=zero", f"-DT={dtype}")
        check_alone(kernel, folder, 1, 1, "-DMASK=causal", *cap, f"-DT={dtype}")
    # Scores below the cap, almost and more than as large, and caps that bound nothing.
    for cap in (30.0, 6.0, 4.5, 1.5, 0.75, 0.01, 1e3, 1e5, 1e30):
        for softcap in ("exact", "approx"):
            check(kernel, folder, (2, 1, 30, 50), cap=cap, softcap=softcap)
    check(kernel, folder, (4, 2, 30, 50), alibi=True)
    check(kernel, folder, (2, 1, 70, 50), "causal", alibi=True)
    check(kernel, folder, (2, 1, 70, 60), "window", 20, 9, cap=2.0, alibi=True)
    # Whatever the exponents refer to first: scores of the usual size, and up to 1000 with the last key. Half of the slopes
    # that are drawn are negative, so that the scores grow with the distance.
    for reference, dtype in itertools.product(("zero", "first", "unbiased", "diagonal"), ("bf16", "f16")):
        defines = (f"-DREFERENCE={reference}", f"-DT={dtype}")
        for last in (1, 64):
            check(kernel, folder, (1, 1, 40, 90), defines=defines, last=last)
            check(kernel, folder, (1, 1, 70, 50), "causal", defines=defines, last=last)
            check(kernel, folder, (1, 1, 67, 50), "window", 20, 3, defines=defines, last=last)
            check(kernel, folder, (2, 1, 40, 70), alibi=True, defines=defines, last=last)
            check(kernel, folder, (1, 1, 40, 70), "causal", cap=80.0, defines=defines, last=last)


main(*sys.argv[1:])
