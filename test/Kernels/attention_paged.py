# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/attention_paged.tile %t
"""Compares attention over pages on the interpreter with the definition, over lengths, pages, head groups and masks. The
cache is NaN wherever no key is, and the table names pages that are not there where no page is."""

import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402

SCALE = 0.125


def make_cache(keys, lengths, order, page, kv_heads, d):
    """The keys [batch][head][key][d] in the pages of `order`, as [kv_heads, rows, d]."""
    rows = (max(order) + 1) * page
    cache = [math.nan] * (kv_heads * rows * d)
    next_page = iter(order)
    for own, length in zip(keys, lengths):
        pages = [next(next_page) for _ in range(-(-length // page))]
        for h in range(kv_heads):
            for j in range(length):
                place = (h * rows + pages[j // page] * page + j % page) * d
                cache[place : place + d] = own[h][j]
    return cache, rows


def make_table(lengths, order, page):
    width = max(1, max(-(-length // page) for length in lengths)) + 1
    next_page, table = iter(order), []
    for length in lengths:
        pages = [next(next_page) for _ in range(-(-length // page))]
        table += pages + [-7 if i % 2 else 2**30 for i in range(width - len(pages))]
    return table, width


def attention(q, k, v, causal):
    """Rows of O, and LSE, of one head: q is [sq][d], k and v are [keys][.]."""
    output, lse = [], []
    for r, row in enumerate(q):
        seen = max(0, min(len(k), r + len(k) - len(q) + 1)) if causal else len(k)
        scores = [SCALE * sum(a * b for a, b in zip(row, key)) for key in k[:seen]]
        top = max(scores, default=0)
        weights = [math.exp(s - top) for s in scores]
        total = sum(weights)
        lse.append(top + math.log(total) if scores else -math.inf)
        for j in range(len(v[0]) if v else 0):
            output.append(sum(w * value[j] for w, value in zip(weights, v)) / total if scores else 0.0)
    return output, lse


def split(values, *shape):
    """Nested lists of `shape` of a flat one."""
    if len(shape) == 1:
        return values
    step = len(values) // shape[0]
    return [split(values[i * step : (i + 1) * step], *shape[1:]) for i in range(shape[0])]


def check(kernel, folder, heads, kv_heads, sq, lengths, page, d, dv, causal, *defines):
    batch, most = len(lengths), max(lengths)
    q = draw(0, batch, heads, sq, d)
    keys, values = (split(draw(seed, batch, kv_heads, most, width), batch, kv_heads, most, width)
                    for seed, width in ((1, d), (2, dv)))  # fmt: skip
    keys, values = ([[head[:n] for head in own] for own, n in zip(all_, lengths)] for all_ in (keys, values))
    count = sum(-(-length // page) for length in lengths)
    order = list(range(count + 2))
    random.Random(count).shuffle(order)
    k, rows = make_cache(keys, lengths, order, page, kv_heads, d)
    v, _ = make_cache(values, lengths, order, page, kv_heads, dv)
    table, width = make_table(lengths, order, page)
    save(f"{folder}/q.npy", q, (batch, heads, sq, d))
    save(f"{folder}/k.npy", k, (kv_heads, rows, d))
    save(f"{folder}/v.npy", v, (kv_heads, rows, dv))
    save_integers(f"{folder}/pages.npy", table, "i32", (batch, width))
    save_integers(f"{folder}/lengths.npy", lengths, "i32")
    output, lse = [], []
    for b, own in enumerate(split(q, batch, heads, sq, d)):
        for h, rows_of_head in enumerate(own):
            kv = h // (heads // kv_heads)
            o, l = attention(rows_of_head, keys[b][kv], values[b][kv], causal)
            output += o or [0.0] * (sq * dv)
            lse += l
    what = f"H={heads} HK={kv_heads} SQ={sq} {lengths} PAGE={page} D={d} DV={dv} CAUSAL={causal} {' '.join(defines)}"
    arguments = [kernel, f"-DD={d}", f"-DDV={dv}", f"-DPAGE={page}", f"-DCAUSAL={str(causal).lower()}", *defines]
    for name in ("q", "k", "v", "pages", "lengths"):
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    run(*arguments, "--set", f"scale={SCALE}", "--precision", "exact",
        "--output", f"o={folder}/o.npy", "--output", f"lse={folder}/lse.npy")  # fmt: skip
    compare(f"{what}: O", load(f"{folder}/o.npy"), output, 4e-3)
    compare(f"{what}: LSE", load(f"{folder}/lse.npy"), lse, 1e-5)


def main(kernel, folder):
    small = ["-DBM=64", "-DBN=32"]
    check(kernel, folder, 1, 1, 1, [1], 1, 64, 64, True, *small)
    check(kernel, folder, 2, 1, 1, [33, 5, 64], 16, 64, 64, True, *small)
    check(kernel, folder, 2, 2, 5, [40, 3, 0], 7, 64, 96, False, *small)
    check(kernel, folder, 1, 1, 67, [70, 20], 5, 64, 64, True, "-DT=f16", *small)
    check(kernel, folder, 8, 2, 3, [50, 1], 64, 64, 64, True, "-DHEADS=4", *small)


main(*sys.argv[1:])
