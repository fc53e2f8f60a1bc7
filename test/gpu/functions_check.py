"""Checks variants of attention.tile on the GPU that look into memory: lists of blocks, biases, gathers and sinks, at odd lengths
and with NaN in what must not be read. Errors are at most twice those of PyTorch in the same type, plus two units of the last
place at 0.3.

    functions_check.py [--bundles DIR] [--list FILE]
"""

import argparse
import itertools
import json
import sys

import cases
import kernels
import torch

LAST_PLACES = 2 * 0.3 * 2**-8
DIMS = (64, 128)
LENGTHS = ((1, 1), (63, 113), (203, 203), (203, 1023), (1023, 203), (1500, 2100))


def draw_documents(batch, sq, sk, ordered):
    numbers = torch.randint(0, 5, (batch, sk), device="cuda", dtype=torch.int32)
    return {"documents": numbers.sort(dim=1).values.contiguous() if ordered else numbers}


def pack(batch, sk):
    """Where the sequence of each key begins."""
    numbers = torch.randint(0, 5, (batch, sk), device="cuda").sort(dim=1).values
    return {"starts": torch.searchsorted(numbers, numbers).int()}


def hide_others(s, starts):
    sq, sk = s.shape[2:]
    own = torch.arange(sq, device="cuda") + sk - sq
    keys = torch.arange(sk, device="cuda")
    first = torch.where(own >= 0, starts[:, own.clamp(min=0)], 0)
    return s.masked_fill(((keys < first[:, :, None]) | (keys > own[:, None])[None])[:, None], -torch.inf)


def hide(s, documents):
    sq, sk = s.shape[2:]
    own = torch.arange(sq, device="cuda")[:, None] + sk - sq
    keys = torch.arange(sk, device="cuda")
    # Elements outside of the tensor are 0.
    mine = torch.where((own >= 0) & (own < sk), documents[:, own.clamp(0, sk - 1)[:, 0]][:, :, None], 0)
    return s.masked_fill(((mine != documents[:, None, :]) | (keys > own)[None])[:, None], -torch.inf)


def bend(s, kernel, given):
    if kernel == "variants/documents":
        return hide(s, given["documents"])
    if kernel == "variants/packed":
        return hide_others(s, given["starts"])
    if kernel == "variants/bias":
        return s + given["bias"].to(s.dtype)
    if kernel == "variants/relative":
        sq, sk = s.shape[2:]
        away = torch.arange(sq, device="cuda")[:, None] - torch.arange(sk, device="cuda") + sk - 1
        return s + given["table"].to(s.dtype)[:, away]
    return s


def make_arguments(kernel, heads, sq, sk, ordered):
    if kernel == "variants/documents":
        return draw_documents(2, sq, sk, ordered)
    if kernel == "variants/packed":
        return pack(2, sk)
    if kernel == "variants/bias":
        padded = torch.full((heads, sq, (sk + 3) // 4 * 4), float("nan"), device="cuda")
        padded[..., :sk] = torch.randn((heads, sq, sk), device="cuda")
        return {"bias": padded[..., :sk]}
    if kernel == "variants/relative":
        return {"table": torch.randn((heads, sq + sk - 1), device="cuda")}
    return {"sinks": torch.randn(heads, device="cuda") * 3}


def attend(q, k, v, scale, kernel, given):
    """O and LSE of [B, H, S, D] in the type of q, rows that see nothing 0 and -inf."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    s = bend(q @ k.mT * scale, kernel, given)
    if kernel == "variants/sink":
        s = torch.cat([s, given["sinks"].to(s.dtype).view(1, -1, 1, 1).expand(*s.shape[:3], 1)], 3)
    lse = torch.logsumexp(s, 3)
    p = torch.softmax(s, 3).nan_to_num()[..., : k.shape[2]]
    return p @ v, lse


def check(source, kernel, d, shape, ordered):
    heads, kv_heads, sq, sk = shape
    loaded = source.load(cases.configuration(kernel, {"T": "bf16", "D": d}))
    torch.manual_seed(sq * 1000 + sk)
    q, k, v = (torch.randn(2, n, length, d, device="cuda").bfloat16() for n, length in ((heads, sq), (kv_heads, sk), (kv_heads, sk)))
    given, scale = make_arguments(kernel, heads, sq, sk, ordered), d**-0.5
    exact, exact_lse = attend(q.double(), k.double(), v.double(), scale, kernel, given)
    rounded, _ = attend(q, k, v, scale, kernel, given)
    o, lse = torch.full_like(q, float("nan")), torch.full((2, heads, sq), float("nan"), device="cuda")
    arguments = {"q": q, "k": k, "v": v, "o": o, "lse": lse, "scale": scale, **given}
    size = loaded.workspace_bytes(**arguments)
    if size:
        loaded(**arguments, workspace=torch.full((size // 4 + 64,), float("nan"), device="cuda"))
    else:
        loaded(**arguments)
    error, allowed = ((x.double() - exact).abs().max().item() for x in (o, rounded.nan_to_num()))
    seen = exact_lse.isfinite()
    lse_error = (lse.double() - exact_lse)[seen].abs().max().item() if seen.any() else 0.0
    limit = 2 * allowed + LAST_PLACES * max(1.0, exact.abs().max().item())
    holds = error <= limit and lse_error < 1e-3 and torch.equal(lse.isinf(), ~seen)
    print(f"{'ok  ' if holds else 'FAIL'} {kernel} d={d} {shape} ordered={ordered}: {error:.2e} (limit {limit:.2e}), LSE {lse_error:.2e}",
          flush=True)  # fmt: skip
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundles", metavar="DIR")
    parser.add_argument("--list", metavar="FILE", help="write the kernels of all this for build_bundles.py, and end")
    options = parser.parse_args()
    names = [f"variants/{name}" for name in ("documents", "packed", "bias", "relative", "sink")]
    if options.list:
        with open(options.list, "w") as file:
            json.dump([cases.configuration(name, {"T": "bf16", "D": d}) for name in names for d in DIMS], file, indent=1)
        return 0
    source = kernels.open_source(options.bundles)
    failures = count = 0
    for name, d, (sq, sk), kv_heads in itertools.product(names, DIMS, LENGTHS, (1, 3)):
        for ordered in (True, False) if name == "variants/documents" else (True,):
            failures += not check(source, name, d, (3, kv_heads, sq, sk), ordered)
            count += 1
    print(f"{count} cases, {failures} failed")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
