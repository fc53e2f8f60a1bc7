"""Checks the kernels of gradients on the GPU against gradients in f64: kernels/attention_bwd.tile, its deterministic and
wide forms, and attention_variants_bwd.tile and its fixed form. Errors are at most twice those of PyTorch in the same type,
plus two units of the last place at 0.3, or at 0.3 times the largest result, or the inputs' factor where a single key's terms
cancel.

    backward_check.py [--bundles DIR] [--quick]
    backward_check.py --list FILE          the kernels, for build_bundles.py --groups= --extra FILE

Everything that must not be read or is written holds NaN before: padding between rows, results, the workspace that is
lent. Calls are repeated, with memory of the sequence's own; dK and dV must have the same bits, and those of the
kernels with a fixed order dQ too. attention_bwd.tile with FIXED is launched a thousand times while other work runs.
"""

import argparse
import itertools
import json
import sys

import cases
import kernels
import torch
from tessera._attention import _gradient_kernels

LAST_PLACES = {"bf16": 2 * 0.3 * 2**-8, "f16": 2 * 0.3 * 2**-11}
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
# Kernels whose sums of dQ are in no order.
UNORDERED = ("attention_bwd", "attention_variants_bwd")
# Parameters of attention_variants.tile; numbers that go with them.
VARIANTS = (
    {"MASK": "window"}, {"MASK": "causal", "ALIBI": "true"}, {"SOFTCAP": "exact"},
    {"MASK": "window", "SOFTCAP": "exact", "ALIBI": "true"},
)  # fmt: skip
LEFT, RIGHT, CAP = 100, 17, 2.0
# Query heads of the checks that launch a thousand times.
HEADS = 6


def slopes_of(heads):
    return torch.tensor([2.0 ** -(1 + h) for h in range(heads)], device="cuda")


def bend(s, variant):
    """The scores of a variant, -inf where a row does not see a key."""
    sq, sk = s.shape[2:]
    away = torch.arange(sk, device=s.device) - (torch.arange(sq, device=s.device)[:, None] + sk - sq)
    if variant.get("SOFTCAP") == "exact":
        s = CAP * (s / CAP).tanh()
    if variant.get("ALIBI") == "true":
        s = s - slopes_of(s.shape[1]).to(s.dtype).view(-1, 1, 1) * away.abs()
    if variant.get("CAUSAL") == "true" or variant.get("MASK") == "causal":
        s = s.masked_fill(away > 0, -torch.inf)
    if variant.get("MASK") == "window":
        s = s.masked_fill((away > RIGHT) | (away < -LEFT), -torch.inf)
    return s


def extras_of(variant, heads):
    """Arguments after the scale."""
    extras = [LEFT, RIGHT] if variant.get("MASK") == "window" else []
    extras += [CAP] if "SOFTCAP" in variant else []
    return extras + ([slopes_of(heads)] if "ALIBI" in variant else [])


def attend(q, k, v, scale, variant):
    """O and LSE of [B, H, S, D] in the type of q, rows that see nothing 0 and -inf."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    s = (q @ k.transpose(2, 3)).to(torch.promote_types(q.dtype, torch.float32)) * scale
    s = bend(s, variant)
    lse = torch.logsumexp(s, -1)
    p = torch.where(torch.isinf(lse)[..., None], 0, torch.exp(s - lse[..., None]))
    return p.to(v.dtype) @ v, lse


def gradients(tensors, do, dlse, scale, variant, dtype):
    """dQ, dK and dV of autograd in a type, and O and LSE."""
    leaves = [x.to(dtype).detach().requires_grad_() for x in tensors]
    o, lse = attend(*leaves, scale, variant)
    loss = (o * do.to(dtype)).sum(dtype=torch.promote_types(dtype, torch.float32))
    if dlse is not None:
        loss = loss + torch.where(torch.isinf(lse), 0, lse * dlse.to(lse.dtype)).sum()
    return torch.autograd.grad(loss, leaves), o.detach(), lse.detach()


def flash_gradients(tensors, do, scale, causal):
    """dQ, dK and dV of PyTorch's fused attention."""
    leaves = [x.detach().requires_grad_() for x in tensors]
    grouped = {"enable_gqa": True} if tensors[0].shape[1] != tensors[1].shape[1] else {}
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        o = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal, scale=scale, **grouped)
    return torch.autograd.grad(o, leaves, do)


