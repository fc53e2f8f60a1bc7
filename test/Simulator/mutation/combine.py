"""Damages the exchange by which warps, or the blocks of a cluster, reduce or scan a row together, or reduce a whole tile: the simulator
must name each damage, and nothing in the kernel as it is compiled.

    combine.py {softmax.tile|scan.tile|all.tile} WORKDIR [BLOCKS]
"""

import json
import os
import re
import subprocess
import sys

# In a row of one tile the parts are written once; in a loop they are written again, after a barrier.
CASES = {"once": (4096, 4096), "loop": (4096, 1024)}
BARRIER = re.compile(r"\tbar\.sync %r\d+, \d+;|\tbarrier\.cluster\.arrive\.release\.aligned;\nbarrier\.cluster\.wait\.acquire\.aligned;")


def of_all(source):
    """Whether the kernel stores a number for each row, and not a row."""
    return os.path.basename(source) == "all.tile"


def compile_kernel(source, width, columns, blocks, directory):
    ptx = os.path.join(directory, "kernel.ptx")
    defines = ["-D", f"D={width}", "-D", f"BN={columns}"]
    if os.path.basename(source) == "softmax.tile":
        defines += ["-D", "BM=1", "-D", "T=f32"]
    command = ["tessera", "compile", source, *defines, "--no-database", "--schedule", f"consumers=1,cluster={blocks}", "--emit", "ptx", "-o", ptx]
    subprocess.run(command, check=True)
    with open(ptx) as file:
        return file.read()


def write_launch(source, width, blocks, directory):
    tensor = {"type": "f32", "shape": [2, width]}
    result, strides = tensor, [width, width]
    if of_all(source):
        result, strides = {"type": "f32", "shape": [2]}, [width]
    launch = {
        "grid": 2 * blocks,
        "shared": 1024,
        "buffers": {"x": {**tensor, "fill": "random", "seed": 1}, "y": {**result, "fill": "nan"}},
        "params": [{"buffer": "x"}, {"buffer": "y"}, *({"value": number} for number in (2, *strides))],
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


def main(source, directory, blocks="1"):
    os.makedirs(directory, exist_ok=True)
    failures = 0
    for name, (width, columns) in CASES.items():
        text = compile_kernel(source, width, columns, int(blocks), directory)
        write_launch(source, width, int(blocks), directory)
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
