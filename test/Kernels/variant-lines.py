# RUN: %python %s %source/kernels/variants
"""A mask of an engine is at most 15 lines over the template, comments and empty lines apart: what more it takes belongs there."""

import pathlib
import sys

MASKS, MOST = ("causal_flags", "chunks", "draft_tree", "image_ranges", "prefix_window"), 15


def main(folder):
    failures = 0
    for name in MASKS:
        lines = [line.strip() for line in (pathlib.Path(folder) / f"{name}.tile").read_text().splitlines()]
        count = sum(bool(line) and not line.startswith("//") for line in lines)
        if count > MOST:
            failures += 1
            print(f"FAIL {name}.tile has {count} lines")
    return failures


sys.exit(main(*sys.argv[1:]))