def strided(x, bshd):
    """A copy of [B, H, S, D] in BSHD storage, or with rows that NaN lies between."""
    if bshd:
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    padded = torch.full((*x.shape[:3], x.shape[3] + 8), float("nan"), dtype=x.dtype, device=x.device)
    padded[..., : x.shape[3]] = x
    return padded[..., : x.shape[3]]


def count_differences(kernel, arguments, results, launches=1000):
    """How many of the launches have other bits than the first, while products on another stream take multiprocessors."""
    kernel(*arguments)
    first = [x.clone() for x in results]
    differ = torch.zeros((), dtype=torch.int32, device="cuda")
    matrix, side = torch.randn(4096, 4096, device="cuda").bfloat16(), torch.cuda.Stream()
    for launch in range(launches):
        if launch % 20 == 0:
            with torch.cuda.stream(side):
                matrix @ matrix
        for x in results:
            x.fill_(float("nan"))
        kernel(*arguments)
        differ += torch.stack([(x.view(torch.int16) != y.view(torch.int16)).any() for x, y in zip(results, first)]).any()
    return differ.item()


def describe_order(d, causal, kv_heads):
    """The kernel with sums in a fixed order, as PyTorch and JAX call it."""
    group = _gradient_kernels.find_group(HEADS, kv_heads)
    _, parameters, _ = _gradient_kernels.describe_gradients(f"attention_fwd CAUSAL={causal}", "bf16", d, d, fixed=True, group=group)
    groups = {"GROUP": str(parameters["GROUP"])} if "GROUP" in parameters else {}
    return cases.configuration("attention_bwd", {"T": "bf16", "D": d, "CAUSAL": causal, "FIXED": "true", **groups})


def check_order(source, d, causal, kv_heads):
    """A thousand launches with sums in a fixed order, of several blocks of keys for each head."""
    heads, rows, keys = HEADS, 1023, 1500
    kernel = source.load(describe_order(d, causal, kv_heads))
    torch.manual_seed(d)
    draw = lambda heads, rows: torch.randn(2, rows, heads, d, device="cuda").bfloat16().transpose(1, 2)  # noqa: E731
    q, k, v, do = draw(heads, rows), draw(kv_heads, keys), draw(kv_heads, keys), draw(heads, rows)
    o, lse = attend(q, k, v, d**-0.5, {"CAUSAL": causal})
    results = [torch.empty_like(x) for x in (q, k, v)]
    differ = count_differences(kernel, (q, k, v, o, do, lse, *results, d**-0.5), results)
    print(f"{'FAIL' if differ else 'ok  '} fixed order d={d} causal={causal} {heads} / {kv_heads} heads: {differ} of 1000 differ")
    return not differ


def describe(sequence, name, dims, variant, has_dlse):
    """The kernels of a check."""
    d, dv = dims
    parameters = {"T": name, "D": d, **({} if dv == d else {"DV": dv}), **variant, "DLSE": str(has_dlse).lower()}
    return cases.configuration(sequence, parameters)


