# RUN: %python %s %source
"""Holds the table of discardable attributes in docs/architecture.md to those that the code declares: a pass that speaks to
another one through an operation of a foreign dialect is written down there."""

import pathlib
import re
import sys


def find_declared(root):
    """Those of the tile dialect, of a module for a card, of a kernel that has a schedule, and of a lowered one."""
    dialect = (root / "dialects/Tile/TileDialect.td").read_text()
    (arguments,) = re.findall(r"let discardableAttrs = \(ins(.*?)\);", dialect, re.DOTALL)
    headers = "".join(path.read_text() for path in (root / "passes").rglob("*.h"))
    return {f"tile.{name}" for name in re.findall(r"\$(\w+)", arguments)} | set(re.findall(r'"(tessera\.\w+)"', headers))


def find_listed(root):
    """The names in the first column of the table whose head is "attribute"."""
    text = (root / "docs/architecture.md").read_text()
    (table,) = re.findall(r"^\| attribute \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return {name for line in table.splitlines() for name in re.findall(r"`((?:tile|tessera)\.\w+)`", line.split("|")[1])}


def main(root):
    declared, listed = find_declared(root), find_listed(root)
    problems = [f"docs/architecture.md does not list the attribute {name}" for name in sorted(declared - listed)]
    problems += [f"docs/architecture.md lists {name}, which no code declares" for name in sorted(listed - declared)]
    if not declared:
        problems.append("no attribute is declared")
    print(*problems, sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
