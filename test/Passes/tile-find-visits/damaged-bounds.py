# RUN: %python %s %t
"""Damages the bounds that tile-find-visits writes for random masks of one comparison, one operation at a time: what the kernel
computes then must be found wrong (random-masks.py), unless it is the same."""

import importlib
import pathlib
import random
import re
import subprocess
import sys

masks = importlib.import_module("random-masks")
COUNT, POINTS = 60, 12
# What each operation becomes.
OTHERS = {
    "addi": ["subi"], "subi": ["addi"], "muli": ["addi"], "minsi": ["maxsi"], "maxsi": ["minsi"], "divsi": ["ceildivsi"],
    "floordivsi": ["ceildivsi", "divsi"], "ceildivsi": ["floordivsi", "divsi"],
}  # fmt: skip
OPERATION = re.compile(r"arith\.(\w+) (%\S+), (%\S+) : (?:index|i64)$")


def list_damages(text):
    """(number of a line, what takes its place)."""
    lines, damages = text.splitlines(), []
    for number, line in enumerate(lines):
        found = OPERATION.search(line)
        # Each kernel packs its two bounds into one number.
        if found and not re.search("4096|2048", line):
            damages += [(number, line.replace(f"arith.{found[1]} ", f"arith.{other} ")) for other in OTHERS.get(found[1], ())]
            if found[1] == "subi":
                damages.append((number, line.replace(f"{found[2]}, {found[3]} :", f"{found[3]}, {found[2]} :")))
    return lines, damages


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng, counts = random.Random(1), {"found": 0, "same": 0, "refused": 0}
    problem = masks.Problem(1, folder, POINTS, lambda mask: mask.is_plain())
    bounds = problem.run(problem.found)
    assert problem.find_error(bounds) is None, problem.find_error(bounds)
    lines, damages = list_damages(problem.found)
    for number, line in rng.sample(damages, min(COUNT, len(damages))):
        try:
            damaged = problem.run("\n".join([*lines[:number], line, *lines[number + 1 :], ""]))
        except subprocess.CalledProcessError:
            counts["refused"] += 1
            continue
        if problem.find_error(damaged):
            counts["found"] += 1
            continue
        counts["same"] += 1
        # An interval of nothing has many bounds.
        for was, now in zip(sum(bounds, []), sum(damaged, [])):
            assert was == now or max(was[1] - was[0], 0) == max(now[1] - now[0], 0) == 0, f"{lines[number]} -> {line}: {was}, {now}"
    print(counts)
    assert counts["found"] > 2 * counts["same"] and counts["found"] > COUNT / 2, counts


main(sys.argv[1])