def check(source, sequence, name, dims, variant, has_dlse, shape, factor=1.0, bshd=True):
    d, dv = dims
    b, h, hk, sq, sk = shape
    kernel = source.load(describe(sequence, name, dims, variant, has_dlse))
    dtype, scale = TYPES[name], d**-0.5
    torch.manual_seed(sq * 1000 + sk)
    draw = lambda heads, rows, d: (torch.randn(b, heads, rows, d, device="cuda") * factor).to(dtype)  # noqa: E731
    q, k, v, do = draw(h, sq, d), draw(hk, sk, d), draw(hk, sk, dv), draw(h, sq, dv) / factor
    dlse = torch.randn(b, h, sq, device="cuda") if has_dlse else None
    exact, o, lse = gradients((q, k, v), do, dlse, scale, variant, torch.float64)
    causal = variant.get("CAUSAL") == "true"
    # PyTorch's causal mask is aligned at the top left, and its fused attention has one head dimension.
    if has_dlse or "CAUSAL" not in variant or (causal and sq != sk) or dv != d:
        rounded, _, _ = gradients((q, k, v), do, dlse, scale, variant, dtype)
    else:
        rounded = flash_gradients((q, k, v), do, scale, causal)
    results = [strided(torch.full_like(x, float("nan")), bshd) for x in (q, k, v)]
    inputs = [strided(x.to(dtype), bshd) for x in (q, k, v, o, do)] + [lse.float()] + ([dlse] if has_dlse else [])
    arguments = (*inputs, *results, scale, *extras_of(variant, h))
    size = kernel.workspace_bytes(*arguments)
    kernel(*arguments, workspace=torch.full((size // 4 + 64,), float("nan"), device="cuda"))
    first = [x.clone() for x in results]
    kernel(*arguments)
    what = " ".join(f"{field}={value}" for field, value in variant.items())
    text = f"{sequence} {name} d={d}/{dv} {what} dlse={has_dlse} {shape} x{factor}:"
    holds = True
    for label, got, again, want, peer in zip(("dq", "dk", "dv"), first, results, exact, rounded):
        error, allowed = ((x.double() - want).abs().max().item() for x in (got, peer))
        # The terms of dQ and dK grow with Q and K, also those of a single key, which cancel.
        cancels = sk == 1 and label != "dv"
        size = max(factor if cancels else 1.0, want.abs().max().item())
        limit = 2 * allowed + LAST_PLACES[name] * size
        is_unordered = sequence in UNORDERED and "FIXED" not in variant
        same = torch.equal(got, again) or (label == "dq" and is_unordered)
        holds &= error <= limit and same
        text += f" {label} {error:.2e} (limit {limit:.2e}{'' if same else ', DIFFERS when repeated'})"
    print(("ok   " if holds else "FAIL ") + text, flush=True)
    return holds


def list_kernels(is_quick):
    """(sequence, (D, DV), parameters of the mask and the form, type) of all checks."""
    dims = (64, 128) if is_quick else (64, 96, 128)
    wide = ((256, 256),) if is_quick else ((192, 192), (256, 256), (192, 128))
    masks = ({"CAUSAL": "false"}, {"CAUSAL": "true"})
    plain = (*((d, d) for d in dims), *wide)
    square = [(d, dv) for d, dv in plain if d == dv]
    forms = [(sequence, d, masks) for sequence in ("attention_bwd", "attention_bwd_deterministic") for d in plain]
    groups, few = ({"CAUSAL": "true", "GROUP": size} for size in ("8", "4"))
    fixed = tuple({**mask, "FIXED": "true"} for mask in (*masks, groups))
    forms += [("attention_bwd", d, fixed) for d in (*square, *(() if is_quick else ((192, 128),)))]
    forms += [("attention_bwd", (192, dv), ({**few, "FIXED": "true"},)) for dv in (128, 192) if not is_quick]
    forms += [("attention_bwd", d, (groups,)) for d in plain if d != (64, 64)]
    forms += [("attention_variants_bwd", d, VARIANTS) for d in plain]
    groups = tuple({"MASK": "causal", **scores, "GROUP": "8"} for scores in ({"SOFTCAP": "exact"}, {"ALIBI": "true"}))
    forms += [("attention_variants_bwd", (d, d), groups) for d in dims if d > 64]
    forms += [("attention_variants_bwd_fixed", (d, d), VARIANTS) for d in (64, 128, 256)]
    problems = [(sequence, d, variant) for sequence, d, variants in forms for variant in variants]
    return [(*problem, name) for problem, name in itertools.product(problems, TYPES)]


def list_orders(is_quick):
    """(D, whether there is a causal mask, heads of K and V) of the checks that launch a thousand times."""
    return itertools.product((64, 128) if is_quick else (64, 96, 128, 192, 256), ("false", "true"), (HEADS, 3, 2, 1))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundles", metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="a few cases")
    parser.add_argument("--list", metavar="FILE", help="write the kernels of all this for build_bundles.py, and end")
    return parser.parse_args()


def write_list(options):
    wanted = [
        describe(sequence, name, d, variant, has_dlse)
        for (sequence, d, variant, name), has_dlse in itertools.product(list_kernels(options.quick), (False, True))
    ]
    wanted += [describe_order(*order) for order in list_orders(options.quick)]
    with open(options.list, "w") as file:
        json.dump(wanted, file)


def main():
    options = parse_arguments()
    if options.list:
        return write_list(options)
    source = kernels.open_source(options.bundles)
    lengths = [(1, 1), (63, 113), (203, 203), (203, 1023), (1023, 203), (4224, 1024)][: 3 if options.quick else None]
    failures = count = 0
    for (sequence, d, variant, name), (sq, sk) in itertools.product(list_kernels(options.quick), lengths):
        for hk, has_dlse, factor, bshd in ((3, False, 1.0, True), (1, True, 4.0, False), (1, False, 16.0, True)):
            # A contiguous LSE: its strides are those of an odd length.
            failures += not check(source, sequence, name, d, variant, has_dlse, (2, 3, hk, sq, sk), factor, bshd)
            count += 1
    for order in list_orders(options.quick):
        failures += not check_order(source, *order)
        count += 1
    print(f"{count} cases, {failures} failed")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
