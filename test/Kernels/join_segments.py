# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear %t
"""States before segments of a sequence, of what each leaves and of sums of logarithms, near 0 and far from it, by join_segments.tile and
segment_sums.tile, on the interpreter and on the simulator, beside Python."""

import itertools
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402

SEGMENTS, HEADS, SHARED, ROWS, COLUMNS = 3, 2, 1, 64, 40
FIRSTS, PASTS, TOKENS, CHUNK = [0, 2, 4], [2, 4, 5], 300, 64


def join(left, sums, first, channels, reverse):
    """[S, H, K, V] in one list, by a sum of each segment and head, or of each channel too."""
    size = HEADS * ROWS * COLUMNS
    state, before = list(first) if first else [0.0] * size, [None] * SEGMENTS
    for s in reversed(range(SEGMENTS)) if reverse else range(SEGMENTS):
        before[s] = state
        of = lambda i: s * ROWS + i // COLUMNS % ROWS if channels else s * HEADS + i // (ROWS * COLUMNS)
        state = [math.exp(sums[of(i)]) * state[i] + left[s * size + i] for i in range(size)]
    return [x for each in before for x in each]


def check_joins(kernel, folder):
    left, first = draw(1, SEGMENTS, HEADS, ROWS, COLUMNS), draw(2, 1, HEADS, ROWS, COLUMNS)
    save(f"{folder}/left.npy", left, (SEGMENTS, HEADS, ROWS, COLUMNS))
    save(f"{folder}/first.npy", first, (1, HEADS, ROWS, COLUMNS))
    for channels, starts, reverse in itertools.product((False, True), repeat=3):
        shape = (SEGMENTS, SHARED, ROWS) if channels else (SEGMENTS, HEADS)
        sums = [-abs(x) ** 9 for x in draw(3, *shape)]
        sums[-1] = -1e4
        save(f"{folder}/sums.npy", sums, shape)
        options = [f"-D{name}={str(x).lower()}" for name, x in (("CHANNELS", channels), ("INITIAL", starts), ("REVERSE", reverse))]
        inputs = {"left": "left", "sums": "sums", **({"s0": "first"} if starts else {})}
        options += [word for name, file in inputs.items() for word in ("--input", f"{name}={folder}/{file}.npy")]
        for device in ("interp", "sim"):
            run(kernel, *options, "--output", f"before={folder}/before.npy", "--device", device)
            wanted = join(left, sums, first if starts else None, channels, reverse)
            compare(f"states before segments, {device}", load(f"{folder}/before.npy"), wanted, 1e-5)


def check_sums(kernel, folder):
    for name, numbers in (("firsts", FIRSTS), ("pasts", PASTS)):
        save_integers(f"{folder}/{name}.npy", numbers, "i32")
    parts = [range(CHUNK * first, min(CHUNK * past, TOKENS)) for first, past in zip(FIRSTS, PASTS)]
    decays, rates = [-0.01, -0.5], [-1.0, -0.25]
    gates, channels = draw(4, HEADS, TOKENS), draw(5, SHARED, TOKENS, ROWS)
    for name, values, shape in (
        ("log2_decay", decays, (HEADS,)), ("rates", rates, (HEADS,)), ("gates", gates, (1, HEADS, TOKENS)),
        ("g", channels, (1, SHARED, TOKENS, ROWS)),
    ):  # fmt: skip
        save(f"{folder}/{name}.npy", values, shape)
    by_head = lambda of: [of(h, part) for part in parts for h in range(HEADS)]
    for source, names, options, wanted in (
        ("powers", ["log2_decay"], ["--set", f"tokens={TOKENS}"], by_head(lambda h, part: math.log(2) * decays[h] * len(part))),
        ("steps", ["gates", "rates"], ["--pad-rows", "4"], by_head(lambda h, part: rates[h] * sum(gates[h * TOKENS + t] for t in part))),
        ("channels", ["g"], [f"-DDK={ROWS}"], [sum(channels[t * ROWS + k] for t in part) for part in parts for k in range(ROWS)]),
    ):  # fmt: skip
        inputs = [word for name in (*names, "firsts", "pasts") for word in ("--input", f"{name}={folder}/{name}.npy")]
        for device in ("interp", "sim"):
            run(kernel, f"-DOF={source}", *options, *inputs, "--output", f"sums={folder}/found.npy", "--device", device)
            compare(f"sums of {source}, {device}", load(f"{folder}/found.npy"), wanted, 1e-4)


def main(sources, folder):
    check_joins(f"{sources}/join_segments.tile", folder)
    check_sums(f"{sources}/segment_sums.tile", folder)


main(*sys.argv[1:])
