"""Long launches of attention whose first tiles hold, or fail, on the simulator: by blocks and by clusters of two.

    attention_probes.py KERNEL.tile

Where all tiles fail, and each ran in both programs, a launch would have more than twice the instructions.
"""

import re
import subprocess
import sys

SCHEDULE = "persistent=dynamic,consumers=2,stages=2,overlap=1,speculate=true,store=direct,pingpong=false"
# Heads, queries and keys: of each block of the grid, or cluster, 16 tiles or 8 with 400 steps. And fields of the schedule, thread blocks.
CASES = {
    "blocks": (32, 128, 1600, "cluster=1", 2),
    "clusters": (16, 256, 3200, "cluster=2", 4),
}
HOLDS, FAILS = 0.3, 100


def count(kernel, heads, queries, keys, cluster, blocks, scale):
    command = ["tessera", "run", kernel, "-DD=64", "-DBM=128", "-DBN=64", "--no-database", "--check", "--seeds", "1", "--device", "sim"]
    command += ["--shape", f"B=1,H={heads},HK={heads},SQ={queries},SK={keys}", "--set", f"scale={scale}"]
    command += ["--schedule", f"{SCHEDULE},{cluster}", "--sim-blocks", str(blocks)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return int(re.search(r" (\d+) warp instructions", done.stdout)[1])


def main(kernel):
    for name, case in CASES.items():
        holding, failing = (count(kernel, *case, scale) for scale in (HOLDS, FAILS))
        print(f"{'ok' if 1.1 < failing / holding < 1.8 else 'FAIL'}   {name}: {failing / holding:.2f} of the instructions")


main(*sys.argv[1:])
