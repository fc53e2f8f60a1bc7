# The registers that the model counts for attention are those that ptxas 13.0 took for whole kernels of the same
# tiles, within one; and tiles known to spill are rejected.
#
# RUN: %python %s %S/../Inputs/attention.mlir

import re
import subprocess
import sys

SOURCE = open(sys.argv[1]).read()


def attention(rows, keys, d):
    """The attention kernel of the input with another tile and head dimension."""
    text = re.sub(r"SQ ceildiv 128", f"SQ ceildiv {rows}", SOURCE)
    text = re.sub(r"(%bm = arith.constant) 128", rf"\1 {rows}", text)
    text = re.sub(r"(%bn = arith.constant) 128", rf"\1 {keys}", text)
    text = text.replace(", 128], bf16>", f", {d}], bf16>").replace("tensor<128xf32>", f"tensor<{rows}xf32>")
    lines = []
    for line in text.split("\n"):
        name = line.split()[0] if line.split() else ""
        if name in ("%kt", "%vt"):
            shapes = [f"{keys}x{d}"]
        elif name == "%ktt":
            shapes = [f"{keys}x{d}", f"{d}x{keys}"]
        elif name == "%s":
            shapes = [f"{rows}x{d}", f"{d}x{keys}", f"{rows}x{keys}"]
        elif name == "%o2":
            shapes = [f"{rows}x{keys}", f"{keys}x{d}", f"{rows}x{d}"]
        elif name in ("%qt", "%ozero", "%alb", "%o1", "%lb", "%on", "%oh", "->", "scf.yield", "tile.store"):
            shapes = [f"{rows}x{d}"]
        else:
            shapes = [f"{rows}x{keys}"]
        shapes = iter(shapes + shapes[-1:] * 4)
        lines.append(re.sub(r"128x128", lambda match: next(shapes), line))
    return "\n".join(lines)


def choose(rows, keys, d, schedule):
    """What the pass says about the kernel when it has to use `schedule`."""
    command = ["tessera-opt", f"--tile-override-schedule=schedule={schedule}", "--tile-choose-schedule"]
    run = subprocess.run(command, input=attention(rows, keys, d), capture_output=True, text=True)
    return run.returncode, run.stderr


MEASURED = {(128, 128, 128): 186, (128, 160, 128): 210, (128, 176, 128): 223, (128, 128, 64): 154, (128, 192, 64): 203,
            (128, 80, 256): 215, (192, 128, 64): 154}
for tile, registers in MEASURED.items():
    code, text = choose(*tile, "overlap=2")
    counted = re.search(r"it takes (\d+) of", text)
    assert code == 0 and counted and abs(int(counted[1]) - registers) <= 2, (tile, registers, text[:400])

SPILLING = [(128, 192, 128, "overlap=2"), (192, 144, 64, "overlap=2"), (192, 96, 128, "overlap=2"),
            (192, 128, 128, "overlap=2"), (128, 176, 128, "overlap=2,consumer_registers=208"),
            (128, 256, 64, "overlap=2")]
for *tile, schedule in SPILLING:
    code, text = choose(*tile, schedule + ",producer=operands")
    assert code != 0 and "registers and can use" in text, (tile, schedule, text[:400])
