"""Damages what keeps a computed operand in shared memory whole: the simulator must name each damage, and nothing in the
kernel as it is compiled.

    operands.py KERNEL.tile WORKDIR
"""

import json
import os
import re
import subprocess
import sys

KEYS = 320  # 5 steps of the loop
SCHEDULE = "operands=shared,overlap=2,persistent=none,consumers=2,stages=2,pingpong=true"


def compile_kernel(source, directory):
    ptx = os.path.join(directory, "kernel.ptx")
    command = ["tessera", "compile", source, "--schedule", SCHEDULE, "--emit"]
    subprocess.run([*command, "ptx", "-o", ptx], check=True)
    hop = subprocess.run([*command, "llvm", "-o", "-"], check=True, capture_output=True, text=True).stdout
    with open(ptx) as f:
        return f.read(), int(re.search(r"shared_memory = .*?\], bytes = (\d+)", hop)[1])


def write_launch(directory, shared):
    def tensor(name, rows):
        view = {"buffer": name, "dims": [64, KEYS, 1], "strides": [128, 128], "box": [64, rows, 1], "swizzle": 128}
        return {"tensor_map": view}

    def buffer(kind, **fields):
        return {"type": kind, "shape": [KEYS, 64], **fields}

    inputs = {name: buffer("bf16", fill="random", seed=seed) for seed, name in enumerate("qkv", 1)}
    launch = {
        "grid": -(-KEYS // 128),
        "shared": shared,
        "buffers": {**inputs, "o": buffer("f32", fill="nan")},
        "params": [tensor("q", 128), tensor("k", 64), tensor("v", 64), {"buffer": "o"}, {"value": KEYS}, {"value": 64}],
    }
    with open(os.path.join(directory, "launch.json"), "w") as f:
        json.dump(launch, f, indent=1)


def without(pattern):
    """Removes every instruction after a write of the operand that matches, up to the next write."""

    def damage(text):
        parts = text.split("stmatrix")
        changed = [parts[0], *(re.sub(pattern, "", part, count=1) for part in parts[1:])]
        assert changed != parts, pattern
        return "stmatrix".join(changed)

    return damage


def wait_less(text):
    """The operand is written while the product that reads it may be in flight."""
    changed = re.sub(r"wgmma\.wait_group\.sync\.aligned 0;", "wgmma.wait_group.sync.aligned 1;", text)
    assert changed != text
    return changed


DAMAGES = {
    "fence": (without(r"fence\.proxy\.async\.shared::cta;"), {"missing-proxy-fence"}),
    "barrier": (without(r"bar(rier)?\.sync\s+%r\d+, 128;"), {"race", "missing-proxy-fence", "stale-data"}),
    "wait": (wait_less, {"slot-overwritten", "register-in-flight"}),
}


def simulate(ptx, directory):
    command = ["tessera-sim", ptx, "--launch", os.path.join(directory, "launch.json"), "--seeds", "8", "--threads", "1"]
    run = subprocess.run([*command, "--max-diagnostics", "50"], capture_output=True, text=True, timeout=600)
    return run.returncode, set(re.findall(r"error: \[([a-z-]+)\]", run.stderr)), run.stdout + run.stderr


def main(source, directory):
    os.makedirs(directory, exist_ok=True)
    text, shared = compile_kernel(source, directory)
    write_launch(directory, shared)
    code, _, output = simulate(os.path.join(directory, "kernel.ptx"), directory)
    failures = code != 0
    print(output if failures else "ok   undamaged")
    for name, (damage, expected) in DAMAGES.items():
        ptx = os.path.join(directory, name + ".ptx")
        with open(ptx, "w") as f:
            f.write(damage(text))
        code, kinds, output = simulate(ptx, directory)
        ok = code == 1 and kinds & expected
        failures += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {', '.join(sorted(kinds)) or 'nothing'}")
        if not ok:
            print(output)
    return failures


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
