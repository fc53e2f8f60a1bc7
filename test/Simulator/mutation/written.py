"""Damages what keeps tiles whole that consumers write to shared memory: the simulator must name each damage, and nothing
in the kernel as it is compiled.

    written.py KERNEL.tile CASE WORKDIR
"""

import json
import os
import re
import subprocess
import sys

KEYS = 320  # 5 steps of the loop


def compile_kernel(source, case, directory):
    ptx = os.path.join(directory, "kernel.ptx")
    command = ["tessera", "compile", source, "-D", f"T={case['type']}", "--schedule", case["schedule"], "--emit"]
    subprocess.run([*command, "ptx", "-o", ptx], check=True)
    hop = subprocess.run([*command, "llvm", "-o", "-"], check=True, capture_output=True, text=True).stdout
    with open(ptx) as f:
        return f.read(), int(re.search(r"shared_memory = .*?\], bytes = (\d+)", hop)[1])


def tensor(name, rows):
    view = {"buffer": name, "dims": [64, KEYS, 1], "strides": [128, 128], "box": [64, rows, 1], "swizzle": 128}
    return {"tensor_map": view}


def write_launch(case, directory, shared):
    def buffer(kind, **fields):
        return {"type": kind, "shape": [KEYS, 64], **fields}

    inputs = {name: buffer("bf16", fill="random", seed=seed) for seed, name in enumerate("qkv", 1)}
    launch = {
        "grid": case["blocks"],
        "shared": shared,
        "buffers": {**inputs, "o": buffer(case["type"], fill="nan")},
        "params": [tensor("q", 128), tensor("k", 64), tensor("v", 64), *case["result"]],
    }
    with open(os.path.join(directory, "launch.json"), "w") as f:
        json.dump(launch, f, indent=1)


def without(pattern):
    """Removes every instruction after a write of the tile that matches, up to the next write."""

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


def release_early(text):
    """A slot is given back while the copy still reads it."""
    changed = text.replace("cp.async.bulk.wait_group.read 0;", "")
    assert changed != text
    return changed


def lend_early(text):
    """A slot is lent while others still read it: the producer does not wait before it arrives without bytes."""
    arrival = r"(?<!@leads )mbarrier\.arrive\.release\.cta\.shared::cta\.b64 _, \[%r\d+\];"
    wait = r"mbarrier\.try_wait\.parity\.shared::cta\.b64 done, \[%r\d+\], %r\d+;\n@!done bra again;"
    changed = re.sub(rf"{wait}(?=(?:(?!try_wait).)*?{arrival})", "", text, flags=re.S)
    assert changed != text
    return changed


FENCE = (without(r"fence\.proxy\.async\.shared::cta;"), {"missing-proxy-fence"})
BARRIER = (without(r"bar(rier)?\.sync\s+%r\d+, 128;"), {"race", "missing-proxy-fence", "stale-data"})
CASES = {
    # A computed operand.
    "operand": {
        "type": "f32",
        "schedule": "operands=shared,overlap=2,persistent=none,consumers=2,stages=2,pingpong=true",
        "blocks": -(-KEYS // 128),
        "result": [{"buffer": "o"}, {"value": KEYS}, {"value": 64}],
        "damages": {
            "fence": FENCE,
            "barrier": BARRIER,
            "wait": (wait_less, {"slot-overwritten", "register-in-flight"}),
        },
    },
    # A result in slots that the producer lends, in a block with several tiles.
    "lent": {
        "type": "bf16",
        "schedule": "staging=shared,persistent=static,consumers=2,stages=2,outer_stages=1",
        "blocks": 1,
        "result": [tensor("o", 64), {"value": KEYS}],
        "damages": {
            "fence": FENCE,
            "barrier": BARRIER,
            "release": (release_early, {"slot-overwritten", "race"}),
            "lend": (lend_early, {"over-arrival"}),
        },
    },
}


def simulate(ptx, directory):
    command = ["tessera-sim", ptx, "--launch", os.path.join(directory, "launch.json"), "--seeds", "8", "--threads", "1"]
    run = subprocess.run([*command, "--max-diagnostics", "50"], capture_output=True, text=True, timeout=600)
    return run.returncode, set(re.findall(r"error: \[([a-z-]+)\]", run.stderr)), run.stdout + run.stderr


def main(source, name, directory):
    case = CASES[name]
    os.makedirs(directory, exist_ok=True)
    text, shared = compile_kernel(source, case, directory)
    write_launch(case, directory, shared)
    code, _, output = simulate(os.path.join(directory, "kernel.ptx"), directory)
    failures = code != 0
    print(output if failures else "ok   undamaged")
    for name, (damage, expected) in case["damages"].items():
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
