"""Damages a correct kernel in one way after the other: the simulator must name each damage, and nothing in the kernel as it is.

    mutate.py SIMULATOR KERNEL.ptx WORKDIR [--seeds N] [--only NAME]
"""
import argparse
import array
import json
import os
import random
import re
import struct
import subprocess
import sys

BLOCKS = 5  # 2 * stages + 1 trips of the ring
N, K = 64, 64 * BLOCKS


def bf16(x):
    u = struct.unpack("<I", struct.pack("<f", x))[0]
    return (u + 0x7FFF + (u >> 16 & 1)) >> 16


def value(u):
    return struct.unpack("<f", struct.pack("<I", u << 16))[0]


def write_blocks(directory, blocks):
    """The same for blocks.ptx: what each ticket gives to the next, the sum in order and the sum of all."""
    rng = random.Random(5)
    rows = [[rng.randrange(1, 1000) for _ in range(64)] for _ in range(blocks)]
    ordered, total = [0] * 64, [0] * 64
    for t, row in enumerate(rows):
        for i, value in enumerate(row):
            handed = value + (2 * rows[t - 1][i] if t else 0)
            ordered[i] = (3 * ordered[i] + handed) % 2**32
            total[i] += value
    flat = [value for row in rows for value in row]
    control = [blocks, blocks, 0, blocks, 0, 0, 0, 0] + [1] * blocks
    expected = {"input": flat, "control": control, "generic": flat, "bulk": flat, "ordered": ordered, "total": total}
    for name, values in expected.items():
        with open(os.path.join(directory, name + ".bin"), "wb") as f:
            f.write(array.array("I", values).tobytes())

    def result(name):
        return {"type": "u32", "shape": [len(expected[name])], "fill": "zero", "expect": name + ".bin"}

    names = list(expected)
    buffers = {"input": {"raw": "input.bin", "type": "u32", "shape": [len(flat)], "readonly": True}}
    buffers.update({name: result(name) for name in names[1:]})
    launch = {
        "grid": blocks,
        "shared": 528,
        "buffers": buffers,
        "params": [{"buffer": name} for name in ("control", "input", "generic", "bulk", "ordered", "total")],
    }
    with open(os.path.join(directory, "launch.json"), "w") as f:
        json.dump(launch, f, indent=1)


