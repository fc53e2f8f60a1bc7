"""Runs a kernel of three loaded tiles with one, two and three roles that load, in the simulator.

    producers.py KERNEL.tile WORKDIR
"""

import json
import os
import re
import subprocess
import sys

ROWS = 320
COMMON = "overlap=2,consumers=2,stages=2"
# Type of the result, fields of the schedule, thread blocks and blocks of a cluster.
CASES = {
    "direct": ("f32", "persistent=none,store=direct", 3, 1),
    "dynamic": ("f32", "persistent=dynamic,store=direct", 2, 1),
    "cluster": ("f32", "persistent=dynamic,store=direct,cluster=2", 2, 2),
    "turns": ("f32", "persistent=none,store=direct,pingpong=true", 3, 1),
}


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def compile_kernel(source, type_name, schedule, producers):
    """Returns the PTX and the bytes of shared memory."""
    fields = f"{COMMON},{schedule}"
    tile = run(["tessera", "compile", source, "-D", f"T={type_name}", "--no-database", "--schedule", fields, "--emit",
                "scheduled", "-o", "-"])
    pipeline = f"builtin.module(tessera-hop{{producers={producers}}},tessera-barriers,tessera-llvm)"
    llvm = run(["tessera-opt", f"--pass-pipeline={pipeline}"], tile)
    return run(["tessera-translate", "--mlir-to-ptx"], llvm), int(re.search(r"shared_memory = (\d+)", llvm)[1])


def tensor(name, rows):
    view = {"buffer": name, "dims": [64, ROWS, 1], "strides": [128, 128], "box": [64, rows, 1], "swizzle": 128}
    return {"tensor_map": view}


def launch(case, shared, producers):
    type_name, schedule, blocks, cluster = CASES[case]
    parts = {"cluster": 2}.get(case, 1)
    inputs = {name: {"type": "bf16", "shape": [ROWS, 64], "fill": "random", "seed": seed}
              for seed, name in enumerate("qkv", 1)}
    result = {"type": type_name, "shape": [ROWS, 64], "fill": "nan"}
    result.update({"output": f"{case}.npy"} if producers == 1 else {"expect": f"{case}.npy", "tolerance": 0})
    buffers = {**inputs, "o": result}
    parameters = [tensor("q", 128), tensor("k", 64 // parts), tensor("v", 64 // parts)]
    if "dynamic" in schedule:
        buffers["counter"] = {"type": "u32", "shape": [2], "fill": "zero"}
        parameters += [{"buffer": "counter"}]
    parameters += [{"buffer": "o"}, {"value": ROWS}, {"value": 64}]
    return {"grid": blocks, "cluster": cluster, "shared": shared, "buffers": buffers, "params": parameters}


def main(source, directory):
    os.makedirs(directory, exist_ok=True)
    for case, (type_name, schedule, _, _) in CASES.items():
        for producers in (1, 2, 3):
            ptx, shared = compile_kernel(source, type_name, schedule, producers)
            assert ptx.count("elect.sync") == producers, f"{case}: {producers} roles are not in the program"
            paths = [os.path.join(directory, f"{case}-{producers}.{suffix}") for suffix in ("ptx", "json")]
            for path, text in zip(paths, (ptx, json.dumps(launch(case, shared, producers)))):
                with open(path, "w") as f:
                    f.write(text)
            done = subprocess.run(["tessera-sim", paths[0], "--launch", paths[1], "--seeds", "6", "--threads", "1"],
                                  capture_output=True, text=True, timeout=600)
            if producers > 1 or done.returncode:
                print(f"{'FAIL' if done.returncode else 'ok  '} {case}: {producers} roles that load")
            if done.returncode:
                print(done.stdout + done.stderr)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
