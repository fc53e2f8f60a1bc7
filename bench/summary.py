#!/usr/bin/env python3
"""Writes the table of README.md from a result of bench/calls.py.

    python3 bench/summary.py bench/results/<...>-calls.json [--thin]

The table stands between two comments in README.md: TFLOP/s of forward calls on the paper's grid and, in parentheses, the ratio
to the fastest of the packages in the same run. A point that was not measured beside one of them is left blank. --thin leaves of the
result what the table is made of.
"""

import argparse
import json
import os

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "README.md")
BEGIN, END = "<!-- attention: bench/summary.py -->", "<!-- end -->"


# What a result has of others, by its name there.
PEERS = {"fa3": "FlashAttention-3", "fa4": "FlashAttention-4", "cudnn": "cuDNN"}


def is_shown(record):
    return record["part"] == "forward" and record["group"] == "paper" and bool(record.get("timings"))


def cell(records, d, mask, length):
    timings = next((r["timings"] for r in records if (r["d"], r["mask"], r["keys"]) == (d, mask, length)), {})
    rivals = [timings[name]["tflops"] for name in PEERS if name in timings]
    if not rivals:
        return ""
    own = timings["tessera"]["tflops"]
    return f"{own:.0f} ({own / max(rivals):.2f})"


def table(path):
    with open(path) as file:
        result = json.load(file)
    records = [r for r in result["results"] if is_shown(r)]
    lengths = sorted({r["keys"] for r in records})
    lines = ["| forward, bf16 | " + " | ".join(map(str, lengths)) + " |", "|---|" + "---|" * len(lengths)]
    for d, mask in sorted({(r["d"], r["mask"]) for r in records}, key=lambda key: (key[0], key[1] != "full")):
        cells = [cell(records, d, mask, length) for length in lengths]
        lines.append(f"| d = {d}, {mask} | " + " | ".join(cells) + " |")
    source = os.path.relpath(os.path.abspath(path), os.path.dirname(README))
    named = [title for name, title in PEERS.items() if any(name in r["timings"] for r in records)]
    lines += [
        "",
        f"TFLOP/s of calls of `tessera.torch.attention` on one {result['gpu']}, and in parentheses the ratio to the fastest of "
        f"{' and '.join(named)} in the same run: 16k tokens, hidden size 2048 ([all of it]({source.replace('.json', '.md')})).",
    ]
    return "\n".join(lines)


def thin(path):
    """Leaves of a result what `table` reads, a point in a line."""
    with open(path) as file:
        result = json.load(file)
    points = []
    for record in filter(is_shown, result["results"]):
        rates = {name: {"tflops": record["timings"][name]["tflops"]} for name in ("tessera", *PEERS) if name in record["timings"]}
        points.append({**{name: record[name] for name in ("part", "group", "d", "mask", "keys")}, "timings": rates})
    about = {name: value for name, value in result.items() if name in ("benchmark", "date", "commit", "gpu")}
    with open(path, "w") as file:
        file.write(json.dumps(about)[:-1] + ',\n "results": [\n  ' + ",\n  ".join(map(json.dumps, points)) + "\n ]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", help="a .json that bench/calls.py wrote")
    parser.add_argument("--thin", action="store_true", help="leave of it what the table is made of")
    options = parser.parse_args()
    shown = table(options.result)
    if options.thin:
        thin(options.result)
    with open(README) as file:
        before, rest = file.read().split(BEGIN)
    after = rest.split(END, 1)[1]
    with open(README, "w") as file:
        file.write(f"{before}{BEGIN}\n{shown}\n{END}{after}")


if __name__ == "__main__":
    main()
