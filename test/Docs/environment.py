# RUN: %python %s %source
"""docs/environment.md has each environment variable that a user may set, and none that nothing reads."""

import pathlib
import re
import sys

PAGE = "docs/environment.md"
READS = re.compile(r"""(?:environ(?:\.get)?[\[(]|getenv\(|GetEnv\()["'](TESSERA_[A-Z_]+|NO_COLOR)["']""")
PLACES = (("python/tessera", "*.py"), ("lib", "*.cpp"), ("tools", "*.cpp"))


def main(root):
    read = set()
    for folder, pattern in PLACES:
        for path in (root / folder).rglob(pattern):
            read.update(READS.findall(path.read_text()))
    described = set(re.findall(r"`(TESSERA_[A-Z_]+|NO_COLOR)`", (root / PAGE).read_text()))
    for name in sorted(read - described):
        print(f"{PAGE} lacks {name}")
    for name in sorted(described - read):
        print(f"{PAGE} has {name}, which nothing reads")
    return read != described or len(read) < 5


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
