# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/attention_fwd.tile %t
"""Compares attention on the interpreter with the definition, over masks, head groups and awkward lengths."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save  # noqa: E402

SCALE = 0.125


def attention(q, k, v, heads, kv_heads, sq, sk, d, dv, causal):
    """Returns O and LSE of one batch as flat lists; q is [heads, sq, d], k and v are [kv_heads, sk, .]."""
    output, lse = [], []
    for h in range(heads):
        kv = h // (heads // kv_heads)
        for r in range(sq):
            row = q[(h * sq + r) * d : (h * sq + r + 1) * d]
            seen = max(0, min(sk, r + sk - sq + 1)) if causal else sk
            scores = [
                SCALE * sum(a * b for a, b in zip(row, k[(kv * sk + c) * d : (kv * sk + c + 1) * d])) for c in range(seen)
            ]
            top = max(scores, default=0)
            weights = [math.exp(s - top) for s in scores]
            total = sum(weights)
            lse.append(top + math.log(total) if scores else -math.inf)
            for j in range(dv):
                value = sum(w * v[(kv * sk + c) * dv + j] for c, w in enumerate(weights))
                output.append(value / total if scores else 0.0)
    return output, lse


def check(kernel, folder, heads, kv_heads, sq, sk, d, dv, causal, *defines, widths=None):
    what = f"H={heads} HK={kv_heads} SQ={sq} SK={sk} D={d} DV={dv} CAUSAL={causal} {' '.join(defines)}"
    tile_d, tile_dv = widths or (d, dv)
    arguments = [kernel, f"-DD={tile_d}", f"-DDV={tile_dv}", f"-DCAUSAL={str(causal).lower()}", *defines]
    arguments += ["--set", f"scale={SCALE}", "--precision", "exact"]
    tensors = []
    for seed, (name, shape) in enumerate({"q": (heads, sq, d), "k": (kv_heads, sk, d), "v": (kv_heads, sk, dv)}.items()):
        tensors.append(draw(seed, *shape))
        save(f"{folder}/{name}.npy", tensors[-1], (1, *shape))
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    run(*arguments, "--output", f"o={folder}/o.npy", "--output", f"lse={folder}/lse.npy")
    output, lse = attention(*tensors, heads, kv_heads, sq, sk, d, dv, causal)
    # O is stored in 16 bits (2^-9 for bf16); LSE in f32, with log2(e) rounded to f32.
    compare(f"{what}: O", load(f"{folder}/o.npy"), output, 4e-3)
    compare(f"{what}: LSE", load(f"{folder}/lse.npy"), lse, 1e-5)


def main(kernel, folder):
    small = ["-DBM=64", "-DBN=16"]
    check(kernel, folder, 1, 1, 1, 1, 64, 64, False)
    check(kernel, folder, 4, 2, 3, 5, 64, 64, True, *small)
    check(kernel, folder, 2, 1, 67, 33, 64, 64, True, *small)
    check(kernel, folder, 1, 1, 70, 50, 64, 96, False, *small)
    check(kernel, folder, 1, 1, 33, 130, 96, 64, True, "-DT=f16", *small)
    check(kernel, folder, 2, 2, 10, 16, 128, 128, False, "-DT=f16")
    check(kernel, folder, 2, 1, 9, 1, 192, 128, True)
    # Rows of several heads in a tile.
    check(kernel, folder, 8, 1, 3, 5, 64, 64, True, "-DHEADS=8", *small)
    check(kernel, folder, 8, 2, 17, 33, 64, 64, True, "-DHEADS=4", *small)
    check(kernel, folder, 16, 1, 1, 40, 64, 96, False, "-DHEADS=16", *small)
    check(kernel, folder, 4, 1, 35, 20, 64, 64, True, "-DHEADS=2", "-DT=f16", *small)
    # Head dimensions between the widths of tiles.
    padded = ["-DPADDED=true", *small]
    check(kernel, folder, 2, 1, 33, 20, 40, 40, True, *padded, widths=(64, 64))
    check(kernel, folder, 1, 1, 20, 33, 72, 40, False, "-DT=f16", *padded, widths=(96, 64))
    check(kernel, folder, 8, 1, 3, 20, 8, 120, True, "-DHEADS=8", *padded, widths=(64, 128))


main(*sys.argv[1:])
