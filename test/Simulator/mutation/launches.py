"""What the cases of written.py are made of: compiled kernels, launch files and their parameters, runs of the simulator."""

import json
import os
import re
import struct
import subprocess

KEYS = 320  # 5 steps of the loop


def compile_kernel(source, case, directory):
    ptx = os.path.join(directory, "kernel.ptx")
    command = ["tessera", "compile", source, *case["defines"], "--schedule", case["schedule"], "--no-database", "--emit"]
    subprocess.run([*command, "ptx", "-o", ptx], check=True)
    hop = subprocess.run([*command, "llvm", "-o", "-"], check=True, capture_output=True, text=True).stdout
    with open(ptx) as f:
        return f.read(), int(re.search(r"shared_memory = (\d+)", hop)[1])


def tensor(name, rows, columns=64, extents=(64, KEYS, 1), element=2):
    view = {
        "buffer": name, "dims": list(extents), "strides": [element * extents[0]] * (len(extents) - 1),
        "box": [columns, rows, 1][: len(extents)], "swizzle": min(128, columns * element),
    }  # fmt: skip
    return {"tensor_map": view}


def chunks(name, rows, box, element=2, columns=128, parts=1):
    """Boxes of whole rows of `columns` elements, in chunks of 128 bytes, or of one of `parts` of these."""
    inner = 128 // element
    view = {
        "buffer": name, "dims": [inner, rows, columns // inner], "strides": [columns * element, 128],
        "box": [inner, box, min(columns, 64 if element == 4 else columns) // inner // parts], "swizzle": 128,
    }  # fmt: skip
    return {"tensor_map": view}


def row(name, extent, box):
    view = {"buffer": name, "dims": [extent, 1], "strides": [4 * extent], "box": [box, 1], "swizzle": 0}
    return {"tensor_map": view}


def attention_buffers(kind, *inputs):
    """Q, K and V of one type, or of three."""
    kinds = inputs * 3 if len(inputs) == 1 else inputs or ["bf16"] * 3
    inputs = {name: {"type": of, "shape": [KEYS, 64], "fill": "random", "seed": seed}
              for seed, (name, of) in enumerate(zip("qkv", kinds), 1)}  # fmt: skip
    return {**inputs, "o": {"type": kind, "shape": [KEYS, 64], "fill": "nan"}}


def write_launch(case, directory, shared):
    for name, data in case.get("files", {}).items():
        with open(os.path.join(directory, name), "wb") as f:
            f.write(data)
    launch = {"grid": case["blocks"], "shared": shared, "buffers": case["buffers"], "params": case["params"]}
    with open(os.path.join(directory, "launch.json"), "w") as f:
        json.dump(launch, f, indent=1)


def runs_of(rows, page):
    """230 keys in pages of so many rows, 16 or 1, that a table names, and so many queries."""
    entries, pages = 240 // page, 384 // page
    copies = ({"tensor_map": {"buffer": "k", "dims": [64, 16, 24], "strides": [128, 2048], "box": [64, run, 1], "swizzle": 128}}
              for run in (16, 1))  # fmt: skip
    extents = [{"value": rows}, {"value": entries}]
    pointers = [{"buffer": name} for name in ("table", "y")]
    return {
        "defines": [f"-DPAGE={page}"],
        "files": {"table.bin": struct.pack(f"<{entries}i", *((7 * i + 3) % pages for i in range(entries)))},
        "buffers": {
            "q": {"type": "bf16", "shape": [rows, 64], "fill": "random", "seed": 1},
            "k": {"type": "bf16", "shape": [pages, page, 64], "fill": "random", "seed": 2},
            "table": {"raw": "table.bin", "type": "s32", "shape": [entries]},
            "y": {"type": "f32", "shape": [rows], "fill": "nan"},
        },
        "params": [
            tensor("q", 128, 64, (64, rows, 1)),
            *([*copies, *pointers, *extents] if page == 16 else
              [{"buffer": "k"}, *pointers, *extents, {"value": pages}, {"value": 64}, {"value": 64}]),
            {"value": 230},
        ],
    }  # fmt: skip


def simulate(ptx, directory, options):
    command = ["tessera-sim", ptx, "--launch", os.path.join(directory, "launch.json"), "--threads", "1", *options]
    run = subprocess.run([*command, "--max-diagnostics", "50"], capture_output=True, text=True, timeout=600)
    return run.returncode, set(re.findall(r"error: \[([a-z-]+)\]", run.stderr)), run.stdout + run.stderr
