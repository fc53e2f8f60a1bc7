"""Runs a kernel with a role that only writes, in the simulator; damages its protocol, and asks what it reports then.

    writer.py KERNEL.mlir WORKDIR
"""

import json
import os
import re
import struct
import subprocess
import sys

ROWS = 1000  # 8 tiles, the last one in part


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def compile_kernel(path, join):
    """Returns the PTX and the bytes of shared memory."""
    with open(path) as f:
        source = f.read().replace("JOIN", "hop.warpgroup_sync" if join else "")
    pipeline = "builtin.module(hop.kernel(hop-check-pipes),tessera-barriers,tessera-llvm)"
    llvm = run(["tessera-opt", f"--pass-pipeline={pipeline}"], source)
    return run(["tessera-translate", "--mlir-to-ptx"], llvm), int(re.search(r"shared_memory = (\d+)", llvm)[1])


def replace(pattern, by=""):
    def damage(text):
        changed = re.sub(pattern, by, text, count=1, flags=re.S)
        assert changed != text, pattern
        return changed

    return damage


def arrivals(text):
    """The first mbarrier, which the writer waits for, completes with the first arrival."""
    return replace(r"(mbarrier\.init\.shared::cta\.b64 \[[^]]*\], )(%r\d+|\d+);", r"\g<1>1;")(text)


DAMAGES = {
    "fence": (replace(r"fence\.proxy\.async\.shared::cta;"), {"missing-proxy-fence"}),
    "arrivals": (arrivals, {"deadlock", "parity-aliasing"}),
    "read": (replace(r"cp\.async\.bulk\.wait_group\.read 0;"), {"slot-overwritten", "pending-at-exit", "race"}),
    "slot": (replace(r"(\.reg \.pred done;\nagain:\nmbarrier\.try_wait\.parity\.shared::cta\.b64 done, "
                     r"\[%r\d+\], %r\d+;\n)@!done bra again;"),
             {"race", "slot-overwritten", "over-arrival", "stale-data", "missing-proxy-fence", "parity-aliasing",
              "uninitialised-shared"}),
}


def simulate(directory, name, text, shared):
    ptx, launch = (os.path.join(directory, f"{name}.{suffix}") for suffix in ("ptx", "json"))
    tile = {"dims": [64, ROWS, 1], "strides": [128, 128], "box": [64, 128, 1], "swizzle": 128}
    buffers = {
        "x": {"type": "bf16", "shape": [ROWS, 64], "fill": "iota", "modulus": 97, "scale": -1},
        "y": {"type": "bf16", "shape": [ROWS, 64], "fill": "nan", "output": f"{name}.npy"},
    }
    parameters = [{"tensor_map": {"buffer": "y", **tile}}, {"buffer": "x"}, {"value": ROWS}, {"value": 64}]
    with open(ptx, "w") as f:
        f.write(text)
    with open(launch, "w") as f:
        json.dump({"grid": 1, "shared": shared, "buffers": buffers, "params": parameters}, f)
    done = subprocess.run(["tessera-sim", ptx, "--launch", launch, "--seeds", "6", "--threads", "1"],
                          capture_output=True, text=True, timeout=600)
    kinds = set(re.findall(r"error: \[([a-z-]+)\]", done.stderr))
    return done.returncode, kinds, done.stdout + done.stderr


def is_right(path):
    """Whether the .npy file, of the bits of bf16, holds what the kernel makes of -0, -1, ... -96, -0, ..."""
    with open(path, "rb") as f:
        bits = struct.iter_unpack("<H", f.read()[-2 * 64 * ROWS:])
    values = (struct.unpack("<f", struct.pack("<I", high << 16))[0] for high, in bits)
    return all(value == i % 97 for i, value in enumerate(values))


def main(path, directory):
    os.makedirs(directory, exist_ok=True)
    for name, join in (("threads", False), ("warpgroups", True)):
        text, shared = compile_kernel(path, join)
        code, _, output = simulate(directory, name, text, shared)
        ok = code == 0 and is_right(os.path.join(directory, f"{name}.npy"))
        print(f"{'ok  ' if ok else 'FAIL'} {name}" + ("" if ok else f"\n{output}"))
        for damage, (apply, expected) in DAMAGES.items():
            _, kinds, output = simulate(directory, f"{name}-{damage}", apply(text), shared)
            ok = kinds & expected
            print(f"{'ok  ' if ok else 'FAIL'} {name}: {damage}: {', '.join(sorted(kinds)) or 'nothing'}")
            if not ok:
                print(output)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
