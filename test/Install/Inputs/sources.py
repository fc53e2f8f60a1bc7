"""Holds an unpacked source distribution to what a build read: sources.py BUILD_TREE UNPACKED. Tests are not in it."""

import pathlib
import re
import subprocess
import sys

tree, unpacked = (pathlib.Path(path).resolve() for path in sys.argv[1:])
tree = (tree / "build.ninja").resolve().parent
root = pathlib.Path(re.search(r"CMAKE_HOME_DIRECTORY:INTERNAL=(.*)", (tree / "CMakeCache.txt").read_text())[1])
read = set()
for tool in (["deps"], ["inputs", "libtessera", "tessera_runtime"]):
    output = subprocess.run(["ninja", "-C", tree, "-t", *tool], capture_output=True, text=True, check=True).stdout
    # Other lines than those of files say of what they are the dependencies.
    read |= {(tree / line.strip()).resolve() for line in output.splitlines() if not line.endswith(")")}
ours = {path.relative_to(root) for path in read if path.is_file() and root in path.parents and tree not in path.parents}
missing = sorted(str(path) for path in ours if path.parts[0] != "test" and not (unpacked / path).is_file())
print(f"{len(ours)} files, missing: {', '.join(missing) or 'none'}")
