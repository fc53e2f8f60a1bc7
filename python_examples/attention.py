#!/usr/bin/env python3
"""Compiles kernels/attention_fwd.tile, compares it with PyTorch's attention and prints TFLOP/s.

    python3 python_examples/attention.py [--d 128] [--causal] [--dtype bf16] [--schedule overlap=1] [--bundle FILE]

Needs PyTorch and a Hopper GPU; --bundle runs a bundle that `tessera compile --emit bundle` made elsewhere.
"""

import argparse
import math
import os
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "python"))

import torch  # noqa: E402

import tessera  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--d", type=int, default=128, help="head dimension: 64, 96, 128, 192 or 256")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    parser.add_argument("--schedule", help="overrides of the compiler's choice")
    parser.add_argument("--bundle", help="instead of compiling; its parameters count")
    parser.add_argument("--seqlen", type=int, default=4096, help="of the timed problem, 16k tokens in all")
    return parser.parse_args()


def get_kernel(options):
    if options.bundle:
        return tessera.load(options.bundle, kernel="attention_fwd")
    source = os.path.join(ROOT, "kernels", "attention_fwd.tile")
    return tessera.compile(
        source, schedule=options.schedule, T=options.dtype, D=options.d, DV=options.d, CAUSAL=options.causal
    )


def attention(kernel, q, k, v):
    """softmax(q k^T / sqrt(d)) v and its logsumexp, for tensors in BSHD storage."""
    batch, seqlen, heads, d = q.shape
    o = torch.empty(batch, seqlen, heads, v.shape[-1], dtype=q.dtype, device=q.device)
    lse = torch.empty(batch, heads, seqlen, device=q.device)
    # The views of the source are [B, H, S, D]; strides say where the elements are.
    kernel(*(x.transpose(1, 2) for x in (q, k, v, o)), lse, scale=1 / math.sqrt(d))
    return o, lse


def exact_attention(q, k, v, causal):
    """The same in float64."""
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        sq, sk = scores.shape[-2:]
        visible = torch.ones(sq, sk, dtype=torch.bool, device=q.device).tril(sk - sq)
        scores = scores.masked_fill(~visible, -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2), scores.logsumexp(-1)


def torch_attention(q, k, v, causal):
    group = q.shape[2] // k.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)


def compare(kernel, dtype, d, dv, causal):
    """Prints our error and PyTorch's against float64, on small shapes. Returns whether ours is good."""
    good = True
    for batch, seqlen, heads, kv_heads in ((2, 256, 4, 4), (1, 1023, 6, 2), (3, 113, 2, 1)):
        q = torch.randn(batch, seqlen, heads, d, dtype=dtype, device="cuda")
        k = torch.randn(batch, seqlen, kv_heads, d, dtype=dtype, device="cuda")
        v = torch.randn(batch, seqlen, kv_heads, dv, dtype=dtype, device="cuda")
        o, lse = attention(kernel, q, k, v)
        exact_o, exact_lse = exact_attention(q, k, v, causal)
        ours, theirs = ((x.double() - exact_o).norm() / exact_o.norm() for x in (o, torch_attention(q, k, v, causal)))
        lse_error = (lse.double() - exact_lse).abs().max()
        good &= bool(ours <= 2 * theirs) and bool(lse_error < 1e-3)
        print(f"batch {batch}, seqlen {seqlen:5}, heads {heads}/{kv_heads}: relative error {ours:.2e} "
              f"(PyTorch {theirs:.2e}), LSE off by {lse_error:.1e}")  # fmt: skip
    return good


def milliseconds(function, calls=20):
    for _ in range(3):
        function()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        function()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / calls


def time_both(kernel, dtype, d, dv, causal, seqlen):
    batch, heads = max(1, 16384 // seqlen), max(1, 2048 // d)
    q, k = (torch.randn(batch, seqlen, heads, d, dtype=dtype, device="cuda") for _ in range(2))
    v = torch.randn(batch, seqlen, heads, dv, dtype=dtype, device="cuda")
    flops = 2 * batch * heads * seqlen**2 * (d + dv) / (2 if causal else 1)
    ours = milliseconds(lambda: attention(kernel, q, k, v))
    theirs = milliseconds(lambda: torch_attention(q, k, v, causal))
    print(f"batch {batch}, seqlen {seqlen}, heads {heads}: {flops / ours / 1e9:.0f} TFLOP/s "
          f"(PyTorch {flops / theirs / 1e9:.0f})")  # fmt: skip


def main():
    options = parse_arguments()
    torch.manual_seed(0)
    kernel = get_kernel(options)
    print(kernel)
    print(f"schedule: {kernel.schedule}")
    parameters = kernel.parameters
    d, dv, causal = int(parameters["D"]), int(parameters["DV"]), parameters["CAUSAL"] in (True, "true")
    dtype = torch.bfloat16 if kernel.description["arguments"][0]["element"] == "bf16" else torch.float16
    good = compare(kernel, dtype, d, dv, causal)
    time_both(kernel, dtype, d, dv, causal, options.seqlen)
    if not good:
        sys.exit("attention.py: the error is more than twice PyTorch's")


if __name__ == "__main__":
    main()
