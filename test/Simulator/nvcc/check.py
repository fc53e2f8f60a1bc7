"""Runs the kernels that nvcc compiled and compares with Python's own arithmetic.  check.py SIMULATOR WORKDIR"""
import array
import json
import math
import os
import random
import struct
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
simulator, work = sys.argv[1:3]
os.makedirs(work, exist_ok=True)
rng = random.Random(3)


def save(name, typecode, values):
    with open(os.path.join(work, name), "wb") as f:
        f.write(array.array(typecode, values).tobytes())


def bf16(x):
    u = struct.unpack("<I", struct.pack("<f", x))[0]
    return (u + 0x7FFF + (u >> 16 & 1)) >> 16


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def simulate(name, launch):
    path = os.path.join(work, name + ".json")
    with open(path, "w") as f:
        json.dump(launch, f)
    subprocess.run([simulator, os.path.join(here, name + ".ptx"), "--launch", path, "--seeds", "8"], check=True)
    print(name, "agrees")


rows, columns = 3, 700
x = [f32(rng.gauss(0, 3)) for _ in range(rows * columns)]
save("x.bin", "f", x)
y = []
for r in range(rows):
    row = x[r * columns : (r + 1) * columns]
    e = [math.exp(v - max(row)) for v in row]
    y += [v / sum(e) for v in e]
save("y.bin", "f", y)
simulate("softmax", {
    "grid": rows, "block": 256,
    "buffers": {"x": {"raw": "x.bin", "type": "f32"},
                "y": {"type": "f32", "shape": [rows, columns], "fill": "nan", "expect": "y.bin", "tolerance": 1e-5}},
    "params": [{"buffer": "x"}, {"buffer": "y"}, {"value": columns}],
})

m, n, k = 128, 32, 448
a = [rng.uniform(-1, 1) for _ in range(m * k)]
b = [rng.uniform(-1, 1) for _ in range(n * k)]
save("a.bin", "H", map(bf16, a))
save("b.bin", "H", map(bf16, b))
rounded = lambda v: struct.unpack("<f", struct.pack("<I", bf16(v) << 16))[0]
ra = [[rounded(v) for v in a[i * k : i * k + k]] for i in range(m)]
rb = [[rounded(v) for v in b[i * k : i * k + k]] for i in range(n)]
save("c.bin", "f", (sum(map(float.__mul__, p, q)) for p in ra for q in rb))
tensor = lambda buffer, outer, rows: {"tensor_map": {"buffer": buffer, "dims": [k, outer], "box": [64, rows], "swizzle": 128}}
simulate("gemm", {
    "grid": [n // 16, m // 64], "block": 256, "shared": 3 * (64 + 16) * 64 * 2,
    "buffers": {"a": {"raw": "a.bin", "type": "bf16"}, "b": {"raw": "b.bin", "type": "bf16"},
                "c": {"type": "f32", "shape": [m, n], "fill": "nan", "expect": "c.bin", "tolerance": 1e-5}},
    "params": [tensor("a", m, 64), tensor("b", n, 16), {"buffer": "c"}, {"value": n}, {"value": k}],
})

clusters = 2
t = [f32(rng.uniform(-1, 1)) for _ in range(clusters * 64 * 32)]
save("t.bin", "f", t)
sums = [sum(t[c * 2048 : c * 2048 + 2048]) for c in range(clusters)]
save("sums.bin", "f", [s for s in sums for _ in range(2)])
save("count.bin", "I", [2 * clusters])
simulate("cluster", {
    "grid": 2 * clusters, "block": 128,
    "buffers": {"t": {"raw": "t.bin", "type": "f32"},
                "sums": {"type": "f32", "shape": [2 * clusters], "fill": "nan", "expect": "sums.bin", "tolerance": 1e-4},
                "count": {"type": "u32", "shape": [1], "expect": "count.bin"}},
    "params": [{"tensor_map": {"buffer": "t", "dims": [32, clusters * 64], "box": [32, 32]}}, {"buffer": "sums"}, {"buffer": "count"}],
})
