# RUN: %python %s %source/kernels
"""Reads the kernels in every configuration that they allow and compares the default tiles with a table."""

import itertools
import json
import subprocess
import sys

# (D, DV): (BM, BN) and, where it differs, BN with CAUSAL.
TILES = {
    (64, 64): (256, 64, 64),
    (96, 96): (192, 96, 96),
    (128, 128): (128, 128, 128),
    (128, 64): (128, 128, 128),
    (192, 128): (128, 128, 128),
    (192, 192): (128, 112, 112),
    (256, 256): (128, 64, 64),
    (64, 256): (128, 64, 64),
}


def params(path, **values):
    """Returns what `tessera params` says, which includes that the bound source verifies."""
    defines = [f"-D{name}={value}" for name, value in values.items()]
    done = subprocess.run(["tessera", "params", path, "--json", *defines], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path} {' '.join(defines)}: {done.stderr}")
    return {p["name"]: p["default"] for p in json.loads(done.stdout)["parameters"]}


def main(kernels):
    head_dims, booleans, types = (64, 96, 128, 192, 256), ("false", "true"), ("f16", "bf16")
    attention = f"{kernels}/attention_fwd.tile"
    for d, dv, causal in itertools.product(head_dims, head_dims, booleans):
        bound = params(attention, D=d, DV=dv, CAUSAL=causal, T=types[d % 64 == 0])
        bm, full, masked = TILES.get((d, dv), (bound["BM"], bound["BN"], bound["BN"]))
        if (bound["BM"], bound["BN"]) != (bm, masked if causal == "true" else full):
            sys.exit(f"D={d} DV={dv} CAUSAL={causal}: tile {bound['BM']}x{bound['BN']}, expected {bm}x{full}/{masked}")
    variants = f"{kernels}/attention_variants.tile"
    for mask, cap, alibi, d in itertools.product(
        ("none", "causal", "window"), ("none", "exact", "approx"), booleans, (64, 128)
    ):
        bound = params(variants, MASK=mask, SOFTCAP=cap, ALIBI=alibi, D=d)
        reference = "zero" if cap != "none" else "unbiased" if alibi == "true" and mask != "causal" else "first"
        if bound["REFERENCE"] != reference:
            sys.exit(f"MASK={mask} SOFTCAP={cap} ALIBI={alibi}: exponents refer to {bound['REFERENCE']}, not {reference}")
        for other in ("zero", "first", "unbiased", "diagonal"):
            params(variants, MASK=mask, SOFTCAP=cap, ALIBI=alibi, D=d, T="f16", REFERENCE=other)
    for transposed, bias, activation, t in itertools.product(booleans, booleans, ("none", "relu", "gelu"), types):
        params(f"{kernels}/gemm.tile", B_TRANSPOSED=transposed, BIAS=bias, ACTIVATION=activation, T=t)


main(sys.argv[1])
