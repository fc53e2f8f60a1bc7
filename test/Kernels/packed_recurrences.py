# RUN: mkdir -p %t
# RUN: %python %s %source/kernels/linear %t
"""Walks over packed sequences on the simulator beside the interpreter: sequences of one chunk, of none and of several. They lie in chunks
of their own, whose last rows are zeros, or right behind each other, with NaN in rows that no sequence has."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from reference import draw, run, save, save_integers  # noqa: E402

TABLE = {"firsts": [0, 1, 1], "pasts": [1, 1, 3]}
# In place a sequence without tokens has a chunk without any.
PLACES = {"firsts": [0, 1, 2], "pasts": [1, 2, 4], "starts": [0, 40, 40, 104], "ends": [40, 40, 140, 140]}
IN_CHUNKS = "B=1,H=2,HK=1,L=256,V=64,S=3"
IN_PLACE = "B=1,H=2,HK=1,L=141,N=4,V=64,S=3"


def save_rows(path, values, tokens, width):
    """Rows of so many tokens, and one of NaN behind them."""
    save(path, [*values[: tokens * width], *[math.nan] * width], (1, 1, tokens + 1, width))


def check_gradients(folder, out):
    """Kernels of gradients whose rows are in place, of tensors that `main` has saved."""
    of_chunks = {"starts": "starts", "ends": "ends"}
    walks, tokens = {**of_chunks, "firsts": "firsts", "pasts": "pasts"}, {"q": "in_place_k", "k": "in_place_k", "g": "in_place_channels"}
    beta, own, of_walks = {"beta": "rates"}, ["-DDW=64", "-DDK=32"], ["-DPACKED=true", "-DINITIAL=true", "-DDK=64", "-DDV=32"]
    steps, of_pairs, extents = {"dt": "rates"}, {"z": "in_place_k", "w": "in_place_k", "sums": "gates"}, "B=1,L=141,N=4"
    for source, shape, inputs, parameters in (
        (
            "delta_rule_bwd", "HK=1,H=2,R=256,V=64,S=3,NK=256", {**walks, **beta, "g": "gates", "k": "in_place_k"},
            [*of_walks, "-DFINAL=true"],
        ),
        (
            "delta_rule_gradients", "HK=1,H=2,R=256,K=64,V=64,NK=256", {**of_chunks, **beta, "g": "gates", "k": "in_place_k"},
            ["-DDW=64", "-DDK=64"],
        ),
        ("states", "HK=1,H=2,R=256,V=64,S=3,NK=256,PV=2", walks, [*of_walks, "-DMEET=true"]),
        (
            "delta_rule_states", "HK=1,H=2,R=256,V=64,S=3", {**walks, **beta, "g": "gates", "k": "in_place_k"},
            [*of_walks, "-DFINAL=true", "-DNEWS=true"],
        ),
        ("kda", "HK=1,H=1,R=256,V=64,S=3", {**walks, **tokens}, [*of_walks, "-DFINAL=true", "-DNEWS=true", "-DOWN=true"]),
        ("kda_bwd", "HK=1,H=2,R=256,V=64,S=3,NK=256", {**walks, **tokens, **beta}, [*of_walks, "-DFINAL=true"]),
        ("kda_gradients", "HK=1,H=1,R=256,K=64,V=64,NK=256", {**of_chunks, **tokens}, [*own, "-DOWN=true"]),
        ("kda_gradients", "HK=1,H=2,R=256,K=64,V=64,NK=256", {**of_chunks, **tokens, **beta}, own),
        ("gla_bwd", "HK=1,H=2,R=256,V=64,S=3,NK=256", {**walks, **tokens}, [*of_walks, "-DFINAL=true"]),
        ("gla_gradients", "HK=1,H=2,K=64,V=64,NK=256", {**of_chunks, **tokens}, own),
        ("gla_gradients", "HK=1,H=1,K=64,V=64,NK=256", {**of_chunks, **tokens}, [*own, "-DOWN=true"]),
        # Chunks in pairs, the second of which is without tokens.
        ("states", "HK=1,H=2,R=256,V=64,S=3,NK=128", walks, [*of_walks, "-DVALUES=VO", "-DEVERY=2"]),
        ("ssd", "HK=1,H=2,HV=2,R=256,V=64,S=3,NK=128", {**walks, **steps, "gates": "rates"},
         [*of_walks, "-DKEEP=true", "-DREVERSE=true", "-DSTEPS=own", "-DEVERY=2"]),
        ("ssd_gradients", "HK=1,H=2,HP=1,R=256,V=64,M=256,NK=128,E=2,BLOCKS=2", {**of_chunks, **steps, **of_pairs},
         ["-DDK=64", "-DEVERY=2", "-DMEET=true", "-DSAME=true"]),
        ("ssd_gradients", "HK=1,H=2,HP=2,R=256,V=64,M=256,NK=128", {**of_chunks, **steps, **of_pairs},
         ["-DDK=64", "-DEVERY=2", "-DREVERSE=true"]),
    ):  # fmt: skip
        options = [word for name, file in inputs.items() for word in ("--input", f"{name}={out}/{file}.npy")]
        scale = [] if source == "states" or source.startswith("ssd") else ["--set", "scale=0.5"]
        run(f"{folder}/{source}.tile", "-DIN_PLACE=true", *parameters, "--shape", f"{extents},{shape}", *scale, *options,
            "--pad-rows", "8", "--device", "sim", "--check")  # fmt: skip


def main(folder, out):
    for name, numbers in (TABLE | PLACES).items():
        save_integers(f"{out}/{name}.npy", numbers, "i32")
    keys, channels = [x / 16 for x in draw(1, 256, 64)], [-abs(x) / 4 for x in draw(3, 256, 64)]
    gates, rates = ([sign * abs(x) / 4 for x in draw(seed, 2, 256)] for seed, sign in ((2, -1), (4, 1)))
    save(f"{out}/in_chunks_k.npy", keys, (1, 1, 256, 64))
    save(f"{out}/in_chunks_channels.npy", channels, (1, 1, 256, 64))
    save_rows(f"{out}/in_place_k.npy", keys, 140, 64)
    save_rows(f"{out}/in_place_channels.npy", channels, 140, 64)
    for name, values in (("gates", gates), ("rates", rates)):
        for head in (0, 256):
            # Behind the last row of a sequence calls have zeros.
            values[head + 40 : head + 128] = [0.0] * 88
            values[head + 228 : head + 256] = [0.0] * 28
        save(f"{out}/{name}.npy", values, (1, 2, 256))
    heads, tokens = {"g": "gates", "beta": "rates"}, {"k": "k"}
    for source, shared, inputs, of_tokens in (
        ("retention", ",HV=1", {}, tokens),
        ("ssd", ",HV=1", {"gates": "gates", "dt": "rates"}, tokens),
        ("delta_rule", "", heads, tokens),
        ("delta_rule_states", "", heads, tokens),
        ("gla", "", {}, {**tokens, "g": "channels"}),
        ("kda", "", {"beta": "rates"}, {**tokens, "g": "channels"}),
    ):
        for way, shape, parameters, tables in (
            ("in_chunks", IN_CHUNKS, [], TABLE),
            ("in_place", IN_PLACE, ["-DIN_PLACE=true"], TABLE | PLACES),
        ):
            files = {**{name: name for name in tables}, **inputs, **{name: f"{way}_{of}" for name, of in of_tokens.items()}}
            options = [word for name, file in files.items() for word in ("--input", f"{name}={out}/{file}.npy")]
            rows = ",R=256" if inputs and tables != TABLE else ""
            given = ["-DPACKED=true", "-DINITIAL=true", "-DFINAL=true", "-DDK=64", "-DDV=32", "--shape", shape + shared + rows]
            scale = [] if source == "ssd" else ["--set", "scale=0.5"]
            run(f"{folder}/{source}.tile", *parameters, *given, *scale, *options, "--pad-rows", "8", "--device", "sim", "--check")
    check_gradients(folder, out)


main(*sys.argv[1:])
