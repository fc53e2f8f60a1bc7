# RUN: rm -rf %t && mkdir -p %t
# RUN: %python %s %source/kernels %t
"""A row that sees one key gets its value, to the last bit, whatever hides the others: bounds, a mask by place or by data, a score that is
chosen, or one that is loaded. By the interpreter and as compiled by the simulator, with rows that see nothing of the first
block too."""

import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import draw, load, run, save, save_integers  # noqa: E402

OWN = "  %own = arith.cmpi eq, %k, %q : i32\n"
MASK = "func.func @mask(%b: i32, %h: i32, %q: i32, %k: i32) -> i1 {\n" + OWN + "  func.return %own : i1\n}\n"
SCORE = "func.func @score(%s: f32, %b: i32, %h: i32, %q: i32, %k: i32) -> f32 {\n"
CHOICE = "  %hidden = arith.constant {} : f32\n  %y = arith.select %own, %s, %hidden : f32\n  func.return %y : f32\n}}\n"
SUM = "  %zero = arith.constant 0.0 : f32\n  %hidden = arith.constant 0xFF800000 : f32\n"
SUM += "  %more = arith.select %own, %zero, %hidden : f32\n  %y = arith.addf %s, %more : f32\n  func.return %y : f32\n}\n"
LEAST_OF_BF16 = "0xFF7F0000"
#: What a variant defines, by what it shows.
FUNCTIONS = {
    "a mask by place": MASK,
    "a score that is chosen": SCORE + OWN + CHOICE.format("0xFF800000"),
    "the least score": SCORE + OWN + CHOICE.format(LEAST_OF_BF16),
    "a score to which a choice is added": SCORE + OWN + SUM,
}


def check(what, kernel, folder, keys, d, dtype, *arguments):
    shape = (1, 2, keys, d)
    tensors = {name: draw(seed, *shape) for seed, name in enumerate("qkv")}
    arguments = [kernel, f"-DD={d}", f"-DT={dtype}", "--set", "scale=0.3", *arguments]
    for name, values in tensors.items():
        save(f"{folder}/{name}.npy", values, shape)
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    for device in ("interp", "sim"):
        run(*arguments, "--device", device, "--output", f"o={folder}/o.npy")
        wrong = [i for i, (o, v) in enumerate(zip(load(f"{folder}/o.npy"), tensors["v"])) if o != v]
        if wrong:
            rows = sorted({i // d for i in wrong})
            sys.exit(f"{what}, D = {d}, {dtype}, {device}: {len(wrong)} elements in rows {rows[:8]} differ from V")


def main(kernels, folder):
    keys = 332  # so that rows of biases begin at multiples of 16 bytes
    save_integers(f"{folder}/documents.npy", range(keys), "i32", (1, keys))
    bias = [0.0 if i % (keys + 1) == 0 else float("-inf") for i in range(keys * keys)]
    save(f"{folder}/bias.npy", bias + bias, (2, keys, keys))
    for d, dtype in itertools.product((64, 128), ("bf16", "f16")):
        for what, text in FUNCTIONS.items():
            source = f"{folder}/variant.tile"
            with open(source, "w") as file:
                file.write('$import "attention.tile"\n\n' + text)
            check(what, source, folder, keys, d, dtype)
        documents, bias = f"{kernels}/variants/documents.tile", f"{kernels}/variants/bias.tile"
        for causal in ("true", "false"):
            check("documents", documents, folder, keys, d, dtype, f"-DCAUSAL={causal}", "--input", f"documents={folder}/documents.npy")
        window = f"{kernels}/variants/window.tile"
        check("bounds", window, folder, keys, d, dtype, "--set", "left=0", "--set", "right=0")
        check("a bias", bias, folder, keys, d, dtype, "--input", f"bias={folder}/bias.npy")


main(*sys.argv[1:])
