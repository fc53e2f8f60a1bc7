# RUN: %python %s %source
"""No source, test or page is longer than 600 lines, and no line of product code than 140. What other programs write does not count."""

import pathlib
import sys

MOST_LINES, MOST_COLUMNS = 600, 140
TEXTS = {".c", ".cpp", ".h", ".td", ".py", ".tile", ".mlir", ".test", ".md"}
CODE = {".c", ".cpp", ".h", ".py", ".tile"}
PRODUCT = ("bench", "dialects", "examples", "include", "kernels", "lib", "passes", "python", "scripts", "tools")
WRITTEN = ("bench/results", "docs/generated")


def find_problems(root):
    for path in (path for top in (*PRODUCT, "docs", "test") for path in sorted((root / top).rglob("*"))):
        name = path.relative_to(root)
        if path.suffix not in TEXTS or str(name).startswith(WRITTEN):
            continue
        lines = path.read_text().splitlines()
        if len(lines) > MOST_LINES:
            yield f"{name} has {len(lines)} lines: more than {MOST_LINES}"
        if path.suffix in CODE and name.parts[0] in PRODUCT:
            yield from (f"{name}:{number} has {len(line)} columns: more than {MOST_COLUMNS}"
                        for number, line in enumerate(lines, 1) if len(line) > MOST_COLUMNS)  # fmt: skip


if __name__ == "__main__":
    problems = list(find_problems(pathlib.Path(sys.argv[1])))
    print(*problems, sep="\n")
    sys.exit(bool(problems))
