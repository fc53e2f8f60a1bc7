# RUN: mkdir -p %t
# RUN: %python %s attention_gradients.tile %t
# RUN: %python %s attention_gradients_fixed.tile %t
"""Compares the gradients of variants, which the compiler derives from their scores, with the formulas on the interpreter;
and the formulas with central differences."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from gradients import CAUSAL, FULL, Variant, check, check_formulas  # noqa: E402
from reference import save  # noqa: E402

CAP, SLOPES, LEFT, RIGHT = 0.75, (0.5, 0.0625, 0.25), 9, 2


def capped_slope(s, h, q, k, sq, sk):
    return 1 - math.tanh(s / CAP) ** 2


def lowered(s, h, q, k, sq, sk):
    return s - SLOPES[h] * abs(q + sk - sq - k)


VARIANTS = {
    "causal": (CAUSAL, []),
    "window": (Variant(mask=lambda q, k, sq, sk: q + sk - sq - LEFT <= k <= q + sk - sq + RIGHT),
               ["--set", f"left={LEFT}", "--set", f"right={RIGHT}"]),
    "softcap": (Variant(lambda s, *place: CAP * math.tanh(s / CAP), capped_slope), ["--set", f"cap={CAP}"]),
    "alibi": (Variant(lowered), []),
}  # fmt: skip
# A score that no file has, whose slope differs on both sides of a corner.
OWN = """
func.func @bent(%s: f32, %k: i32) -> f32 {
  %half = arith.constant 0.5 : f32
  %limit = arith.constant 0.125 : f32
  %index = arith.sitofp %k : i32 to f32
  %sixteenth = arith.constant 0.0625 : f32
  %turns = arith.mulf %index, %sixteenth : f32
  %phase = arith.mulf %turns, %s : f32
  %wave = math.sin %phase : f32
  %above = arith.cmpf ogt, %s, %limit : f32
  %square = arith.mulf %s, %s : f32
  %bent = arith.select %above, %square, %wave : f32
  %y = arith.mulf %bent, %half : f32
  func.return %y : f32
}
func.func @score(%s: f32, %b: i32, %h: i32, %q: i32, %k: i32) -> f32 {
  %bent = func.call @bent(%s, %k) : (f32, i32) -> f32
  %y = arith.maximumf %bent, %s : f32
  func.return %y : f32
}
"""
# A score without a slope, and the gradient that its author wants.
STEPS = """
func.func @score(%s: f32, %b: i32, %h: i32, %q: i32, %k: i32) -> f32 {
  %y = math.floor %s : f32
  func.return %y : f32
}
func.func @score_gradient(%s: f32, %b: i32, %h: i32, %q: i32, %k: i32, %dy: f32) -> f32 {
  func.return %dy : f32
}
"""


def bent(s, h, q, k, sq, sk):
    return max(0.5 * (s * s if s > 0.125 else math.sin(k / 16 * s)), s)


def bent_slope(s, h, q, k, sq, sk):
    inner = 0.5 * (s * s if s > 0.125 else math.sin(k / 16 * s))
    return 1.0 if inner < s else s if s > 0.125 else k / 32 * math.cos(k / 16 * s)


def write(path, imports, text=""):
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(f'$import "{name}"\n' for name in imports) + text)
    return path


def main(template, folder):
    own = Variant(bent, bent_slope)
    for variant, _ in VARIANTS.values():
        check_formulas(variant)
    check_formulas(own)
    check(write(f"{folder}/plain.tile", [template]), folder, 1, 1, 1, 1, 64, 64, FULL, False)
    for name, (variant, arguments) in VARIANTS.items():
        kernel = write(f"{folder}/{name}.tile", [f"variants/{name}.tile", template])

        def compare(heads, kv_heads, sq, sk, d, dv, has_dlse, *more):
            extra = []
            if name == "alibi":
                save(f"{folder}/slopes.npy", list(SLOPES[:heads]), (heads,))
                extra = ["--input", f"slopes={folder}/slopes.npy"]
            check(kernel, folder, heads, kv_heads, sq, sk, d, dv, variant, has_dlse, *arguments, *extra, *more)

        compare(2, 1, 33, 50, 64, 64, True)
        compare(3, 1, 50, 33, 64, 64, False, "-DT=f16", "--level", "scheduled")
        compare(2, 2, 70, 70, 96, 64, False, "-DGN=64")
        compare(2, 1, 33, 150, 256, 64, True)
        if name in ("window", "softcap") and "fixed" not in template:
            compare(6, 2, 50, 37, 64, 64, True, "-DPARTS=2")
            compare(4, 2, 150, 130, 64, 64, False, "-DGM=64", "-DLISTS=one", "-DCHUNK=1", "-DFIXED=true", "--level", "scheduled")
        if name == "window" and "fixed" not in template:
            lists = "-DVISITS=list", "-DLISTS=one", "--kernel", "attention_gradients"
            compare(4, 2, 150, 130, 64, 64, False, "-DGM=64", *lists, "-DCHUNK=1")
            compare(6, 2, 150, 130, 64, 64, False, "-DGM=64", "-DVISITS=list", *lists[2:], "-DPARTS=2")
    kernel = write(f"{folder}/own.tile", [template], OWN)
    check(kernel, folder, 2, 1, 40, 50, 64, 64, own, True, "-DT=f16")
    kernel = write(f"{folder}/steps.tile", [template], STEPS)
    steps = Variant(lambda s, *place: math.floor(s))
    check(kernel, folder, 2, 1, 40, 50, 64, 64, steps, False, "-DT=f16", "--level", "scheduled")


main(*sys.argv[1:])
