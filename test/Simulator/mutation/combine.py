"""Damages the exchange by which warps reduce a row together: the simulator must name each damage, and nothing in the
kernel as it is compiled.

    combine.py softmax.tile WORKDIR
"""

import json
import os
import re
import subprocess
import sys

# In a row of one tile the parts are written once; in a loop they are written again, after a barrier.
CASES = {"once": (4096, 4096), "loop": (4096, 1024)}
BARRIER = re.compile(r"\tbar\.sync %r\d+, \d+;")


def compile_kernel(source, width, columns, directory):
    ptx = os.path.join(directory, "kernel.ptx")
    defines = ["-D", f"D={width}", "-D", f"BN={columns}", "-D", "BM=1", "-D", "T=f32", "--no-database"]
    command = ["tessera", "compile", source, *defines, "--schedule", "consumers=1", "--emit", "ptx", "-o", ptx]
    subprocess.run(command, check=True)
    with open(ptx) as file:
        return file.read()


def write_launch(width, directory):
    tensor = {"type": "f32", "shape": [2, width]}
    launch = {
        "grid": 2,
        "shared": 1024,
        "buffers": {"x": {**tensor, "fill": "random", "seed": 1}, "y": {**tensor, "fill": "nan"}},
        "params": [{"buffer": "x"}, {"buffer": "y"}, {"value": 2}, {"value": width}, {"value": width}],
    }
    with open(os.path.join(directory, "launch.json"), "w") as file:
        json.dump(launch, file, indent=1)


def simulate(text, directory):
    """The exit code and the kinds of what the simulator reports."""
    ptx = os.path.join(directory, "damaged.ptx")
    with open(ptx, "w") as file:
        file.write(text)
    command = ["tessera-sim", ptx, "--launch", os.path.join(directory, "launch.json"), "--seeds", "8", "--threads", "1"]
    run = subprocess.run([*command, "--max-diagnostics", "50"], capture_output=True, text=True, timeout=600)
    return run.returncode, set(re.findall(r"error: \[([a-z-]+)\]", run.stderr)), run.stdout + run.stderr


def main(source, directory):
    os.makedirs(directory, exist_ok=True)
    failures = 0
    for name, (width, columns) in CASES.items():
        text = compile_kernel(source, width, columns, directory)
        write_launch(width, directory)
        code, _, output = simulate(text, directory)
        print(f"{'ok  ' if code == 0 else 'FAIL'} {name} undamaged", "" if code == 0 else output)
        failures += code != 0
        for number, barrier in enumerate(BARRIER.finditer(text)):
            _, kinds, output = simulate(text[: barrier.start()] + text[barrier.end() :], directory)
            found = bool(kinds & {"race", "uninitialized-shared", "stale-data"})
            print(f"{'ok  ' if found else 'FAIL'} {name} barrier {number}: {' '.join(sorted(kinds))}")
            failures += not found
    sys.exit(1 if failures else 0)


main(*sys.argv[1:])
