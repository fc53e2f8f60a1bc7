# RUN: %python %s %source
"""Types of arguments are listed in the files that CONTRIBUTING.md names, and there are at most six for each type."""

import pathlib
import re
import runpy
import sys

# What is over these folders of Python says what functions take, whose kernels have types of their own.
PYTHON = tuple(f"python/tessera/{name}" for name in ("_core", "_compiler", "_functions", "_attention"))
FOLDERS = ("include", "lib", "dialects", "passes", "tools", *PYTHON)
# So many lines with so many types are a list of them.
LINES, FEWEST = 12, 5


def list_types(root):
    """The words that stand for each type: its names, the tessera_type of its elements, and how MLIR asks for it."""
    header = (root / "include/tessera-c/Runtime.h").read_text()
    codes = {int(code): name for name, code in re.findall(r"(TESSERA_TYPE_\w+) = (\d+)", header)} | {0: "TESSERA_TYPE_NONE"}
    words = {}
    for name, element, scalar, size, _, _, torch in runpy.run_path(root / "python/tessera/_core/_types.py")["TYPES"]:
        assert element < 16 <= (scalar or 16), name
        asked = rf"is(Signless)?Integer\({8 * size}\)" if name.startswith("i") else rf"is{name.upper()}\("
        if element:  # Of numbers alone the C interface's names tell.
            words[name] = re.compile(rf"\"{name}\"|\b({codes[element]}|{codes[scalar]}|{torch})\b|\b{asked}")
    return words


def lists_types(text, words):
    lines = text.splitlines()
    found = [{name for name, word in words.items() if word.search(line)} for line in lines]
    several = any(len(set().union(*found[start : start + LINES])) >= FEWEST for start in range(len(lines)))
    return several or len(set(re.findall(r"TESSERA_TYPE_SCALAR_\w+", text))) > 1


def main(root):
    words = list_types(root)
    files = [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in (".h", ".c", ".cpp", ".td", ".py")]
    listing = {str(path.relative_to(root)) for path in files if lists_types(path.read_text(), words)}
    row = re.search(r"^\| type of arguments, .*$", (root / "CONTRIBUTING.md").read_text(), re.MULTILINE)[0]
    named = set(re.findall(r"`([\w/.-]+\.(?:h|cpp|py))`", row)) - {"test/Docs/argument_types.py"}
    generated = {"python/tessera/_core/_types.py"}
    assert listing == named | generated, f"not as CONTRIBUTING.md says: {sorted(listing ^ (named | generated))}"
    assert len(named) <= 6, named


main(pathlib.Path(sys.argv[1]))
