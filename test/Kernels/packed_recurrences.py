# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear %t
"""Walks over packed sequences, each in chunks of its own, on the simulator beside the interpreter: sequences of one chunk, of none and of
several, which begin and end anywhere, and a chunk of no sequence."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import draw, run, save, save_integers  # noqa: E402

TABLES = {"firsts": [0, 1, 1], "pasts": [1, 1, 3], "starts": [0, 40, 104, 168], "ends": [40, 140, 140, 140]}
FURTHER = {"delta_rule_bwd": ("-DDW=64", "-DADD=true")}
ROWS = [40, 64, 36, 0]
SHAPES = "B=1,H=2,HK=1,L=140,V=64,S=3,N=4"


def main(folder, out):
    for name, numbers in TABLES.items():
        save_integers(f"{out}/{name}.npy", numbers, "i32")
    save(f"{out}/k.npy", [x / 16 for x in draw(1, 140, 64)], (1, 1, 140, 64))
    # Gates of heads lie in chunks, with 0 behind the end of each sequence.
    gates = [-abs(x) / 4 for x in draw(2, 2, 256)]
    save(f"{out}/g.npy", [x if i % 64 < ROWS[i // 64 % 4] else 0.0 for i, x in enumerate(gates)], (1, 2, 256))
    save(f"{out}/channels.npy", [-abs(x) / 4 for x in draw(3, 140, 64)], (1, 1, 140, 64))
    for source, width, shape, inputs in (
        ("retention", 64, f"{SHAPES},HV=1", ("k",)),
        ("retention", 32, f"{SHAPES},HV=1", ("k",)),
        ("delta_rule", 64, f"{SHAPES},R=256", ("k", "g")),
        ("delta_rule_states", 32, f"{SHAPES},R=256", ("k", "g")),
        ("gla", 32, SHAPES, ("k", "channels")),
        ("delta_rule_bwd", 32, f"{SHAPES},R=256,K=64,PV=2,NK=256", ("k", "g")),
    ):
        options = [word for name in (*TABLES, *inputs) for word in ("--input", f"{name.replace('channels', 'g')}={out}/{name}.npy")]
        options += [*FURTHER.get(source, ()), "--shape", shape, "--set", "scale=0.5"]
        given = ["-DPACKED=true", "-DINITIAL=true", "-DFINAL=true", "-DDK=64", f"-DDV={width}"]
        run(f"{folder}/{source}.tile", *given, *options, "--pad-rows", "8", "--device", "sim", "--check")


main(*sys.argv[1:])
