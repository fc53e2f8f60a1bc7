# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear %t
"""Compares where chunks of packed sequences lie by tables.tile, and gates in rows of chunks and back by gates.tile, on the interpreter and
the simulator, with what Python finds, sums of parts and of heads by part_sums.tile and head_sums.tile, and rows that become 0 by
outside.tile."""

import itertools
import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402

C = 64


def find_tables(begins, tokens):
    """Tables of sequences and of chunks, by their names."""
    firsts, pasts, starts, ends = [], [], [], []
    for begin, end in zip(begins, begins[1:]):
        firsts.append(len(starts))
        own = range(begin, max(end, begin + 1), C)
        starts += own
        ends += [end] * len(own)
        pasts.append(len(starts))
    while len(starts) < tokens // C + len(firsts):
        starts.append(starts[-1] + C)
        ends.append(ends[-1])
    return {"firsts": firsts, "pasts": pasts, "starts": starts, "ends": ends}


def check_tables(kernel, folder, begins, tokens):
    expected = find_tables(begins, tokens)
    shape = ",".join(f"{name}={count}" for name, count in (("S", len(expected["firsts"])), ("N", len(expected["starts"]))))
    outputs = [word for name in expected for word in ("--output", f"{name}={folder}/{name}.npy")]
    for kind in ("i32", "i64"):
        save_integers(f"{folder}/begins.npy", begins, kind)
        for device in ("interp", "sim"):
            run(kernel, f"-DBEGIN={kind}", "--input", f"begins={folder}/begins.npy", "--shape", shape, *outputs, "--device", device)
            for name, values in expected.items():
                found = [round(x) for x in load(f"{folder}/{name}.npy")]
                assert found == values, (device, kind, begins, name, found, values)
    return expected


