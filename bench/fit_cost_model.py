"""Fits the weights of the cost model's time of an iteration to a record of the tuner.

An iteration takes, in cycles of a multiprocessor,

    max(functions / use, a * dots + b * functions + c * instructions)

where dots, special functions and instructions count what each would take by itself (passes/Schedule/Exponentials.h).
`use` is the part of their rate that special functions reach; below that the card's power limit divides among the three.
The fit minimises the squares of the relative errors: for each `use` by linear least squares over the kernels that are
not bound by special functions.

    python3 bench/fit_cost_model.py [RECORD COUNTS]

RECORD is what `tessera tune` printed for one kernel a share of polynomials (`--schedule polynomial_exp=N`), COUNTS the
instructions and special functions of a thread in an iteration of each, as `tessera inspect` counts them. The output
compares the fit with the weights of kernels/cards.json, and says which share of polynomials each would choose.
"""

import argparse
import itertools
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "bench/results/2026-11-21-nvidia-h200-8cc165e-tuning-polynomials.txt"
COUNTS = ROOT / "bench/results/2026-11-21-nvidia-h200-8cc165e-instructions-polynomials.json"

# dialects/Hop/Machine.h; the kernels compute in 16 bits.
DOT_STEPS, FUNCTIONS, INSTRUCTIONS, WARPGROUP = 2048, 16, 128, 128
MULTIPROCESSORS = 132
# The clock in MHz that cycles are counted in. The card lowers its own as it draws more power, and that is part of
# what the weights are to say.
CLOCK = 1755
# Contestants that differ from the model's choice in turns alone.
SAME_TILES = ("the model's choice", "pingpong = false")


def assignments(text):
    return dict(item.split(" = ") for item in text.split(", "))


def read_record(text):
    """[(parameters and schedule, microseconds of an iteration of a multiprocessor)] of the kernels of a record."""
    kernels = [
        assignments(found[1]) | assignments(found[2])
        for found in re.finditer(r"^\S+ \(\S+\), (.+?): \d+ contestants.*\n  the model's choice: (.+?);", text, re.M)
    ]
    times = []
    for found in re.finditer(r"\((\d+) tiles, (\d+) iterations\)\n.*\n((?: +[\d.]+ .*\n)+)", text):
        rows = [line.split(None, 10) for line in found[3].splitlines()]
        fastest = min(float(row[0]) for row in rows if row[10] in SAME_TILES)
        times.append(fastest * 1e3 * MULTIPROCESSORS / (int(found[1]) * int(found[2])))
    if len(kernels) != len(times):
        raise SystemExit(f"{len(kernels)} kernels and {len(times)} tables of times")
    return list(zip(kernels, times))


def read_points(record, counts):
    """[(name, share, cycles, (dots, functions, instructions))] of the kernels that `counts` has."""
    points = []
    for kernel, microseconds in read_record(record):
        known = [c for c in counts if all(kernel[name] == value for name, value in c["kernel"].items())]
        if not known:
            continue
        share = kernel["polynomial_exp"]
        instructions, functions = known[0]["shares"][share]
        rows, columns, depth = int(kernel["BM"]), int(kernel["BN"]), int(kernel["D"]) + int(kernel["DV"])
        threads = int(kernel["consumers"]) * WARPGROUP
        work = (
            rows * columns * depth / DOT_STEPS,
            functions * threads / FUNCTIONS,
            instructions * threads / INSTRUCTIONS,
        )
        name = ", ".join(f"{key} = {value}" for key, value in known[0]["kernel"].items())
        points.append((name, int(share), microseconds * CLOCK, work))
    return points


def solve(matrix, vector):
    """Gauss-Jordan with pivots."""
    size = len(vector)
    rows = [line + [value] for line, value in zip(matrix, vector)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def expected(use, weights, work):
    return max(work[1] / use, sum(w * x for w, x in zip(weights, work)))


def error(use, weights, points):
    return sum((expected(use, weights, work) / cycles - 1) ** 2 for _, _, cycles, work in points)


def fit_weights(points):
    """The weights with the least squares of relative errors."""
    scaled = [[x / cycles for x in work] for _, _, cycles, work in points]
    normal = [[sum(row[i] * row[j] for row in scaled) for j in range(3)] for i in range(3)]
    return solve(normal, [sum(row[i] for row in scaled) for i in range(3)])


def fit(points):
    """(use, weights) with the least error. Which kernels are bound by special functions follows from the weights, so
    both are found in turn."""
    best = None
    for use in (percent / 100 for percent in range(60, 101)):
        free = points
        for _ in range(20):
            weights = fit_weights(free)
            now = [p for p in points if sum(w * x for w, x in zip(weights, p[3])) >= p[3][1] / use]
            if now == free or len(now) < 6:
                break
            free = now
        candidate = (error(use, weights, points), use, weights)
        best = min(best or candidate, candidate)
    return best[1:]


def read_model():
    """(use, weights) of all cards."""
    rows = json.loads((ROOT / "kernels/cards.json").read_text())["numbers"]
    value = {row["name"]: row["value"] for row in rows if "card" not in row}
    return value["functionUse"], [value[f"{name}Weight"] for name in ("dot", "function", "instruction")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", nargs="?", type=pathlib.Path, default=RECORD)
    parser.add_argument("counts", nargs="?", type=pathlib.Path, default=COUNTS)
    arguments = parser.parse_args()
    points = read_points(arguments.record.read_text(), json.loads(arguments.counts.read_text()))
    if not points:
        raise SystemExit("no kernel of the record has counts")
    models = {"fit": fit(points), "cards.json": read_model()}
    for name, (use, weights) in models.items():
        root = (error(use, weights, points) / len(points)) ** 0.5
        print(
            f"{name}: functionUse {use:.2f}, dotWeight {weights[0]:.2f}, functionWeight {weights[1]:.2f}, "
            f"instructionWeight {weights[2]:.2f}; error {root:.1%} over {len(points)} kernels"
        )
    for name, group in itertools.groupby(points, key=lambda point: point[0]):
        group = list(group)
        print(f"\n{name}\n  share  cycles" + "".join(f"{model:>13}" for model in models))
        for _, share, cycles, work in group:
            print(f"  {share:5}  {cycles:6.0f}" + "".join(f"{expected(*m, work):13.0f}" for m in models.values()))
        chosen = [min(group, key=lambda point: expected(*m, point[3]))[1] for m in models.values()]
        print(f"  {'best':>5}  {min(group, key=lambda point: point[2])[1]:6}" + "".join(f"{c:13}" for c in chosen))


if __name__ == "__main__":
    main()
