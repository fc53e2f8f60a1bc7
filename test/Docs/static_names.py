# RUN: %python %s %source
"""A name that is static or in an anonymous namespace is the only one in its library, so that several files compile as one."""

import collections
import pathlib
import re
import sys

LIBRARY = re.compile(r"^\w+\(([\w-]+)\s([^)]*)\)", re.MULTILINE)
# LLVM finds these by the types of their arguments.
OVERLOADED = {"fromJSON", "toJSON"}


def list_libraries(root):
    """{library: its files}"""
    files = collections.defaultdict(set)
    for top in ("dialects", "passes", "lib", "tools"):
        for path in (root / top).rglob("CMakeLists.txt"):
            for library, text in LIBRARY.findall(path.read_text()):
                files[library].update(path.parent / name for name in re.findall(r"[\w/.]+\.cpp", text))
    return {library: sorted(filter(pathlib.Path.exists, names)) for library, names in files.items()}


def find_name(line):
    """The name that a line begins to declare, without template arguments and attributes."""
    previous = None
    while line != previous:
        previous, line = line, re.sub(r"<[^<>]*>|__attribute__\(\(\w+\)\)", "", line)
    declared = re.match(r"(?:static |inline |constexpr |const )*(?:(?:struct|class|union|enum class|enum) (\w+)(?!\w*;)"
                        r"|(?!using|return|namespace|template|extern|struct|class|enum)\w[\w:&* ]*[ &*](\w+) ?[(=\[{;])", line)  # fmt: skip
    return declared and (declared[1] or declared[2])


def list_names(text):
    """What a file keeps to itself: at the beginning of a line."""
    names, is_anonymous = set(), False
    for line in text.splitlines():
        is_anonymous = line.startswith("namespace {") or (is_anonymous and not line.startswith("} // namespace"))
        if line.startswith(("static ", "constexpr ")) or (is_anonymous and re.match(r"\w", line)):
            names.add(find_name(line))
    return names - OVERLOADED - {None}


def main(root):
    count = faults = 0
    for library, paths in list_libraries(root).items():
        places = collections.defaultdict(list)
        for path in paths:
            for name in list_names(path.read_text()):
                places[name].append(str(path.relative_to(root)))
        count += len(places)
        for name, found in places.items():
            if len(found) > 1:
                faults += 1
                print(f"{name} of {library} is in {' and in '.join(found)}")
    assert count > 1000, count
    return bool(faults)


sys.exit(main(pathlib.Path(sys.argv[1])))
