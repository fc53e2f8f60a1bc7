# RUN: %python %s %source/kernels/linear
"""What recurrences keep in workspaces between their kernels, of a chunk of 64 tokens and a head of values with a state of 128 x 128, which
would take 64 KiB in f32."""

import re
import subprocess
import sys

BYTES = {"f16": 2, "bf16": 2, "f32": 4}
#: Extents of a chunk; HK are heads of queries and keys for each head of values.
EXTENTS = {"B": 1, "H": 1, "HK": 1, "L": 64, "R": 64, "V": 128, "K": 128, "N": 1, "NK": 128, "PV": 2}


def count_workspaces(source, *parameters, **extents):
    """The bytes of the workspaces of a sequence, for a chunk and head."""
    text = subprocess.run(["tessera", "compile", source, *parameters, "--emit", "tile", "-o", "-"], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout  # fmt: skip
    total = 0
    for dims, element in re.findall(r"tile\.workspace : !tile\.view<\[([^\]]*)\], (\w+)>", text):
        size = BYTES[element]
        for dim in dims.split(", "):
            size *= int(dim) if dim.isdigit() else {**EXTENTS, **extents}[dim]
        total += size
    return total


def main(folder):
    # Queries since the start, keys until the end and W, scores and products of keys, and what a chunk keeps.
    of_kda = 3 * 64 * 128 * 2 + 2 * 64 * 64 * 2 + 128 * 4
    scores, inverses = 64 * 64 * 2, 64 * 64 * 2
    w, states, gates = 64 * 128 * 2, 128 * 128 * 2, 64 * 4
    for source, parameters, extents, expected in (
        ("kda", ["-DOWN=true", "-DSHARE=1"], {}, of_kda),
        ("kda", ["-DOWN=true", "-DSHARE=1", "-DNEWS=true"], {}, of_kda - scores),
        ("kda", ["-DSHARE=1"], {"HK": 0.5}, of_kda // 2 + w),
        ("kda_bwd", ["-DSHARE=1"], {}, 2 * w),
        ("kda_gradients", [], {}, 0),
        ("kda", ["-DOWN=true", "-DSHARE=1", "-DIN_PLACE=true"], {}, of_kda),
        ("kda", ["-DOWN=true", "-DSHARE=1", "-DIN_PLACE=true", "-DNEWS=true"], {}, of_kda - scores),
        ("kda_gradients", ["-DIN_PLACE=true"], {}, 0),
        ("delta_rule_bwd", ["-DIN_PLACE=true"], {}, 0),
        ("delta_rule", [], {}, inverses),
        ("delta_rule_states", [], {}, w + states + gates + 4),
        ("delta_rule_bwd", [], {}, 0),
        ("gla", [], {}, scores + 2 * w + 128 * 4),
        ("gla_bwd", [], {}, scores + w),
    ):
        found = count_workspaces(f"{folder}/{source}.tile", *parameters, **extents)
        assert found == expected, f"{source} {parameters}: {found} bytes, and not {expected}"


main(*sys.argv[1:])
