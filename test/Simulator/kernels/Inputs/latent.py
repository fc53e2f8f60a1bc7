"""Runs `tessera check` on mla_decode.tile, mla_few_heads.tile and mla_sparse.tile, over lengths that lie around pages and steps, lists, forms
and schedules.

latent.py DIRECTORY WORKDIR: DIRECTORY holds the .tile sources.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../Kernels/Inputs"))
from reference import save_integers  # noqa: E402
from shares import balance  # noqa: E402

LENGTHS = [100, 0, 300, 64, 1, 130, 63]
SHARES, LEAST = 3, 2


def check(directory, work, lengths, defines, schedule, heads, queries, page=64, source="mla_decode.tile"):
    is_balanced = "BALANCED=true" in defines or source == "mla_few_heads.tile"
    batch = len(lengths)
    pages = max(1, max(-(-length // page) for length in lengths))
    numbers = [(7 * i + 3) % (batch * pages + 1) for i in range(batch * pages)]
    starts, first, past, size = balance(lengths, SHARES, 64, LEAST)
    inputs = {"lengths": lengths, "pages": numbers}
    shape = f"H={heads},SQ={queries},HK=1,PAGES={batch * pages + 1}"
    if is_balanced:
        inputs.update(starts=starts, first_of=first, past_of=past, size_of=[size] * SHARES)
        shape += f",PB={batch},SLOTS={batch + SHARES}"
    else:
        shape += f",PB={2 * batch}"
    given = []
    for name, values in inputs.items():
        save_integers(f"{work}/{name}.npy", values, "i32", [batch, pages] if name == "pages" else None)
        given += ["--input", f"{name}={work}/{name}.npy"]
    if not is_balanced:
        given += ["--set", "share=192"]
    run(os.path.join(directory, source), shape, given, [f"PAGE={page}", *defines], schedule)


def check_lists(directory, work, lengths, defines, schedule, heads, entries=100):
    """Lists name rows twice, in no order, and none: before, behind and far from the cache."""
    rows, count = 150, len(lengths)
    lists = [(-1, rows, 2**31 - 1, -(2**31), 7)[i % 5] if i % 9 == 4 else i * i % rows for i in range(count * entries)]
    inputs = {"pages": (lists, [count, entries])}
    if "LENGTHS=true" in defines:
        inputs["lengths"] = (lengths, None)
    given = ["--set", "share=64"]
    for name, (values, shape) in inputs.items():
        save_integers(f"{work}/{name}.npy", values, "i32", shape)
        given += ["--input", f"{name}={work}/{name}.npy"]
    run(os.path.join(directory, "mla_sparse.tile"), f"H={heads},SQ=1,HK=1,PAGES={rows},PB={2 * count}", given, defines, schedule)


def run(source, shape, given, defines, schedule):
    command = ["tessera", "check", source, "--set", "scale=0.04", "--shape", shape, *given]
    for define in defines:
        command += ["-D", define]
    done = subprocess.run([*command, "--schedule", schedule, "--seeds", "3", "--threads", "1"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(done.args)}\n{done.stdout}{done.stderr}")


def main(directory, work):
    check(directory, work, LENGTHS, ["CAUSAL=false"], "", 128, 1)
    check(directory, work, LENGTHS, ["CAUSAL=false", "T=f16", "OUT=f32"], "pingpong=true", 64, 1, page=128)
    check(directory, work, LENGTHS, ["CAUSAL=false"], "cluster=2,pingpong=true", 128, 1)
    check(directory, work, LENGTHS[:4], ["HEADS=16"], "consumers=3", 16, 3)
    check(directory, work, LENGTHS, ["CAUSAL=false", "BALANCED=true"], "", 64, 1)
    check(directory, work, LENGTHS, ["CAUSAL=false", "BALANCED=true"], "pingpong=true,cluster=2", 128, 1)
    check(directory, work, LENGTHS, ["HEADS=32", "BALANCED=true", "SINK=true"], "pingpong=true", 32, 2)
    check(directory, work, LENGTHS, ["CAUSAL=false"], "", 128, 1, page=16)
    check(directory, work, LENGTHS, ["HEADS=16", "BALANCED=true"], "persistent=none", 16, 3, page=8)
    # Rows of pages in runs, by bulk copies.
    check(directory, work, LENGTHS, ["HEADS=16", "BALANCED=true"], "persistent=none", 16, 3, page=16)
    check(directory, work, LENGTHS, ["CAUSAL=false", "BALANCED=true"], "", 64, 1, page=32)
    check(directory, work, LENGTHS, ["CAUSAL=false", "BALANCED=true"], "cluster=2", 128, 1, page=16)
    check(directory, work, LENGTHS[:4], ["HEADS=32", "T=f16"], "consumers=3", 32, 2, page=48)
    check_lists(directory, work, [100, 0, 37], [], "", 128)
    check_lists(directory, work, [100, 0, 37, 64, 1], ["LENGTHS=true", "OUT=f32", "SINK=true", "MAXIMA=true"], "producer=operands", 64)
    check_lists(directory, work, [100, 0, 37], [], "cluster=2", 128)
    # Rows of 512 numbers, and of 8 bits.
    check(directory, work, LENGTHS[:4], ["KEY=512", "CAUSAL=false"], "", 64, 1)
    check_lists(directory, work, [100, 0, 37], ["KEY=512", "SINK=true"], "", 64)
    check(directory, work, LENGTHS, ["CAUSAL=false", "CACHED=f8E4M3FN", "BALANCED=true"], "", 64, 1)
    check(directory, work, LENGTHS, ["HEADS=16", "CACHED=f8E4M3FN", "STEP=64"], "", 16, 3, page=16)
    check_lists(directory, work, [100, 0, 37], ["CACHED=f8E4M3FN"], "", 128)
    check_lists(directory, work, [100, 0, 37], ["CACHED=f8E4M3FN"], "cluster=2", 128)
    check_lists(directory, work, [100, 0, 37, 64], ["CACHED=f8E4M3FN", "LENGTHS=true", "HEADS=16", "SINK=true"], "persistent=dynamic", 16)
    # By steps of 32 keys, with two slots of converted rows.
    check(directory, work, LENGTHS, ["CAUSAL=false", "CACHED=f8E4M3FN", "BALANCED=true", "STEP=32"], "", 64, 1)
    check(directory, work, LENGTHS, ["HEADS=16", "CACHED=f8E4M3FN"], "", 16, 3, page=16)
    check(directory, work, LENGTHS, ["CAUSAL=false", "CACHED=f8E4M3FN", "BALANCED=true"], "cluster=2", 128, 1, page=48)
    check_lists(directory, work, [100, 0, 37], ["CACHED=f8E4M3FN", "STEP=32"], "stages=4", 64)
    # Few rows of Q as columns.
    for defines, heads, queries, page in (
        (["CAUSAL=false"], 16, 1, 64), (["HEADS=8", "SINK=true", "T=f16"], 8, 2, 128), (["HEADS=4", "SINK=true", "KEY=512"], 12, 3, 64),
    ):  # fmt: skip
        check(directory, work, LENGTHS, defines, "", heads, queries, page, "mla_few_heads.tile")
    print("ok")


main(*sys.argv[1:])
