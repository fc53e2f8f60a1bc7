# The default kernel for D = 128 and the tile table of FlashAttention-3 (hopper/tile_size.h, 16-bit types) assemble without a
# spill, and ptxas says nothing of C75xx but C7517 and C7519, which only announce an injected wait and fence. Without
# TESSERA_THOROUGH=1 each assembler takes every other tile in bf16 and the rest in f16, the other assembler the other way about.
#
# REQUIRES: ptxas
# RUN: mkdir -p %t
# RUN: %if ptxas-12 %{ %python %s %source/kernels/attention_fwd.tile %t %ptxas-12 0 %}
# RUN: %if ptxas-13 %{ %python %s %source/kernels/attention_fwd.tile %t %ptxas-13 1 %}

import json
import os
import pathlib
import re
import subprocess
import sys

SOURCE, WORK, PTXAS, TURN = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])

# Parameters, and the tile that the kernel chooses itself where none is named.
TILES = [
    "D=128 CAUSAL=false",
    "D=128 CAUSAL=true",
    "D=64 BM=192 BN=128 CAUSAL=false",
    "D=64 BM=192 BN=128 CAUSAL=true",
    "D=96 BM=192 BN=144 CAUSAL=false SCHEDULE=overlap=1",
    "D=128 BM=128 BN=176 CAUSAL=false",
    "D=128 BM=128 BN=128 CAUSAL=true",
    "D=192 DV=128 BM=128 BN=128 CAUSAL=true",
    "D=192 BM=128 BN=112 CAUSAL=false",
    "D=256 BM=128 BN=80 CAUSAL=false",
    "D=256 BM=128 BN=80 CAUSAL=true",
]
# FlashAttention-3 keeps P of this one in shared memory; here it does not fit, whatever the schedule.
REFUSED = ["D=64 BM=192 BN=192 CAUSAL=false"]


def compile_kernel(tile, element, folder):
    """Returns the exit code, the messages, ptxas' log and the report."""
    defines, schedule = [f"-DT={element}"], []
    for field in tile.split():
        if field.startswith("SCHEDULE="):
            schedule = ["--schedule", field.removeprefix("SCHEDULE=")]
        else:
            defines.append("-D" + field)
    command = ["tessera", "compile", SOURCE, *defines, *schedule, "--ptxas", PTXAS, "--emit", "cubin", "--report=json"]
    command += ["-o", str(folder / "kernel.cubin"), "--dump-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    logs = list(folder.glob("**/ptxas.log"))
    report = json.loads(done.stdout)["attention_fwd"]["resources"] if done.returncode == 0 else {}
    return done.returncode, done.stderr, logs[0].read_text() if logs else "", report


def check(tile, element):
    folder = WORK / re.sub(r"\W", "-", f"{os.path.basename(os.path.dirname(PTXAS))}-{tile}-{element}")
    code, messages, log, report = compile_kernel(tile, element, folder)
    if tile in REFUSED:
        refused = code == 3 and "no schedule of this kernel fits the machine" in messages and "registers" in messages
        return None if refused else f"exit code {code}, expected a refusal: {messages[-800:]}"
    if code:
        return messages[-800:]
    if report["spill_load_bytes"] or report["spill_store_bytes"] or "0 bytes spill stores" not in log:
        return f"spills: {report}"
    codes = set(re.findall(r"C75\d\d", log)) - {"C7517", "C7519"}
    return f"ptxas says {', '.join(sorted(codes))}" if codes else None


def is_chosen(number, element):
    return os.environ.get("TESSERA_THOROUGH") == "1" or element == ("bf16", "f16")[(number + TURN) % 2]


cases = [(tile, element) for number, tile in enumerate(TILES + REFUSED) for element in ("bf16", "f16") if is_chosen(number, element)]
failures = [f"{tile} {element}: {wrong}" for tile, element in cases if (wrong := check(tile, element))]
sys.exit("\n".join(failures) or 0)
