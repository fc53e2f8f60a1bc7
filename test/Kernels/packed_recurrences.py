# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear %t
"""Walks over packed sequences, each in chunks of its own, on the simulator beside the interpreter: sequences of one chunk, of none and of
several, whose last chunks hold rows of zeros."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import draw, run, save, save_integers  # noqa: E402

TABLE = {"firsts": [0, 1, 2], "pasts": [1, 1, 4], "lengths": [40, 0, 100]}
SHAPES = "B=1,H=2,HK=1,L=256,V=64,S=3"


def main(folder, out):
    for name, numbers in TABLE.items():
        save_integers(f"{out}/{name}.npy", numbers, "i32")
    save(f"{out}/k.npy", [x / 16 for x in draw(1, 256, 64)], (1, 1, 256, 64))
    save(f"{out}/g.npy", [-abs(x) / 4 for x in draw(2, 2, 256)], (1, 2, 256))
    save(f"{out}/channels.npy", [-abs(x) / 4 for x in draw(3, 256, 64)], (1, 1, 256, 64))
    for source, shape, inputs in (
        ("retention", f"{SHAPES},HV=1", ("firsts", "pasts", "lengths", "k")),
        ("delta_rule", SHAPES, ("firsts", "pasts", "k", "g")),
        ("delta_rule_states", SHAPES, ("firsts", "pasts", "k", "g")),
        ("gla", SHAPES, ("firsts", "pasts", "k", "channels")),
    ):
        options = [word for name in inputs for word in ("--input", f"{name.replace('channels', 'g')}={out}/{name}.npy")]
        given = ["-DPACKED=true", "-DINITIAL=true", "-DFINAL=true", "-DDK=64", "-DDV=32", "--shape", shape, "--set", "scale=0.5"]
        run(f"{folder}/{source}.tile", *given, *options, "--pad-rows", "8", "--device", "sim", "--check")


main(*sys.argv[1:])
