# RUN: mkdir -p %t
# RUN: %python %s %S/Inputs/paged-tokens.tile %source/kernels %t
# RUN: not tessera compile %source/kernels/variants/documents.tile -DHEADS=2 -DLISTS=head -o %t.out 2>&1 | FileCheck %s
# CHECK: -D LISTS=head: error: parameter 'LISTS' cannot be head; allowed: batch, one
"""Where tiles lie: rows of several heads, with each variant, give what rows of one head give. Keys in pages, and queries of all
sequences one behind the other, give what they give where each sequence has a place of its own."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import compare, draw, load, run, save, save_integers  # noqa: E402

D, SCALE = 64, 0.125
VARIANTS = {
    "attention": [],
    "variants/causal": [],
    "variants/window": ["--set", "left=20", "--set", "right=3"],
    "variants/softcap": ["--set", "cap=2"],
    "variants/alibi": [],
    "variants/sink": [],
    "variants/bias": [],
    "variants/relative": ["--shape", "DISTANCES=159"],
    "variants/packed": [],
    "variants/packed_full": [],
    "variants/documents": [],
}


def give(folder, **tensors):
    """Writes (values, shape) and gives the arguments that read them."""
    words = []
    for name, (values, shape) in tensors.items():
        path = f"{folder}/{name}.npy"
        save(path, values, shape) if isinstance(values[0], float) else save_integers(path, values, "i32", shape)
        words += ["--input", f"{name}={path}"]
    return words


def outputs(folder, *names, arguments):
    run(*arguments, *(word for name in names for word in ("--output", f"{name}={folder}/out-{name}.npy")))
    return [load(f"{folder}/out-{name}.npy") for name in names]


def check_heads(kernels, folder):
    """32 queries of two heads in a tile, and 16 of four, of which the last tile has fewer."""
    shape = ["--shape", "B=2,H=8,HK=2,SQ=40,SK=120", "--set", f"scale={SCALE}", f"-DD={D}"]
    for variant, arguments in VARIANTS.items():
        source = [f"{kernels}/{variant}.tile", *shape, *arguments]
        expected = outputs(folder, "o", "lse", arguments=source)
        for heads, device in ((2, "interp"), (4, "sim")):
            tiles = [f"-DHEADS={heads}", "-DBM=64", "--device", device]
            found = outputs(folder, "o", "lse", arguments=[*source, *tiles])
            for name, one, other in zip(("o", "lse"), expected, found):
                compare(f"{name} of {variant}, HEADS={heads} on {device}", other, one, 2e-2 if name == "o" else 1e-4)


def check_pages(source, folder):
    """Sequences of 200, 64, and 131 keys in pages of 64; 64 queries of each begin behind those of others."""
    heads, kv_heads, sq, page = 4, 2, 64, 64
    lengths, starts, pages, most = [200, 64, 131], [64, 128, 0], [5, 1, 7, 2, 3, 0, 0, 0, 8, 4, 6, 0], 4
    batch, sk = len(lengths), most * page
    keys, values = (draw(seed, 9, kv_heads, page, D) for seed in (1, 2))
    queries = draw(3, heads, batch * sq, D)

    def dense(cache):
        """[B, HK, SK, D] of the pages of each sequence."""
        rows = []
        for b in range(batch):
            for head in range(kv_heads):
                for number in pages[b * most : (b + 1) * most]:
                    begin = (number * kv_heads + head) * page * D
                    rows += cache[begin : begin + page * D]
        return rows, (batch, kv_heads, sk, D)

    def of_sequence(tokens, width):
        """[B, H, SQ, ...] of [H, TOKENS, ...]."""
        rows = []
        for b in range(batch):
            for head in range(heads):
                begin = (head * batch * sq + starts[b]) * width
                rows += tokens[begin : begin + sq * width]
        return rows

    common = [f"-DD={D}", "-DBN=64", "--set", f"scale={SCALE}"]
    lengths_given = give(folder, lengths=(lengths, (batch,)))
    # The mask without the rest of the source.
    text = open(source).read()
    begin, end = text.index("func.func @mask"), text.index("// The first of the queries")
    with open(f"{folder}/lengths.tile", "w") as file:
        file.write('$import "attention.tile"\n!OfSequence = !tile.view<[B], i32>\n' + text[begin:end])
    q = of_sequence(queries, D)
    given = give(folder, q=(q, (batch, heads, sq, D)), k=dense(keys), v=dense(values))
    expected = outputs(folder, "o", "lse", arguments=[f"{folder}/lengths.tile", *common, *given, *lengths_given])

    given = give(
        folder,
        key_cache=(keys, (9, kv_heads, page, D)),
        value_cache=(values, (9, kv_heads, page, D)),
        queries=(queries, (heads, batch * sq, D)),
        pages=(pages, (batch, most)),
        starts=(starts, (batch,)),
    )
    shape = ["--shape", f"B={batch},SQ={sq},SK={sk}"]
    for of_tile, device in ((1, "interp"), (2, "sim")):
        tiles = [f"-DHEADS={of_tile}", f"-DBM={64 * of_tile}", "--device", device]
        o, lse = outputs(folder, "outputs", "sums", arguments=[source, *common, *given, *lengths_given, *shape, *tiles])
        compare(f"O of pages, HEADS={of_tile} on {device}", of_sequence(o, D), expected[0], 2e-2)
        compare(f"LSE of pages, HEADS={of_tile} on {device}", of_sequence(lse, 1), expected[1], 1e-4)


def main(source, kernels, folder):
    check_heads(kernels, folder)
    check_pages(source, folder)


main(*sys.argv[1:])
