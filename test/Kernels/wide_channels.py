# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear %t
"""Kernels of recurrences with gates of channels, for keys and values of 192 and 256, on the simulator beside the interpreter: a last chunk in
part, states before and behind, both directions. What they compute is compared in test/Torch."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import draw, run, save  # noqa: E402

TOKENS = 70
STATES = ["-DINITIAL=true", "-DFINAL=true"]


def main(folder, out):
    for width in (64, 192, 256):
        save(f"{out}/k{width}.npy", [x / 16 for x in draw(1, TOKENS, width)], (1, 1, TOKENS, width))
        save(f"{out}/g{width}.npy", [-abs(x) / 4 for x in draw(2, TOKENS, width)], (1, 1, TOKENS, width))

    def simulate(source, keys, gates, shape, *parameters):
        inputs = ["--input", f"k={out}/k{keys}.npy", "--input", f"g={out}/g{gates}.npy", "--set", "scale=0.5", "--pad-rows", "8"]
        extents = f"B=1,H=1,HK=1,L={TOKENS},{shape}"
        run(f"{folder}/{source}.tile", *inputs, *parameters, "--shape", extents, "--device", "sim", "--check")

    simulate("kda", 256, 256, "V=32", "-DDK=256", "-DDV=32", "-DSHARE=1", "-DOWN=true", *STATES)
    simulate("kda", 192, 192, "V=64", "-DDK=192", "-DDV=64", "-DSHARE=1", "-DNEWS=true")
    simulate("kda_bwd", 256, 256, "V=32,NK=512", "-DDK=256", "-DDV=32", "-DSHARE=1", *STATES)
    simulate("kda_bwd", 192, 192, "V=64,NK=384", "-DDK=192", "-DDV=64", "-DSHARE=1")
    run(f"{folder}/states.tile", "-DDK=256", "-DDV=32", "-DMEET=true", "-DADDED=faded", "-DINITIAL=true", "--shape",
        f"B=1,H=1,HK=1,L={TOKENS},V=32,PV=1,NK=512", "--device", "sim", "--check")  # fmt: skip
    simulate("kda_gradients", 64, 64, "V=256,K=64,NK=128", "-DDW=256")
    simulate("gla", 256, 256, "V=32", "-DDK=256", "-DDV=32", *STATES)
    simulate("gla", 192, 192, "V=64", "-DDK=192", "-DDV=64", "-DREVERSE=true", "-DT=f16", *STATES)
    simulate("gla_bwd", 256, 256, "V=32,NK=512", "-DDK=256", "-DDV=32", *STATES)
    simulate("gla_bwd", 192, 192, "V=64,NK=384", "-DDK=192", "-DDV=64", "-DT=f16")
    simulate("gla_gradients", 64, 64, "V=256,K=64,NK=128,N=2", "-DDW=256")


main(*sys.argv[1:])
