# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear %t
"""Kernels of the gradients of the delta rule with gates of channels on the simulator beside the interpreter: heads that share keys or
have their own, a last chunk in part, states that have and want gradients, packed sequences. What they compute is compared in test/Torch."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import draw, run, save, save_integers  # noqa: E402

TOKENS = 100
SHAPE = f"B=1,H=2,HK=1,L={TOKENS},V=64"


def main(folder, out):
    save(f"{out}/k.npy", [x / 16 for x in draw(1, TOKENS, 64)], (1, 1, TOKENS, 64))
    save(f"{out}/g.npy", [-abs(x) / 4 for x in draw(2, TOKENS, 64)], (1, 1, TOKENS, 64))
    inputs = ["--input", f"k={out}/k.npy", "--input", f"g={out}/g.npy", "--set", "scale=0.5", "--pad-rows", "8"]
    simulate = lambda source, *options: run(f"{folder}/{source}.tile", *inputs, *options, "--device", "sim", "--check")

    walk = ["-DDK=64", "-DDV=32", "-DSHARE=2", "-DINITIAL=true", "-DFINAL=true", "--shape"]
    simulate("kda_bwd", *walk, f"{SHAPE},NK=128")
    for added, extents in (("faded", ""), ("values", ",N=2")):
        run(f"{folder}/states.tile", f"-DADDED={added}", "-DDK=64", "-DDV=32", "-DMEET=true", "-DINITIAL=true", "--shape",
            f"{SHAPE},NK=128,PV=2{extents}", "--device", "sim", "--check")  # fmt: skip
    # The range of f16 takes products for rows of different blocks too.
    for element in ("bf16", "f16"):
        simulate("kda_gradients", "-DDW=64", f"-DT={element}", "--shape", f"{SHAPE},K=64,NK=128")
        simulate("kda_gradients", "-DDW=64", f"-DT={element}", "-DOWN=true", "--shape", f"{SHAPE.replace('H=2', 'H=1')},K=64,NK=128")
    for name, numbers in {"firsts": [0, 1, 1], "pasts": [1, 1, 2]}.items():
        save_integers(f"{out}/{name}.npy", numbers, "i32")
        inputs.extend(["--input", f"{name}={out}/{name}.npy"])
    simulate("kda_bwd", "-DPACKED=true", *walk, f"{SHAPE},NK=128,S=3")


main(*sys.argv[1:])
