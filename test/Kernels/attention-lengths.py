# RUN: mkdir -p %t
# RUN: %python %s %t
"""Keys behind a length, of which K and V hold NaN: with ALIGN = end nothing of them reaches O or LSE, wherever the length ends, in all
forms of the program. On the interpreter and on the simulator."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402

SOURCE = """$import "attention.tile"

param ALIGN : name = "end"
param WINDOW : int = 1000

func.func @mask(%b: i32, %h: i32, %q: i32, %k: i32) -> i1 {
  %lengths = tile.argument "lengths" : !tile.view<[B], i32>
  %batch = arith.index_cast %b : i32 to index
  %length = tile.load %lengths[%batch] : !tile.view<[B], i32> -> i32
  %inside = arith.cmpi slt, %k, %length : i32
  %window = arith.constant $WINDOW : i32
  %first = arith.subi %q, %window : i32
  %near = arith.cmpi sgt, %k, %first : i32
  %seen = arith.andi %inside, %near : i1
  func.return %seen : i1
}
"""
D, SQ, SK = 64, 70, 200
LENGTHS = (130, 200, 1, 77, 0)


def hide(values, filler):
    """[B, 1, SK, D] with something else in rows behind the lengths."""
    return [x if i // D % SK < LENGTHS[i // D // SK] else filler for i, x in enumerate(values)]


def main(folder):
    source, names = f"{folder}/lengths.tile", ("q", "k", "v")
    with open(source, "w") as file:
        file.write(SOURCE)
    batch = len(LENGTHS)
    shape = ["--shape", f"B={batch},H=1,HK=1,SQ={SQ},SK={SK}", "--set", "scale=0.125"]
    save_integers(f"{folder}/lengths.npy", LENGTHS, "i32")
    tensors = {name: draw(seed, batch, SQ if name == "q" else SK, D) for seed, name in enumerate(names)}
    for filler in (0.0, math.nan):
        for name in names:
            values = tensors[name] if name == "q" else hide(tensors[name], filler)
            save(f"{folder}/{name}-{filler}.npy", values, (batch, 1, SQ if name == "q" else SK, D))

    def attend(filler, *options):
        """O and LSE."""
        inputs = [f"{name}={folder}/{name}-{filler}.npy" for name in names] + [f"lengths={folder}/lengths.npy"]
        stored = {name: f"{folder}/{name}.npy" for name in ("o", "lse")}
        pairs = [("--input", given) for given in inputs] + [("--output", f"{n}={path}") for n, path in stored.items()]
        run(source, "-DT=f16", f"-DD={D}", *shape, *options, *(word for pair in pairs for word in pair))
        return [load(path) for path in stored.values()]

    for window in (1000, 40):
        of_window = f"-DWINDOW={window}"
        exact = attend(0.0, of_window, "-DALIGN=start")
        for options in (
            (),
            ("--device", "sim"),
            ("--device", "sim", "-DBACKWARD=true", "-DBN=48", "--no-split"),
            ("--device", "sim", "-DREFERENCE=unbiased", "--schedule", "speculate=false"),
            ("--device", "sim", "-DBM=64", "-DBN=32", "--schedule", "producer=none"),
        ):
            for name, found, expected in zip(("O", "LSE"), attend(math.nan, of_window, *options), exact):
                compare(f"{name} of {options}, window {window}", found, expected, 4e-3)


main(*sys.argv[1:])
