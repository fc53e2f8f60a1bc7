# RUN: %python %s %source
"""Holds folders to the tables of docs/architecture.md: each is in one, and a C++ folder includes only those that stand above it."""

import pathlib
import re
import sys

SUFFIXES = {".c", ".cpp", ".h", ".td"}
TOPS = ("include", "dialects", "passes", "lib", "tools")


def read_table(text, head):
    """The folders of a table, in their order."""
    rows = text.partition(head + "\n")[2].partition("\n\n")[0].splitlines()
    return [name for row in rows for name in re.findall(r"`([\w/-]+)`", row.split("|")[1])]


def find_folder(path, floors):
    """The folder of the table that has a file."""
    return next((name for name in floors if path.startswith(name + "/")), None)


def list_includes(root):
    """(file, file that it includes) of all that include by a path from the root."""
    for top in TOPS:
        for path in sorted((root / top).rglob("*")):
            # The list of all passes is for their page.
            if path.suffix in SUFFIXES and path.name != "Passes.td":
                name = str(path.relative_to(root))
                for included in re.findall(r'^\s*#?include "([\w/.-]+/[\w.-]+)"', path.read_text(), re.MULTILINE):
                    yield name, f"include/{included}" if included.startswith("tessera") else included


def find_faults(floors, includes):
    """What is wrong with the includes of folders that stand on `floors`."""
    for path, included in includes:
        folder, other = find_folder(path, floors), find_folder(included, floors)
        if folder is None:
            yield f"{path} is in no folder of the table"
        elif other and floors.index(other) > floors.index(folder):
            yield f"{path} includes {included}, and {other} does not stand above {folder}"


def list_others(root):
    """The folders of the tree that have no C++ of the product, but for documents and the package, whose floors have a test."""
    for path in (*root.iterdir(), *(root / "kernels").iterdir()):
        if path.is_dir() and not path.name.startswith((".", "build", "__")) and path.name not in (*TOPS, "docs", "python"):
            yield str(path.relative_to(root))


def main(root):
    text = (root / "docs" / "architecture.md").read_text()
    floors, others = read_table(text, "| folder | job |"), read_table(text, "| other folder | who lives there, and what they may not know |")
    includes = list(list_includes(root))
    assert len(floors) > 20 and len(others) > 8 and len(includes) > 1000, "neither the tables nor the folders are there"
    faults = [*find_faults(floors, includes), *(f"{name} is no folder" for name in (*floors, *others) if not (root / name).is_dir())]
    faults += [f"{name} is in no table" for name in list_others(root) if name not in others]
    print(*faults, sep="\n")
    return bool(faults)


# What the test is for is found.
assert list(find_faults(["lib/A", "lib/B"], [("lib/B/b.cpp", "lib/A/a.h")])) == []
assert list(find_faults(["lib/A", "lib/B"], [("lib/A/a.cpp", "lib/B/b.h")])) == ["lib/A/a.cpp includes lib/B/b.h, and lib/B does not stand above lib/A"]
assert list(find_faults(["lib/A"], [("lib/C/c.cpp", "lib/A/a.h")])) == ["lib/C/c.cpp is in no folder of the table"]
sys.exit(main(pathlib.Path(sys.argv[1])))
