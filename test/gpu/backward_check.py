"""Checks kernels/attention_bwd.tile, attention_bwd_deterministic.tile and attention_bwd_wide.tile on the GPU against gradients in f64: errors at
most twice those of PyTorch in the same type, plus two units of the last place at 0.3.

    backward_check.py [--bundles DIR] [--quick]

Everything that must not be read or is written holds NaN before: padding between rows, results, the workspace that is
lent. Calls are repeated, with memory of the sequence's own; dK and dV must have the same bits, and those of the
deterministic kernels dQ too.
"""

import argparse
import itertools
import sys

import cases
import kernels
import torch

LAST_PLACES = {"bf16": 2 * 0.3 * 2**-8, "f16": 2 * 0.3 * 2**-11}
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def attend(q, k, v, scale, causal):
    """O and LSE of [B, H, S, D] in the type of q, rows that see nothing 0 and -inf."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    s = (q @ k.transpose(2, 3)).to(torch.promote_types(q.dtype, torch.float32)) * scale
    if causal:
        sq, sk = s.shape[2:]
        hidden = torch.ones(sq, sk, dtype=torch.bool, device=s.device).triu(sk - sq + 1)
        s = s.masked_fill(hidden, -torch.inf)
    lse = torch.logsumexp(s, -1)
    p = torch.where(torch.isinf(lse)[..., None], 0, torch.exp(s - lse[..., None]))
    return p.to(v.dtype) @ v, lse


def gradients(tensors, do, dlse, scale, causal, dtype):
    """dQ, dK and dV of autograd in a type, and O and LSE."""
    leaves = [x.to(dtype).detach().requires_grad_() for x in tensors]
    o, lse = attend(*leaves, scale, causal)
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


def check(source, sequence, name, d, causal, has_dlse, shape, factor=1.0, bshd=True):
    b, h, hk, sq, sk = shape
    parameters = {"T": name, "D": d, "CAUSAL": str(causal).lower(), "DLSE": str(has_dlse).lower()}
    kernel = source.load(cases.configuration(sequence, parameters))
    dtype, scale = TYPES[name], d**-0.5
    torch.manual_seed(sq * 1000 + sk)
    draw = lambda heads, rows: (torch.randn(b, heads, rows, d, device="cuda") * factor).to(dtype)  # noqa: E731
    q, k, v, do = draw(h, sq), draw(hk, sk), draw(hk, sk), draw(h, sq) / factor
    dlse = torch.randn(b, h, sq, device="cuda") if has_dlse else None
    exact, o, lse = gradients((q, k, v), do, dlse, scale, causal, torch.float64)
    # PyTorch's causal mask is aligned at the top left.
    if has_dlse or (causal and sq != sk):
        rounded, _, _ = gradients((q, k, v), do, dlse, scale, causal, dtype)
    else:
        rounded = flash_gradients((q, k, v), do, scale, causal)
    results = [strided(torch.full_like(x, float("nan")), bshd) for x in (q, k, v)]
    inputs = [strided(x.to(dtype), bshd) for x in (q, k, v, o, do)] + [lse.float()] + ([dlse] if has_dlse else [])
    arguments = (*inputs, *results, scale)
    size = kernel.workspace_bytes(*arguments)
    kernel(*arguments, workspace=torch.full((size // 4 + 64,), float("nan"), device="cuda"))
    first = [x.clone() for x in results]
    kernel(*arguments)
    text = f"{sequence} {name} d={d} causal={causal} dlse={has_dlse} {shape} x{factor}:"
    holds = True
    for label, got, again, want, peer in zip(("dq", "dk", "dv"), first, results, exact, rounded):
        error, allowed = ((x.double() - want).abs().max().item() for x in (got, peer))
        limit = 2 * allowed + LAST_PLACES[name] * max(1.0, want.abs().max().item())
        same = torch.equal(got, again) or (label == "dq" and sequence == "attention_bwd")
        holds &= error <= limit and same
        text += f" {label} {error:.2e} (limit {limit:.2e}{'' if same else ', DIFFERS when repeated'})"
    print(("ok   " if holds else "FAIL ") + text, flush=True)
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundles", metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="a few cases")
    options = parser.parse_args()
    source = kernels.open_source(options.bundles)
    lengths = [(1, 1), (63, 113), (203, 203), (203, 1023), (1023, 203), (4224, 1024)][: 3 if options.quick else None]
    dims = (64, 128) if options.quick else (64, 96, 128)
    failures = count = 0
    forms = [(sequence, d) for sequence in ("attention_bwd", "attention_bwd_deterministic") for d in dims]
    forms += [("attention_bwd_wide", d) for d in (192, 256)]
    for (sequence, d), name, causal in itertools.product(forms, TYPES, (False, True)):
        for sq, sk in lengths:
            for hk, has_dlse, factor, bshd in ((3, False, 1.0, True), (1, True, 4.0, False), (1, False, 16.0, True)):
                # A contiguous LSE: its strides are those of an odd length.
                failures += not check(source, sequence, name, d, causal, has_dlse, (2, 3, hk, sq, sk), factor, bshd)
                count += 1
    print(f"{count} cases, {failures} failed")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
