# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/balance.tile %t
"""Compares the shares that balance.tile cuts, on the interpreter and on the simulator, with those of Python."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import load, run, save_integers  # noqa: E402
from shares import balance  # noqa: E402


def main(kernel, folder):
    for lengths, shares, least in (
        ([0], 3, 1), ([1, 0, 64, 65], 2, 1), ([4096] * 5, 132, 4), ([640] * 64, 66, 2), ([640] * 130, 66, 2),
        (random.Random(1).choices(range(9000), k=150), 70, 2), (random.Random(2).choices(range(300), k=63), 5, 1), ([100000, 3, 3], 8, 4),
    ):  # fmt: skip
        save_integers(f"{folder}/lengths.npy", lengths, "i32")
        starts, first, past, size = balance(lengths, shares, 64, least)
        none = [len(lengths)] * 2
        expected = {"starts": starts, "first": first + none, "past": past + none, "size": [size] * (shares + 2)}
        for device in ("interp", "sim"):
            outputs = [word for name in expected for word in ("--output", f"{name}={folder}/{name}.npy")]
            given = ["--input", f"lengths={folder}/lengths.npy", "--set", "step=64", "--set", f"least={least}", "--set", f"count={shares}", "--device", device]
            run(kernel, *given, "--shape", f"W={shares + 2},STARTS={len(lengths) + 1}", *outputs)
            for name, values in expected.items():
                found = [round(x) for x in load(f"{folder}/{name}.npy")]
                assert found == values, (device, lengths, shares, name, found, values)
        # A share of each sequence's steps, in order, and no number twice.
        pairs = [(b, w) for w in range(shares) for b in range(first[w], past[w])]
        assert len({b + w for b, w in pairs}) == len(pairs) <= len(lengths) + shares - 1
        for b in range(len(lengths)):
            own = [range(max(starts[b], w * size), min(starts[b + 1], (w + 1) * size)) for c, w in pairs if c == b]
            assert [step for part in own for step in part] == list(range(starts[b], starts[b + 1])), (lengths, b)


main(*sys.argv[1:])