def write_launch(directory, ctas):
    """Inputs, the expected result and the launch description of a cluster of `ctas`, with 128 rows of C each."""
    rng = random.Random(7)
    M = 128 * ctas
    a = array.array("H", (bf16(rng.uniform(-1, 1)) for _ in range(M * K)))
    b = array.array("H", (bf16(rng.uniform(-1, 1)) for _ in range(N * K)))
    rows = [[value(u) for u in a[i * K : i * K + K]] for i in range(M)]
    columns = [[value(u) for u in b[i * K : i * K + K]] for i in range(N)]
    c = array.array("H", (bf16(sum(map(float.__mul__, r, q))) for r in rows for q in columns))
    for name, data in (("a", a), ("b", b), ("c", c)):
        with open(os.path.join(directory, name + ".bin"), "wb") as f:
            f.write(data.tobytes())

    def tensor(buffer, inner, outer, box):
        return {"tensor_map": {"buffer": buffer, "dims": [inner, outer], "box": box, "swizzle": 128}}

    launch = {
        "grid": ctas,
        "shared": 65536 + 32 + 512,
        "buffers": {
            "a": {"raw": "a.bin", "type": "bf16", "shape": [M, K]},
            "b": {"raw": "b.bin", "type": "bf16", "shape": [N, K]},
            "c": {"type": "bf16", "shape": [M, N], "fill": "nan", "expect": "c.bin", "tolerance": 0.01},
        },
        "params": [
            tensor("a", K, M, [64, 128]),
            tensor("b", K, N, [64, 64 // ctas]),
            tensor("c", N, M, [64, 64]),
            {"value": BLOCKS},
        ],
        "shared_names": [
            {"name": "A", "offset": 0, "stride": 16384, "count": 2},
            {"name": "B", "offset": 32768, "stride": 8192, "count": 2},
            {"name": "C", "offset": 49152, "stride": 8192, "count": 2},
            {"name": "full", "offset": 65536, "count": 2},
            {"name": "empty", "offset": 65552, "count": 2},
        ],
        "roles": [
            {"name": "producer", "first_warp": 0},
            {"name": "consumer 0", "first_warp": 4},
            {"name": "consumer 1", "first_warp": 8},
        ],
        "barrier_names": [{"id": 1, "name": "turn 0"}, {"id": 2, "name": "turn 1"}],
    }
    with open(os.path.join(directory, "launch.json"), "w") as f:
        json.dump(launch, f, indent=1)


def drop(name):
    """Removes the instruction with this name."""
    return lambda text: edit(text, name, lambda line: "")


def twice(name):
    return lambda text: edit(text, name, lambda line: line + "\n" + line)


def replace(name, old, new):
    def change(line):
        assert old in line, (name, old, line)
        return line.replace(old, new)

    return lambda text: edit(text, name, change)


def after(name, extra):
    return lambda text: edit(text, name, lambda line: line + "\n" + extra)


def before(name, extra):
    return lambda text: edit(text, name, lambda line: extra + "\n" + line)


def edit(text, name, change):
    out, n = [], 0
    for line in text.split("\n"):
        if line.endswith("// " + name):
            n += 1
            line = change(line)
        out.append(line)
    assert n, f"the kernel has no line named {name}"
    return "\n".join(out)


def move(name, to):
    """Moves the instruction `name` (with its guard's operands) right before the instruction `to`."""

    def apply(text):
        line = re.search(rf"^.*// {name}$", text, re.M).group()
        text = edit(text, name, lambda _: "")
        return edit(text, to, lambda target: line + "\n" + target)

    return apply


OTHER_SLOT = "xor.b32 %r24, %r5, 1; mad.lo.u32 %r24, %r24, 8, %r1; "
# Each damage, and the kinds of which at least one must be reported.
MUTATIONS = {
    "drop-arrive": (drop("release"), {"deadlock"}),
    "drop-full-wait": (replace("wait-full", "mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r8+65536], %r18", "setp.eq.u32 %p6, %r5, %r5"),
                       {"stale-data", "uninitialised-shared", "slot-overwritten"}),
    "drop-empty-wait": (replace("wait-empty", "mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r8+65552], %r7", "setp.eq.u32 %p6, %r5, %r5"),
                        {"slot-overwritten", "over-arrival", "race"}),
    "drop-proxy-fence": (drop("proxy-fence"), {"missing-proxy-fence"}),
    "drop-commit": (drop("commit"), {"register-in-flight", "slot-overwritten"}),
    "drop-last-wait": (drop("wait-0"), {"register-in-flight"}),
    "wait-group-too-many": (replace("wait-1", "aligned 1", "aligned 2"), {"slot-overwritten"}),
    "wait-group-too-many-at-end": (replace("wait-0", "aligned 0", "aligned 1"), {"register-in-flight"}),
    "wrong-full-parity": (replace("wait-full", "%r18", "1"), {"stale-data", "uninitialised-shared", "deadlock", "slot-overwritten"}),
    "wrong-empty-parity": (replace("wait-empty", "%r7", "0"), {"deadlock"}),
    "expect-too-many-bytes": (replace("expect", "24576", "24592"), {"deadlock"}),
    "expect-too-few-bytes": (replace("expect", "24576", "16384"), {"transaction-underflow"}),
    "drop-one-load": (drop("load-b"), {"deadlock"}),
    "early-release": (replace("release", "[%r23+65552]", "[%r8+65552]"), {"slot-overwritten", "deadlock"}),
    "release-before-wait": (replace("wait-1", "wgmma.wait_group.sync.aligned 1;",
                                    "@%p7 mbarrier.arrive.release.cta.shared::cta.b64 _, [%r8+65552];"),
                            {"slot-overwritten", "over-arrival"}),
    "arrive-count-too-large": (replace("init-empty", ", 2;", ", 3;"), {"deadlock"}),
    "arrive-count-too-small": (replace("init-empty", ", 2;", ", 1;"), {"slot-overwritten", "over-arrival", "parity-aliasing"}),
    "descriptor-off-by-one-row": (after("desc-b", "  add.u32 %r22, %r22, 8;"),
                                  {"stale-data", "uninitialised-shared", "slot-overwritten", "wrong-result"}),
    "turn-passed-twice": (twice("pass-turn"), {"named-barrier-count"}),
    "turn-not-passed": (drop("pass-turn"), {"deadlock"}),
    "turn-with-another-count": (replace("pass-turn", "256", "384"), {"named-barrier-count"}),
    "registers-over-the-pool": (replace("registers", "232", "240"), {"register-pool"}),
    "drop-wgmma-fence": (drop("fence"), {"missing-wgmma-fence"}),
    "drop-init-fence": (drop("init-fence"), {"missing-proxy-fence"}),
    "drop-start-barrier": (drop("start"), {"uninitialised-barrier"}),
    "drop-epilogue-barrier": (drop("epilogue"), {"race", "missing-proxy-fence", "stale-data", "uninitialised-shared", "slot-overwritten"}),
    "drop-store-wait": (drop("wait-store"), {"pending-at-exit"}),
    "drop-store-commit": (drop("commit-store"), {"pending-at-exit"}),
    "wait-for-both-slots": (before("expect", OTHER_SLOT + "OTHER: mbarrier.try_wait.parity.shared::cta.b64 %p13, [%r24+65552], %r7; "
                                   "@!%p13 bra OTHER;"), {"deadlock", "parity-aliasing"}),
    "stage-past-the-array": (replace("stage-c", "[%r33]", "[%r33+8192]"), {"out-of-bounds"}),
    "stage-past-everything": (replace("stage-c", "[%r33]", "[%r33+8704]"), {"out-of-bounds"}),
    "load-out-of-shared-memory": (replace("load-a", "[%r12]", "[%r12+229376]"), {"out-of-bounds"}),
    "misaligned-tiles": (replace("base", "smem;", "smem; add.u32 %r1, %r1, 512;"), {"bad-descriptor"}),
    "relaxed-release": (replace("release", "release.cta", "relaxed.cta"), {"slot-overwritten", "race"}),
    "release-twice": (twice("release"), {"over-arrival", "slot-overwritten"}),
    "arrival-left-over": (after("wait-0", "setp.eq.and.u32 %p13, %r14, 0, %p7; "
                                "@%p13 mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1+65552];"), {"pending-at-exit"}),
    "bytes-left-over": (after("wait-0", "setp.eq.and.u32 %p13, %r14, 0, %p7; "
                              "@%p13 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1+65552], 64;"), {"pending-at-exit"}),
    "turn-passed-to-myself": (replace("pass-turn", "%r17", "%r16"), {"deadlock", "named-barrier-count"}),
    "one-epilogue-barrier": (replace("epilogue-id", "add.u32 %r34, %r14, 8", "mov.u32 %r34, 8"), {"named-barrier-shared"}),
    "divergent-wgmma": (replace("commit", "wgmma.commit", "@%p7 wgmma.commit"), {"divergent-aligned"}),
}

# What can be wrong in a cluster only.
CLUSTER_MUTATIONS = {
    "drop-start": (drop("start"), {"uninitialised-barrier", "missing-proxy-fence"}),
    "arrive-count-of-one-cta": (replace("init-empty", ", 4;", ", 2;"), {"slot-overwritten", "over-arrival", "parity-aliasing"}),
    "arrive-count-too-large": (replace("init-empty", ", 4;", ", 5;"), {"deadlock"}),
    "release-here-only": (drop("remote"), {"race", "slot-overwritten", "stale-data"}),
    "one-thread-releases": (replace("release", "@%p11", "@%p7"), {"deadlock", "slot-overwritten", "over-arrival"}),
    "expect-own-part-only": (replace("expect", "24576", "20480"), {"transaction-underflow"}),
    "both-load-the-same-half": (drop("half"), {"slot-overwritten", "uninitialised-shared", "race", "stale-data"}),
    "no-multicast": (replace("destinations", "3;", "1;"), {"deadlock", "transaction-underflow"}),
    "multicast-outside": (replace("destinations", "3;", "7;"), {"invalid-operation"}),
    "drop-empty-wait": MUTATIONS["drop-empty-wait"],
    "drop-drain": (replace("drain", "mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r8+65552], %r7", "setp.eq.u32 %p6, %r5, %r5"),
                   {"peer-exited"}),
    "drop-one-load": (drop("load-b"), {"deadlock"}),
    "wrong-full-parity": MUTATIONS["wrong-full-parity"],
    "wait-group-too-many": MUTATIONS["wait-group-too-many"],
}
# What can be wrong between blocks.
BLOCK_MUTATIONS = {
    # A counter that is no atomic operation.
    "plain-ticket": (replace("take-ticket", "atom.global.add.u32 %r5, [%d1], 1;",
                             "ld.global.u32 %r5, [%d1]; add.u32 %r30, %r5, 1; st.global.u32 [%d1], %r30;"), {"race"}),
    "plain-count": (replace("count", "red.relaxed.gpu.global.add.u32 [%d1+12], 1;",
                            "ld.global.u32 %r30, [%d1+12]; add.u32 %r30, %r30, 1; st.global.u32 [%d1+12], %r30;"), {"race", "wrong-result"}),
    "volatile-count": (replace("count", "red.relaxed.gpu.global.add.u32 [%d1+12], 1;",
                               "ld.volatile.global.u32 %r30, [%d1+12]; add.u32 %r30, %r30, 1; "
                               "st.volatile.global.u32 [%d1+12], %r30;"), {"wrong-result"}),
    # A flag before its data, or that does not bring them along.
    "early-flag": (move("flag", "store"), {"race", "stale-data"}),
    "flag-before-barrier": (move("flag", "before-flag"), {"race", "stale-data"}),
    "drop-before-flag": (drop("before-flag"), {"race", "stale-data", "missing-proxy-fence"}),
    "relaxed-flag": (replace("flag", "st.release", "st.relaxed"), {"race", "stale-data"}),
    "weak-flag": (replace("flag", "st.release.gpu", "st"), {"race"}),
    "flag-of-narrow-scope": (replace("flag", "release.gpu", "release.cta"), {"race"}),
    "relaxed-wait": (replace("wait-flag", "ld.acquire", "ld.relaxed"), {"race", "stale-data"}),
    "weak-wait": (replace("wait-flag", "ld.acquire.gpu", "ld"), {"race"}),
    "wait-of-narrow-scope": (replace("wait-flag", "acquire.gpu", "acquire.cluster"), {"race"}),
    # One wait too few.
    "drop-wait-flag": (replace("test-flag", "%r9, 0", "%r9, 2"), {"race", "stale-data"}),
    "drop-wait-turn": (replace("test-turn", "setp.ne.u32 %p5, %r12, %r5", "setp.ne.u32 %p5, %r5, %r5"), {"race"}),
    "drop-wait-load": (replace("wait-load", "mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1+520], 0",
                               "setp.eq.u32 %p4, %r5, %r5"), {"stale-data", "uninitialised-shared"}),
    "everybody-is-last": (replace("last", "%r16, %r15", "%r16, %r16"), {"race"}),
    "one-too-early-is-last": (replace("last", "%r16, %r15", "%r16, 2"), {"race"}),
    # Fences.
    "drop-acquire-turn": (drop("acquire-turn"), {"race"}),
    "drop-release-turn": (drop("release-turn"), {"race"}),
    "release-turn-of-narrow-scope": (replace("release-turn", "gpu", "cta"), {"race"}),
    "drop-turn": (drop("turn"), {"race"}),
    "drop-end-of-turn": (drop("end-of-turn"), {"race"}),
    "drop-acquire-join": (drop("acquire-join"), {"race"}),
    "drop-proxy-fence": (drop("proxy-fence"), {"missing-proxy-fence"}),
    "proxy-fence-of-shared-memory": (replace("proxy-fence", "async;", "async.shared::cta;"), {"missing-proxy-fence"}),
    # A bulk store is over when it has written, not when it has read.
    "wait-for-reads-only": (replace("wait-store", "wait_group 0", "wait_group.read 0"), {"stale-data"}),
    "wrong-tx-count": (replace("expect", "256;", "272;"), {"deadlock"}),
}
KERNELS = {
    "gemm.ptx": (1, write_launch, MUTATIONS),
    "multicast.ptx": (2, write_launch, CLUSTER_MUTATIONS),
    "blocks.ptx": (5, write_blocks, BLOCK_MUTATIONS),
}


def simulate(simulator, ptx, directory, seeds):
    run = subprocess.run(
        [simulator, ptx, "--launch", os.path.join(directory, "launch.json"), "--seeds", str(seeds), "--threads", "1",
         "--max-diagnostics", "50"],
        capture_output=True, text=True, timeout=600,
    )
    return run.returncode, set(re.findall(r"error: \[([a-z-]+)\]", run.stderr)), run.stdout + run.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("simulator")
    parser.add_argument("kernel")
    parser.add_argument("directory")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--only")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.directory, exist_ok=True)
    ctas, write, mutations = KERNELS[os.path.basename(args.kernel)]
    write(args.directory, ctas)
    with open(args.kernel) as f:
        text = f.read()
    failures = 0
    code, kinds, output = simulate(args.simulator, args.kernel, args.directory, args.seeds)
    if code:
        print("the undamaged kernel is reported:\n" + output)
        failures += 1
    for name, (damage, expected) in mutations.items():
        if args.only and args.only != name:
            continue
        ptx = os.path.join(args.directory, name + ".ptx")
        with open(ptx, "w") as f:
            f.write(damage(text))
        code, kinds, output = simulate(args.simulator, ptx, args.directory, args.seeds)
        ok = code == 1 and kinds & expected
        failures += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {', '.join(sorted(kinds)) or 'nothing'}")
        if args.verbose or not ok:
            print(output)
    print(f"{len(mutations)} mutations, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