def check_gates(kernel, folder, begins, tokens, heads):
    """Rows of chunks of numbers of tokens, and tokens of these again, of which those of no sequence stay 0."""
    tables = find_tables(begins, tokens)
    starts, ends = tables["starts"], tables["ends"]
    for name in ("starts", "ends"):
        save_integers(f"{folder}/{name}.npy", tables[name], "i32")
    numbers, count = draw(1, tokens, heads), C * len(starts)
    save(f"{folder}/tokens.npy", numbers, (1, tokens, heads))
    places = [start + i if start + i < end else None for start, end in zip(starts, ends) for i in range(C)]
    rows = [0.0 if place is None else numbers[place * heads + h] for h in range(heads) for place in places]
    save(f"{folder}/zeros.npy", [0.0] * len(numbers), (1, tokens, heads))
    own = [x if begins[0] <= i // heads < begins[-1] else 0.0 for i, x in enumerate(numbers)]
    given = ["--input", f"starts={folder}/starts.npy", "--input", f"ends={folder}/ends.npy", "--shape", f"L={tokens},H={heads},R={count}"]
    back = ["--input", f"rows={folder}/rows.npy", "--input", f"tokens={folder}/zeros.npy", "--output", f"tokens={folder}/again.npy"]
    for device in ("interp", "sim"):
        of_tokens = ["--input", f"tokens={folder}/tokens.npy", "--device", device]
        run(kernel, *given, "-DPACKED=true", *of_tokens, "--output", f"rows={folder}/rows.npy")
        assert list(load(f"{folder}/rows.npy")) == rows, (device, begins)
        more = ["--input", f"more={folder}/tokens.npy", "--output", f"more_rows={folder}/more.npy", "--output", f"rows={folder}/dense.npy"]
        run(kernel, "-DMORE=true", *of_tokens, *more, "--pad-rows", "4")
        dense = [numbers[t * heads + h] for h in range(heads) for t in range(tokens)]
        assert list(load(f"{folder}/dense.npy")) == list(load(f"{folder}/more.npy")) == dense, device
        run(kernel, *given, "-DPACKED=true", "-DBACK=true", *back, "--device", device)
        assert list(load(f"{folder}/again.npy")) == own, (device, begins)


def check_sums(kernel, folder):
    """Of 3 times 2 parts of 21 rows each, of each width."""
    for width in (64, 128, 192, 256):
        count = 21 * width
        parts = draw(2, 3, 2, count)
        save(f"{folder}/parts.npy", parts, (3, 2, 21, width))
        expected = [a + b for g in range(0, 6, 2) for a, b in zip(*(parts[count * i : count * (i + 1)] for i in (g, g + 1)))]
        for device, (form, error) in itertools.product(("interp", "sim"), ((["-DT=f32"], 1e-6), (["-DT=bf16", "-DFROM=f32"], 4e-3))):
            given = "--input", f"parts={folder}/parts.npy", "--output", f"sums={folder}/sums.npy", "--device", device, f"-DD={width}"
            run(kernel, *given, *form)
            compare("sums", load(f"{folder}/sums.npy"), expected, error)
    for width, element in itertools.product((64, 128, 192, 256), ("f16", "bf16")):  # Heads of 16 bits, which threads move 8 at a time.
        run(kernel, f"-DD={width}", f"-DFROM={element}", f"-DT={element}", "--level", "scheduled", "--shape", "G=1,P=2,R=5")


def check_head_sums(kernel, folder):
    batch, heads, chunks = 2, 3, 150
    parts = draw(3, batch, heads, chunks)
    save(f"{folder}/parts.npy", parts, (batch, heads, chunks))
    starts = [[chunks * (heads * b + h) for b in range(batch)] for h in range(heads)]
    expected = [sum(sum(parts[start : start + chunks]) for start in own) for own in starts]
    for device in ("interp", "sim"):
        run(kernel, "--input", f"parts={folder}/parts.npy", "--output", f"sums={folder}/sums.npy", "--device", device)
        compare("sums of heads", load(f"{folder}/sums.npy"), expected, 1e-5)


def check_outside(kernel, folder, begins, tokens, width=520):
    """Rows that no sequence has become 0, and nothing is stored to others, which hold NaN here."""
    save_integers(f"{folder}/begins.npy", begins, "i32")
    save_integers(f"{folder}/firsts.npy", [0] * (len(begins) - 1), "i32")
    expected = [begins[0] <= t < begins[-1] for t in range(tokens) for _ in range(width)]
    inputs = [word for name in ("begins", "firsts") for word in ("--input", f"{name}={folder}/{name}.npy")]
    outputs = [word for name in ("rows", "more") for word in ("--output", f"{name}={folder}/{name}.npy")]
    for device in ("interp", "sim"):
        run(kernel, *inputs, *outputs, "--shape", f"L={tokens},W={width}", "-DMORE=true", "-DT=f32", "--device", device)
        for name in ("rows", "more"):
            found = load(f"{folder}/{name}.npy")
            assert [math.isnan(x) or x != 0 for x in found] == expected, (device, begins, name)


def main(sources, folder):
    for begins, tokens in (
        ([0, 0], 1), ([0, 1], 1), ([3, 67, 67, 70, 198, 199, 199], 210), (list(range(0, 131)), 130),
        ([0, *sorted(random.Random(1).choices(range(3000), k=66))], 3000),
    ):  # fmt: skip
        check_tables(f"{sources}/tables.tile", folder, begins, tokens)
    check_gates(f"{sources}/gates.tile", folder, [3, 67, 67, 70, 198, 199, 199], 210, 5)
    check_gates(f"{sources}/gates.tile", folder, [0, 0, 65], 65, 9)
    check_sums(f"{sources}/part_sums.tile", folder)
    check_head_sums(f"{sources}/head_sums.tile", folder)
    for begins, tokens in (([3, 67, 70], 140), ([0, 65], 65), ([5, 5], 70)):
        check_outside(f"{sources}/outside.tile", folder, begins, tokens)


main(*sys.argv[1:])
