# RUN: mkdir -p %t
# RUN: %python %s %t
"""Attention over caches in machine code, on the simulator: with lengths, pages of a step's rows and of fewer, parts and variants it gives
what the template gives for each sequence alone. NaN in all rows that no length reaches changes nothing."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402

D, SCALE, HEADS, KV_HEADS, SQ = 64, 0.125, 4, 2, 3
LENGTHS = [130, 0, 64, 5]


def attend(folder, q, k, v, length, masks, queries=SQ, own=()):
    """(O, LSE) of one sequence, by the template on the interpreter. `own` are words for the masks."""
    if not length:
        return [0.0] * (HEADS * queries * D), [-math.inf] * (HEADS * queries)
    words = []
    for name, values, heads, rows in (("q", q, HEADS, queries), ("k", k, KV_HEADS, length), ("v", v, KV_HEADS, length)):
        save(f"{folder}/{name}.npy", values, (1, heads, rows, D))
        words += ["--input", f"{name}={folder}/{name}.npy"]
    source = f"{folder}/one.tile"
    with open(source, "w") as file:
        file.write("".join(f'$import "{name}.tile"\n' for name in masks or ["attention"]))
    outputs = [word for name in ("o", "lse") for word in ("--output", f"{name}={folder}/{name}.npy")]
    run(source, f"-DD={D}", "-DBM=64", "--set", f"scale={SCALE}", *own, *words, *outputs)
    return load(f"{folder}/o.npy"), load(f"{folder}/lse.npy")


def make_table(rows):
    """How many pages a sequence has at most, and all; and a table of them, behind the last page of a sequence with no page's number."""
    most = -(-max(LENGTHS) // rows)
    numbers, table = iter(range(len(LENGTHS) * most, 0, -1)), []
    for length in LENGTHS:
        used = -(-length // rows)
        table.append([next(numbers) for _ in range(used)] + [-777777] * (most - used))
    return most, len(LENGTHS) * most + 1, table


def make_cache(seed, rows, pages, table):
    """[HK, PAGES, ROWS, D] with NaN, and K or V of each sequence, [HK, length, D]."""
    cache, sequences = [math.nan] * (KV_HEADS * pages * rows * D), []
    for b, length in enumerate(LENGTHS):
        own = draw(seed + b, KV_HEADS, length, D) if length else []
        for head in range(KV_HEADS):
            for key in range(length):
                begin = ((head * pages + table[b][key // rows]) * rows + key % rows) * D
                cache[begin : begin + D] = own[(head * length + key) * D : (head * length + key + 1) * D]
        sequences.append(own)
    return cache, sequences


def make_packed(seed, rows, slots):
    """The same with keys one behind the other, of which those of sequence b begin at slots[b]: [HK, 1, rows, D]."""
    cache, sequences = [math.nan] * (KV_HEADS * rows * D), []
    for b, length in enumerate(LENGTHS):
        own = draw(seed + b, KV_HEADS, length, D) if length else []
        for head in range(KV_HEADS):
            begin = (head * rows + slots[b]) * D
            cache[begin : begin + length * D] = own[head * length * D : (head + 1) * length * D]
        sequences.append(own)
    return cache, sequences


def save_caches(folder, caches, pages, rows, units):
    """The words that name them. With `units` elements of K and V have 8 bits, and stand for so much."""
    words = ["-DCACHED=f8E4M3FN"] if units else []
    for name, (cache, _), unit in zip("kv", caches, units or (1, 1)):
        save(f"{folder}/{name}.npy", [x / unit for x in cache], (KV_HEADS, pages, rows, D))
        words += ["--input", f"{name}={folder}/{name}.npy"]
        if units:
            save(f"{folder}/{name}_descale.npy", [unit] * (len(LENGTHS) * KV_HEADS), (len(LENGTHS), KV_HEADS, 1))
            words += ["--input", f"{name}_descale={folder}/{name}_descale.npy"]
    return words


def check(folder, rows, flags, masks, share=0, units=None, run_rows=1, shares=0, tile=64, more=(), parts=0, own=()):
    """Against the template for each sequence alone, of `parts`, or of as many as there is room for. `run_rows` are copied at once, and a
    multiprocessor has `shares`. `tile` rows are those of a tile, of which fewer than 64 are columns of the products."""
    most, pages, table = make_table(rows)
    caches = [make_cache(seed, rows, pages, table) for seed in (10, 20)]
    q = [draw(30 + b, HEADS, SQ, D) for b in range(len(LENGTHS))]
    if "SCALED" in flags:
        # Each row has a factor of its own.
        q = [[x * 2.0**12 if i < SQ * D else x for i, x in enumerate(own)] for own in q]
    expected = [attend(folder, q[b], caches[0][1][b], caches[1][1][b], length, masks, own=own) for b, length in enumerate(LENGTHS)]

    save(f"{folder}/q.npy", [x for own in q for x in own], (len(LENGTHS), HEADS, SQ, D))
    words = ["--input", f"q={folder}/q.npy", *save_caches(folder, caches, pages, rows, units)]
    integers = {"lengths": (LENGTHS, [len(LENGTHS)])}
    if "PAGED" in flags:
        integers["pages"] = [entry for own in table for entry in own], [len(LENGTHS), most]
    else:
        integers["slots"] = [own[0] if own[0] > 0 else 0 for own in table], [len(LENGTHS)]
    for name, (values, shape) in integers.items():
        save_integers(f"{folder}/{name}.npy", values, "i32", shape)
        words += ["--input", f"{name}={folder}/{name}.npy"]
    parts = parts or (-(-most * rows // share) if share else 1)
    words += ["--shape", f"B={parts * len(LENGTHS)}", *(["--set", f"share={share}"] if share else [])]
    source = f"{folder}/cached.tile"
    with open(source, "w") as file:
        file.write("".join(f'$import "{name}.tile"\n' for name in ["attention_cache", *masks]))
    outputs = [word for name in ("o", "lse") for word in ("--output", f"{name}={folder}/{name}.npy")]
    defines = [f"-DD={D}", f"-DBM={tile}", "-DBN=64", "-DHEADS=2", *(f"-D{flag}=true" for flag in flags)]
    defines += [*more, *([f"-DRUN={run_rows}"] if run_rows > 1 else [])]
    defines += [f"-DSHARES={shares}"] if shares else []
    run(source, *defines, *words, *own, *outputs, "--set", f"scale={SCALE}", "--device", "sim", "--seeds", "1")
    sums = load(f"{folder}/lse.npy")
    # The first sequence has keys in all parts: they are even.
    each = len(sums) // parts
    if share and not own and LENGTHS[0] > (parts - 1) * share and any(math.isinf(sums[part * each + SQ - 1]) for part in range(parts)):
        raise SystemExit(f"a part of {parts} has no key, pages of {rows} rows, {flags}, {masks}")
    found = join(load(f"{folder}/o.npy"), sums, parts)
    what = f"pages of {rows} rows, {flags}, {masks}"
    compare(f"O, {what}", found[0], [x for own in expected for x in own[0]], 2e-2)
    compare(f"LSE, {what}", found[1], [x for own in expected for x in own[1]], 1e-3)


def check_tokens(folder, rows, flags, heads, units=None):
    """Queries of all sequences one behind the other: of 3, 0, 2 and 70 queries, and padding. So are their keys without `rows`, with
    NaN between them. Where tiles are as many as all fill, queries of others stand before them, more than a tile has."""
    counts, total, tile = [3, 0, 2, 70], 80, 64 // heads
    first = tile + 5 if "UNEVEN" in flags else 0
    starts, between, total = [first + start for start in (0, 3, 3, 5, 75)], 9, first + total
    if rows:
        most, pages, table = make_table(rows)
        caches = [make_cache(seed, rows, pages, table) for seed in (10, 20)]
        places = ("pages", [entry for own in table for entry in own], [len(LENGTHS), most])
    else:
        pages, slots = 1, [sum(LENGTHS[:b]) + between * (b + 1) for b in range(len(LENGTHS))]
        rows = slots[-1] + LENGTHS[-1] + between
        caches = [make_packed(seed, rows, slots) for seed in (10, 20)]
        places = ("slots", slots, [len(LENGTHS)])
    q, o, lse = draw(40, HEADS, total, D), {}, {}
    for b, (count, length) in enumerate(zip(counts, LENGTHS)):
        own = []
        for head in range(HEADS):
            own += q[(head * total + starts[b]) * D : (head * total + starts[b + 1]) * D]
        o[b], lse[b] = (
            attend(folder, own, caches[0][1][b], caches[1][1][b], length, ["variants/causal"], count) if count else ([], [])
        )

    save(f"{folder}/q.npy", q, (HEADS, total, D))
    tiles = f"ROOM={total + len(LENGTHS) * tile}" if first else f"SQ={max(counts)}"
    words = ["--shape", f"B={len(LENGTHS)},{tiles}", "--input", f"q={folder}/q.npy"]
    words += save_caches(folder, caches, pages, rows, units)
    for name, values, shape in (
        ("lengths", LENGTHS, [len(LENGTHS)]),
        places,
        ("query_starts", starts, [len(starts)]),
    ):
        save_integers(f"{folder}/{name}.npy", values, "i32", shape)
        words += ["--input", f"{name}={folder}/{name}.npy"]
    source = f"{folder}/tokens.tile"
    with open(source, "w") as file:
        file.write('$import "attention_cache.tile"\n$import "variants/causal.tile"\n')
    outputs = [word for name in ("o", "sums") for word in ("--output", f"{name}={folder}/{name}.npy")]
    defines = [f"-DD={D}", "-DBM=64", "-DBN=64", f"-DHEADS={heads}", *(f"-D{flag}=true" for flag in ["TOKENS", *flags])]
    run(source, *defines, *words, *outputs, "--set", f"scale={SCALE}", "--device", "sim", "--seeds", "1")
    found_o, found_lse = load(f"{folder}/o.npy"), load(f"{folder}/sums.npy")
    for b, count in enumerate(counts):
        for head in range(HEADS):
            begin, end = head * total + starts[b], head * total + starts[b + 1]
            what = f"sequence {b}, head {head}, {rows} rows, {flags}"
            compare(f"O of {what}", found_o[begin * D : end * D], o[b][head * count * D : (head + 1) * count * D], 2e-2)
            compare(f"LSE of {what}", found_lse[begin:end], lse[b][head * count : (head + 1) * count], 1e-3)


def join(o, lse, parts):
    """(O, LSE) of parts one behind the other."""
    rows, outs, sums = len(LENGTHS) * HEADS * SQ, [], []
    for row in range(rows):
        own = [lse[part * rows + row] for part in range(parts)]
        largest = max(own)
        weights = [math.exp(x - largest) if x > -math.inf else 0.0 for x in own]
        total = sum(weights)
        sums.append(largest + math.log(total) if total else -math.inf)
        begins = [(part * rows + row) * D for part in range(parts)]
        outs += [sum(w * o[begin + i] for w, begin in zip(weights, begins)) / (total or 1.0) for i in range(D)]
    return outs, sums


def main(folder):
    causal, full = ["variants/causal"], []
    check_tokens(folder, 64, ["PAGED"], 1)
    check_tokens(folder, 16, ["PAGED", "GATHERED"], 2)
    check_tokens(folder, 64, ["PAGED", "UPWARDS"], 2)
    check_tokens(folder, 64, ["PAGED", "UNEVEN"], 1)
    check_tokens(folder, 16, ["PAGED", "GATHERED", "UNEVEN"], 2)
    check_tokens(folder, 0, ["GATHERED", "UNEVEN"], 2)
    check_tokens(folder, 0, ["GATHERED", "INVARIANT", "UNEVEN"], 2)
    check_tokens(folder, 0, ["GATHERED"], 1, units=(0.5, 2.0))
    check(folder, 192, [], full)
    check(folder, 64, ["PAGED"], causal)
    check(folder, 128, ["PAGED", "PARTS"], causal, share=64)
    check(folder, 128, ["PAGED", "PARTS"], causal, share=64, parts=2)
    check(folder, 64, ["PAGED"], causal, shares=1)
    check(folder, 192, [], ["variants/sink"], shares=2)
    check(folder, 16, ["PAGED", "GATHERED", "ONE_RUN"], full, run_rows=16, shares=1)
    check(folder, 16, ["PAGED", "GATHERED"], causal)
    check(folder, 1, ["PAGED", "GATHERED"], causal)
    check(folder, 7, ["PAGED", "GATHERED"], full, more=["-DT=f16"])
    check(folder, 24, ["PAGED", "GATHERED", "PARTS"], full, share=128)
    check(folder, 24, ["PAGED", "GATHERED"], causal, run_rows=8)
    check(folder, 200, ["GATHERED", "PARTS", "INVARIANT"], causal, share=128)
    check(folder, 16, ["PAGED", "GATHERED"], causal, units=(0.5, 2.0))
    check(folder, 24, ["PAGED", "GATHERED", "PARTS", "SCALED"], full, share=128, units=(0.25, 0.5))
    check(folder, 200, ["GATHERED", "PARTS", "INVARIANT"], full, share=128, units=(0.25, 0.5))
    check(folder, 16, ["PAGED", "GATHERED", "PARTS", "INVARIANT"], causal, share=128, units=(0.5, 2.0), run_rows=16)
    check(folder, 192, ["SCALED", "HALF_V"], ["variants/sink"], units=(0.5, 2.0), tile=16)
    check(folder, 16, ["PAGED", "GATHERED", "PARTS"], causal, share=128, units=(0.25, 0.5), run_rows=16, tile=32)
    check(folder, 64, ["PAGED"], causal, tile=16)
    # Blocks of a cluster have parts of the keys, some of them none.
    check(folder, 192, [], full, tile=16, more=["-DCLUSTER=2"])
    check(folder, 64, ["PAGED"], causal, tile=16, more=["-DCLUSTER=4"])
    check(folder, 128, ["PAGED"], ["variants/sink"], more=["-DCLUSTER=8"])
    check(folder, 16, ["PAGED", "GATHERED"], causal, run_rows=16, more=["-DCLUSTER=2"])
    # More steps than those of which lanes find the runs at once.
    LENGTHS[0] = 470
    check(folder, 8, ["PAGED", "GATHERED", "ONE_RUN"], causal, run_rows=8)
    check(folder, 48, ["PAGED", "GATHERED", "PARTS"], full, share=256, run_rows=16)
    check(folder, 48, ["PAGED", "GATHERED", "PARTS"], full, share=64, run_rows=16, parts=3)
    check(folder, 512, ["PARTS"], full, share=128, parts=2, tile=16)
    # Parts begin where a window, or a chunk, does.
    window = ["--set", "left=200", "--set", "right=0"]
    check(folder, 128, ["PAGED", "PARTS"], ["variants/window"], share=64, parts=3, own=window)
    check(folder, 128, ["PAGED"], ["variants/window"], tile=16, own=window, more=["-DCLUSTER=2"])
    check(folder, 48, ["PAGED", "GATHERED", "PARTS"], ["variants/window"], share=64, run_rows=16, parts=2, own=window)
    check(folder, 512, ["PARTS", "GATHERED", "INVARIANT"], ["variants/window"], share=128, own=window)
    check(folder, 512, ["PARTS"], ["variants/chunks"], share=64, parts=3, own=["-DCHUNK_KEYS=300"])


main(*sys.argv[1:])
