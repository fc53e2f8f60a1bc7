# RUN: mkdir -p %t
# RUN: %python %s %t
"""Products of f32 by choice: each precision has the error that docs/kernels.md states, which a number whose terms all err to one side
comes close to. Of loaded, transposed and computed operands, with and without an accumulator, against double precision, on the
interpreter and the simulator."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import load, run, save  # noqa: E402

M, N, K = 70, 64, 64
KERNEL = """!A = !tile.view<[M, {k}], f32>
!B = !tile.view<[{n}, {k}], f32>
!C = !tile.view<[M, {n}], f32>
tile.kernel @k(%a: !A, %b: !B, %c: !C) grid(%m = M ceildiv 64) {{
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %at = tile.load %a[%row, %c0] : !A -> tensor<64x{k}xf32>
  %bt = tile.load %b[%c0, %c0] : !B -> tensor<{n}x{k}xf32>
  %b_t = tile.transpose %bt : tensor<{n}x{k}xf32> -> tensor<{k}x{n}xf32>
  %first = tile.dot %at, %b_t precision {precision} : tensor<64x{k}xf32>, tensor<{k}x{n}xf32> -> tensor<64x{n}xf32>
  %both = tile.dot %first, %first, %first precision {precision} : tensor<64x{n}xf32>, tensor<{n}x{n}xf32> -> tensor<64x{n}xf32>
  tile.store %{result}, %c[%row, %c0] : tensor<64x{n}xf32>, !C
}}
"""
# Of each product, as the document says, and of the sum in f32, which hides that of the last two.
ERRORS = {"bf16": 2**-7, "f16": 2**-10, "tf32": 2**-10, "bf16x3": 2**-15, "f16x3": 2**-21 + 2**-20, "bf16x6": 2**-24 + 2**-20}
# Numbers whose squares err by nearly as much: what terms leave is half of their last place, and positive.
WORST = {"bf16": 1 + 2**-8, "f16": 1 + 2**-11, "tf32": 1 + 2**-11, "bf16x3": 1 + 2**-8 - 2**-16 - 2**-17}


def main(folder):
    generator = random.Random(1)
    drawn = {name: [generator.gauss(0, 1) for _ in range(rows * K)] for name, rows in (("a", M), ("b", N))}
    for precision, bound in ERRORS.items():
        for name, values in drawn.items():
            values[:K] = [WORST.get(precision, 1.0)] * K
            save(f"{folder}/{name}.npy", values, (len(values) // K, K))
        a, b = ([own[i * K :][:K] for i in range(len(own) // K)] for own in (load(f"{folder}/{name}.npy") for name in drawn))
        with open(f"{folder}/k.tile", "w") as file:
            file.write(KERNEL.format(k=K, n=N, precision=precision, result="first"))
        for device in ("interp", "sim"):
            inputs = ["--input", f"a={folder}/a.npy", "--input", f"b={folder}/b.npy"]
            run(f"{folder}/k.tile", *inputs, "--output", f"c={folder}/c.npy", "--device", device)
            found, largest = load(f"{folder}/c.npy"), 0.0
            for i, x in enumerate(a):
                for j, y in enumerate(b):
                    size = sum(abs(p * q) for p, q in zip(x, y))
                    error = abs(found[i * N + j] - sum(p * q for p, q in zip(x, y))) / size
                    largest = max(largest, error)
            assert largest < bound, (precision, device, largest, bound)
            assert largest > 0.9 * bound or precision not in WORST, (precision, device, largest, bound)
        with open(f"{folder}/k.tile", "w") as file:
            file.write(KERNEL.format(k=K, n=N, precision=precision, result="both"))
        run(f"{folder}/k.tile", *inputs, "--device", "sim", "--check")


main(*sys.argv[1:])
