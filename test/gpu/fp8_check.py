"""Checks attention of 8-bit numbers on the GPU against f64, kernels/attention_fp8.tile and kernels/variants: the error of O
at most twice that of the same computation with P rounded to the type of Q, plus a unit of the last place of O.

    fp8_check.py [--bundles DIR] [--quick]
    fp8_check.py --list FILE               the kernels, for build_bundles.py --groups= --extra FILE

What must not be read holds NaN: rows and columns behind the last, and results before. Inputs are normal; or so large that
the first block's reference fails; or with a first key that takes most of each row; or of queries that are 0.
"""

import argparse
import itertools
import json
import sys

import cases
import kernels
import torch

WIDE = {"f16": torch.float16, "bf16": torch.bfloat16}
TYPES = {"f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2}
INPUTS = ("normal", "large", "sink", "zero")
LENGTHS = ((1, 1), (63, 113), (203, 208), (203, 1023), (1023, 203), (600, 4224))
HEADS, KV_HEADS, BATCH = 6, 2, 2
#: (D, DV)
HEAD_DIMS = ((64, 64), (96, 96), (128, 128), (192, 192), (256, 256), (192, 128))
#: Rows of a block of K and V with scales of blocks, for the larger of D and DV: a multiple of every default BN is not asked
#: for, so each is BN itself.
BLOCKS = {64: 128, 96: 128, 128: 128, 192: 96, 256: 96}


#: A window of keys before and after a query's own, the bound of scores, and how scores fall with the distance.
LEFT, RIGHT, CAP = 300, 2, 4.0
#: What follows the arguments of variants.
VARIANTS = {
    "variants/causal": lambda: [],
    "variants/window": lambda: [LEFT, RIGHT],
    "variants/softcap": lambda: [CAP],
    "variants/alibi": lambda: [slopes()],
}


def slopes():
    return torch.logspace(-1, -9, HEADS, base=2, device="cuda")


def configuration(name, dims, mask, transposed, scales, promote=0, queries=None):
    """Of a mask, which attention_fp8.tile has, or of a variant."""
    d, dv = dims
    parameters = {"T": name, "D": d, "DV": dv, "V_TRANSPOSED": transposed, "SCALES": scales, "PROMOTE": promote}
    if queries:
        parameters["TQ"] = queries
    if scales == "blocks":
        parameters["BN"] = block_of(dims, mask, transposed, promote, queries)
    if mask in VARIANTS:
        return cases.configuration(mask, parameters)
    return cases.configuration("attention_fp8", {**parameters, "CAUSAL": mask == "causal"})


def block_of(dims, mask, transposed, promote, queries):
    """Rows of a block of K and V: two sums, and what variants compute, leave registers for fewer keys in a step, and
    converted tiles memory."""
    if max(dims) <= 64 and mask == "causal" and not (transposed or promote or queries):
        return 96
    if max(dims) > 192 and transposed and mask not in VARIANTS:
        return 64
    return 64 if promote or mask in VARIANTS or (queries and max(dims) > 128) else BLOCKS[max(dims)]


def configurations(quick):
    wanted = ((64, 64), (128, 128), (192, 128)) if quick else HEAD_DIMS
    for dims, mask, transposed, scales in itertools.product(wanted, ("full", "causal"), (False, True), ("tensor", "blocks")):
        yield "f8E4M3FN", dims, mask, transposed, scales
    for dims, transposed in itertools.product(((64, 64), (128, 128)), (False, True)):
        yield "f8E4M3FN", dims, "causal", transposed, "heads"
    for transposed in (False, True):
        yield "f8E5M2", (128, 128), "full", transposed, "tensor"
    for dims, transposed, promote in itertools.product(((64, 64), (192, 128)), (False, True), (1, 4)):
        yield "f8E4M3FN", dims, "causal", transposed, "tensor", promote
        yield "f8E4M3FN", dims, "full", transposed, "blocks", promote
    for variant, dims in itertools.product(VARIANTS, ((64, 64), (128, 128))):
        yield "f8E4M3FN", dims, variant, True, "tensor"
        yield "f8E4M3FN", dims, variant, False, "blocks"
    for (d, mask), transposed, queries in itertools.product(itertools.product((64, 128, 256), ("full", "causal")), (False, True), WIDE):
        yield "f8E4M3FN", (d, d), mask, transposed, "tensor" if queries == "f16" else "blocks", 0, queries


def draw(heads, rows, d, name):
    """Numbers of [B, H, S, D] in the type `name`, in memory with NaN behind the last row."""
    x = torch.full((BATCH, heads, rows + 3, d), float("nan"), device="cuda")
    x[:, :, :rows] = torch.randn(BATCH, heads, rows, d, device="cuda") * 8
    return x.to({**TYPES, **WIDE}[name])[:, :, :rows]


def turned(v):
    """[B, H, D, S], whose rows begin at multiples of 16 bytes, with NaN between them."""
    b, h, s, d = v.shape
    x = torch.full((b, h, d, (s + 31) // 16 * 16), float("nan"), device="cuda").to(v.dtype)
    x[..., :s] = v.mT
    return x[..., :s]


def draw_scales(heads, rows, block):
    """A scale for each block, in each of its rows; now and then a block is much larger."""
    count = -(-rows // block)
    scales = torch.rand(BATCH, heads, count, device="cuda") + 0.5
    scales[torch.rand_like(scales) < 0.05] *= 50
    return scales.repeat_interleave(block, 2)[:, :, :rows].contiguous()


def score(s, mask):
    """The scores of products, -inf where a query does not see a key."""
    sq, sk = s.shape[2:]
    away = torch.arange(sk, device=s.device) - torch.arange(sk - sq, sk, device=s.device)[:, None]
    if mask == "variants/softcap":
        return CAP * (s / CAP).tanh()
    if mask == "variants/alibi":
        return s - slopes()[:, None, None] * away.abs()
    if mask == "variants/window":
        return s.masked_fill((away < -LEFT) | (away > RIGHT), -torch.inf)
    return s if mask == "full" else s.masked_fill(away > 0, -torch.inf)


def attend(q, k, v, scale, mask, dtype=None):
    """O and LSE in f64; with P rounded to `dtype`, 173 times as large: the largest P of a row is rounded like others, but
    where all are equal."""
    group = HEADS // KV_HEADS
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    s = score(q @ k.mT * scale, mask)
    largest = s.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    p = torch.exp(s - largest)
    total = p.sum(-1, keepdim=True)
    lse = (largest + total.log())[..., 0]
    if dtype:
        rounded = (p * 173).float().to(dtype).double() / 173
        p = torch.where(p == 1, 1, rounded) if (p[p > 0] == 1).all() else rounded
    return p @ v / torch.where(total == 0, 1, total), lse


def check(source, parameters, lengths, inputs):
    name, (d, dv), mask, transposed, scales, promote, queries = (*parameters, 0, None)[:7]
    sq, sk = lengths
    kernel = source.load(configuration(*parameters))
    torch.manual_seed(sq * 1000 + sk)
    q, k, v = draw(HEADS, sq, d, queries or name), draw(KV_HEADS, sk, d, name), draw(KV_HEADS, sk, dv, name)
    if inputs == "zero":
        q.zero_()
    scale = d**-0.5 / 64 * (6.0 if inputs == "large" else 1.0)
    exact = [x.double() for x in (q, k, v)]
    if inputs == "sink":  # 12 above the mean, for all queries
        q[..., :8], k[:, :, 0] = 8.0, 0.0
        k[:, :, 0, :8] = 12 / scale / 64
        exact = [x.double() for x in (q, k, v)]
    o = torch.full((BATCH, HEADS, sq, dv), float("nan"), dtype=torch.bfloat16, device="cuda")
    lse = torch.full((BATCH, HEADS, sq), float("nan"), device="cuda")
    arguments = [q, k, turned(v) if transposed else v, o, lse, scale]
    if scales == "blocks":
        rows = block_of((d, dv), mask, transposed, promote, queries)
        own = [draw_scales(h, s, b) for h, s, b in ((HEADS, sq, 1), (KV_HEADS, sk, rows), (KV_HEADS, sk, rows))]
        # Queries and keys of a row: their scales change scores, which stay moderate.
        own[0], own[1] = (x.clamp(max=1.5) for x in own[:2])
        if inputs in ("sink", "zero"):  # Equal elements of P are exact with powers of 2 alone, as POWERS makes them.
            own[2] = own[2].log2().ceil().exp2()
        arguments += own
        exact = [x * y[..., None].double() for x, y in zip(exact, own)]
    elif scales == "heads":
        own = [torch.rand(BATCH, KV_HEADS, device="cuda") + 0.5 for _ in "qkv"]
        arguments += own
        wide = [own[0].repeat_interleave(HEADS // KV_HEADS, 1), *own[1:]]
        exact = [x * y[..., None, None].double() for x, y in zip(exact, wide)]
    else:
        arguments.append(0.75)
        exact[2] = exact[2] * 0.75
    kernel(*arguments, *VARIANTS.get(mask, list)())
    expected, expected_lse = attend(*exact, scale, mask)
    rounded, _ = attend(*exact, scale, mask, {**TYPES, **WIDE}[queries or name])
    norm = expected.norm().clamp(min=1e-30)
    error, allowed = ((x - expected).norm().div(norm).item() for x in (o.double(), rounded.bfloat16().double()))
    finite = expected_lse.isfinite()
    same = torch.equal(finite, lse.isfinite())
    # Sums of 8-bit products keep about 14 bits.
    most = (exact[0].norm(dim=-1).amax() * exact[1].norm(dim=-1).amax() * scale).item()
    lse_error = (lse.double() - expected_lse)[finite].abs().amax().item() if finite.any() else 0.0
    holds = error <= 2 * allowed + 2**-9 and same and lse_error <= 2**-12 * most + 1e-3
    text = f"{' '.join(map(str, parameters))} {sq}x{sk} {inputs}: o {error:.2e} ({allowed:.2e} with P rounded alone) lse {lse_error:.1e}"
    print(("ok   " if holds else "FAIL ") + text, flush=True)
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundles", metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="a few cases")
    parser.add_argument("--list", metavar="FILE", help="write the kernels of all this for build_bundles.py, and end")
    options = parser.parse_args()
    wanted = list(configurations(options.quick))
    if options.list:
        with open(options.list, "w") as file:
            json.dump([configuration(*parameters) for parameters in wanted], file, indent=1)
        return 0
    source = kernels.open_source(options.bundles)
    failures = count = 0
    for parameters, lengths in itertools.product(wanted, LENGTHS[: 3 if options.quick else None]):
        for inputs in INPUTS:
            failures += not check(source, parameters, lengths, inputs)
            count += 1
    print(f"{count} cases, {failures} failed")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
