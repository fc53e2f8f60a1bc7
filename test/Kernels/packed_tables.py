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


def make_step(x, bias, made, least, most):
    """The step of a number, and what it changes by."""
    x += bias
    step, slope = (math.log1p(math.exp(min(x, 700))), 1 / (1 + math.exp(-x))) if made == "softplus" and x <= 20 else (x, 1.0)
    return min(max(step, least), most), slope if least <= step <= most else 0.0


def check_steps(kernel, folder, made, limits, begins, tokens):
    """Steps of numbers of either sign, in rows of chunks where there are sequences, where those of no token are 0 and tokens that no sequence
    has are NaN, and what they change by. Where there are none logarithms of factors, of numbers of sequences of 64 bits."""
    heads, rates, biases = 3, [-0.5, -1.0, -2.0], [0.5, 0.0, -3.0]
    values = [random.Random(i).choice((-40.0, -8.5, -1.25, 0.0, 0.75, 4.0, 19.5, 20.5, 33.0)) for i in range(tokens * heads)]
    if begins:
        values = [x if begins[0] <= i // heads < begins[-1] else math.nan for i, x in enumerate(values)]
    numbers = [x // 7 % 3 * (1 << 31) // 2 for x in range(tokens)]
    given = [f"-DMADE={made}", "-DBIASED=true", "-DSLOPES=true", "--set", f"least={limits[0]}", "--set", f"most={limits[1]}"]
    names = ["rows", "slopes"]
    save(f"{folder}/tokens.npy", values, (1, tokens, heads))
    save(f"{folder}/bias.npy", biases, (heads,))
    inputs = ["tokens", "bias"]
    places = range(tokens)
    if begins:
        tables = find_tables(begins, tokens)
        starts, ends = tables["starts"], tables["ends"]
        for name in ("starts", "ends"):
            save_integers(f"{folder}/{name}.npy", tables[name], "i32")
        inputs += ["starts", "ends"]
        given += ["-DPACKED=true", "--shape", f"R={C * len(starts)}"]
        places = [start + i if start + i < end else None for start, end in zip(starts, ends) for i in range(C)]
    else:
        given += ["-DRESETS=true", "-DNUMBER=i64", "--pad-rows", "4"]
        save_integers(f"{folder}/numbers.npy", numbers, "i64", (1, tokens))
        save(f"{folder}/rates.npy", rates, (heads,))
        names, inputs = [*names, "logs"], [*inputs, "numbers", "rates"]
    given += [word for name in inputs for word in ("--input", f"{name}={folder}/{name}.npy")]
    expected = {name: [] for name in names}
    for h, place in itertools.product(range(heads), places):
        step, slope = (0.0, 0.0) if place is None else make_step(values[place * heads + h], biases[h], made, *limits)
        expected["rows"].append(step)
        expected["slopes"].append(slope)
        if not begins:
            is_reset = numbers[place] != (numbers[place - 1] if place else 0)
            expected["logs"].append(-110.0 if is_reset else step * rates[h])
    for device in ("interp", "sim"):
        run(kernel, *given, *(word for name in names for word in ("--output", f"{name}={folder}/{name}.npy")), "--device", device)
        for name in names:
            for i, (found, exact) in enumerate(zip(load(f"{folder}/{name}.npy"), expected[name])):
                assert abs(found - exact) <= 1e-5 * abs(exact), (name, made, limits, begins, device, i, found, exact)


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
    given = [word for name in ("parts", "more") for word in ("--input", f"{name}={folder}/parts.npy")]
    results = [word for name in ("sums", "more_sums") for word in ("--output", f"{name}={folder}/{name}.npy")]
    for device, count in itertools.product(("interp", "sim"), (1, 2)):
        run(kernel, *given[: 2 * count], *results[: 2 * count], f"-DMORE={str(count == 2).lower()}", "--device", device)
        for name in ("sums", "more_sums")[:count]:
            compare("sums of heads", load(f"{folder}/{name}.npy"), expected, 1e-5)


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
    for made, limits in (("softplus", (0.01, 19.0)), ("limited", (-1.25, 4.5))):
        check_steps(f"{sources}/gates.tile", folder, made, limits, None, 70)
        check_steps(f"{sources}/gates.tile", folder, made, (0.0, math.inf), [3, 67, 67, 70], 75)
    check_sums(f"{sources}/part_sums.tile", folder)
    check_head_sums(f"{sources}/head_sums.tile", folder)
    for begins, tokens in (([3, 67, 70], 140), ([0, 65], 65), ([5, 5], 70)):
        check_outside(f"{sources}/outside.tile", folder, begins, tokens)


main(*sys.argv[1:])
