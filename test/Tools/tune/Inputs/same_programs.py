"""Whether the entries of two databases have the same fingerprints: same_programs.py DATABASE OTHER."""

import json
import sys


def read_programs(path):
    with open(path) as file:
        entries = json.load(file)["entries"]
    return [(entry["kernel"], entry["parameters"], entry["program"], entry.get("tuned_program")) for entry in entries]


before, after = (read_programs(path) for path in sys.argv[1:])
changed = [pair for pair in zip(before, after) if pair[0] != pair[1]]
for pair in changed:
    print("{} became {}".format(*pair))
sys.exit(not before or len(before) != len(after) or len(changed) > 0)
