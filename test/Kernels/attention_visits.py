# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/variants/documents.tile %t
"""The lists of blocks of attention_visits.tile are those that the mask leaves, whole ones, those of which @mask alone says a part
and others apart, and attention over them is attention. On the interpreter and on the simulator."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import load, run, save  # noqa: E402

BM, BN = 64, 32


def blocks_of(rows, place, data, keys):
    """The blocks in which rows see something: in part, as `place` alone says, in part, and of which each row sees all."""
    placed, masked, whole = [], [], []
    for block in range(-(-keys // BN)):
        pairs = [(q, k) for q in rows for k in range(block * BN, block * BN + BN)]
        by_place = [place(q, k) for q, k in pairs]
        seen = [own and data(q, k) for own, (q, k) in zip(by_place, pairs)]
        if all(seen):
            whole.append(block)
        elif any(seen):
            (placed if seen == by_place else masked).append(block)
    return placed, masked, whole


def check_lists(folder, documents, sq, sk, causal):
    lists, counts = (load(f"{folder}/{name}.npy") for name in ("lists", "counts"))
    length = -(-sk // BN)
    for b, of in enumerate(documents):
        for m in range(-(-sq // BM)):
            # Elements outside of a view are 0.
            document = lambda i: of[i] if 0 <= i < sk else 0  # noqa: E731

            def place(q, k):
                return k < sk and (k <= q + sk - sq or not causal)

            def data(q, k):
                return document(q + sk - sq) == document(k)

            placed, masked, whole = blocks_of(range(m * BM, m * BM + BM), place, data, sk)
            partial = placed + masked
            first = (b * -(-sq // BM) + m) * length
            found = list(lists[first : first + length])
            n, f, d = counts[3 * (b * -(-sq // BM) + m) :][:3]
            if not partial and not whole:
                assert (n, f, d, found[0]) == (1, 0, 1, 0), (m, n, f, d, found)
                continue
            assert (n, f, d) == (len(partial), len(whole), len(masked)), (m, n, f, d, partial, masked, whole)
            assert found[:n] == partial and found[::-1][:f] == whole, (m, found, partial, whole)


def main(kernel, folder):
    random.seed(1)
    for sq, sk, count, causal, ordered in (
        (203, 203, 4, True, True),
        (128, 300, 3, False, True),
        (1, 113, 2, True, True),
        (150, 150, 3, False, False),
        (300, 40, 2, True, True),
        (70, 2500, 9, False, False),
    ):
        documents = [[random.randrange(count) for _ in range(sk)] for _ in range(2)]
        documents = [sorted(of) if ordered else of for of in documents]
        save(f"{folder}/documents.npy", [x for of in documents for x in of], (2, sk))
        shape = ["--shape", f"B=2,H=2,HK=1,SQ={sq},SK={sk},TILES={-(-sq // BM)},LENGTH={-(-sk // BN)}"]
        options = ["-DD=64", f"-DBM={BM}", f"-DBN={BN}", f"-DCAUSAL={str(causal).lower()}"]
        options += ["--input", f"documents={folder}/documents.npy"]
        flags = f"flags={folder}/flags.npy"
        outputs = [word for name in ("lists", "counts") for word in ("--output", f"{name}={folder}/{name}.npy")]
        sizes = ["--shape", "B=2," + shape[1].split(",", 5)[5]]
        for device in ("interp", "sim"):
            run(kernel, *options, *shape, "--kernel", "attention_flags", "--device", device, "--output", flags)
            # Long lists are made in parts.
            parts = options[:-2] + ["--input", flags]
            run(kernel, *parts, *sizes, "--kernel", "attention_lists", "--device", device, *outputs)
            check_lists(folder, documents, sq, sk, causal)
        run(kernel, *options, *shape[:1], shape[1].split(",TILES")[0], "--set", "scale=0.125", "--device", "sim", "--check")


main(*sys.argv[1:])
