#!/usr/bin/env python3
"""Writes the table of README.md from a result of bench/attention.py.

    python3 bench/summary.py bench/results/<...>-attention.json

The table stands between two comments in README.md: TFLOP/s of the default schedule on the paper's grid and, in
parentheses, the ratio to the faster of FlashAttention-3 and cuDNN in the same run. A point that was not measured beside
one of them is left blank.
"""

import argparse
import json
import os

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "README.md")
BEGIN, END = "<!-- attention: bench/summary.py -->", "<!-- end -->"


def is_shown(record):
    """Says whether a record is of the paper's grid, the default schedule and a right result."""
    default = record["variant"] in ("default", "")
    return record.get("group", "paper") == "paper" and default and bool(record.get("timings"))


def cell(records, d, mask, seqlen):
    timings = next((r["timings"] for r in records if (r["d"], r["mask"], r["seqlen"]) == (d, mask, seqlen)), {})
    rivals = [timings[name]["tflops"] for name in ("fa3", "cudnn") if name in timings]
    if not rivals:
        return ""
    own = timings["tessera"]["tflops"]
    return f"{own:.0f} ({own / max(rivals):.2f})"


def table(path):
    with open(path) as file:
        result = json.load(file)
    records = [r for r in result["results"] if is_shown(r)]
    seqlens = sorted({r["seqlen"] for r in records})
    lines = ["| forward, bf16 | " + " | ".join(f"{s}" for s in seqlens) + " |", "|---|" + "---|" * len(seqlens)]
    for d, mask in sorted({(r["d"], r["mask"]) for r in records}, key=lambda key: (key[0], key[1] != "full")):
        cells = [cell(records, d, mask, seqlen) for seqlen in seqlens]
        lines.append(f"| d = {d}, {mask} | " + " | ".join(cells) + " |")
    source = os.path.relpath(os.path.abspath(path), os.path.dirname(README))
    lines += [
        "",
        f"TFLOP/s on one {result['gpu']}, and in parentheses the ratio to the faster of FlashAttention-3 and "
        f"cuDNN in the same run: 16k tokens, hidden size 2048, compiled for each shape ([all of "
        f"it]({source.replace('.json', '.md')})).",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", help="a .json that bench/attention.py wrote")
    shown = table(parser.parse_args().result)
    with open(README) as file:
        before, rest = file.read().split(BEGIN)
    after = rest.split(END, 1)[1]
    with open(README, "w") as file:
        file.write(f"{before}{BEGIN}\n{shown}\n{END}{after}")


if __name__ == "__main__":
    main()
