# RUN: %python %s %source/kernels/variants
"""A variant is at most 15 lines over the template, comments and empty lines apart: what more it takes belongs there."""

import pathlib
import sys

MOST = 15


def main(folder):
    failures = 0
    for path in sorted(pathlib.Path(folder).glob("*.tile")):
        lines = [line.strip() for line in path.read_text().splitlines()]
        count = sum(bool(line) and not line.startswith("//") for line in lines)
        if count > MOST:
            failures += 1
            print(f"FAIL {path.name} has {count} lines")
    return failures


sys.exit(main(*sys.argv[1:]))
