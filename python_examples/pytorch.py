#!/usr/bin/env python3
"""Attention in PyTorch: functions, compiled code, a captured graph, and a model that calls torch's own attention.

    python3 python_examples/pytorch.py                on a Hopper GPU
    python3 python_examples/pytorch.py --interpret    small, on the CPU, by the interpreter

Needs PyTorch 2.6 or newer.
"""

import argparse
import os
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "python"))

import torch  # noqa: E402

import tessera.torch  # noqa: E402
from tessera.torch import attention  # noqa: E402


class Block(torch.nn.Module):
    """A layer of attention as models write it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(out.transpose(1, 2).flatten(2))


def report(what, result, expected):
    error = (result.float() - expected.float()).abs().max().item()
    print(f"{what}: differs by at most {error:.4f}")
    if not error < 0.05:
        raise SystemExit(f"{what} is wrong")


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interpret", action="store_true", help="on the CPU, by the interpreter")
    options = parser.parse_args()
    device, length = ("cpu", 100) if options.interpret else ("cuda", 4096)
    if options.interpret:
        tessera.torch.use_interpreter()

    # The function takes float16 and bfloat16 in either layout; this one is [B, H, S, D].
    q, k, v = (torch.randn(1, 4, length, 64, device=device, dtype=torch.bfloat16) for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    report("attention", attention(q, k, v, causal=True), expected)

    # A window, slopes and a soft cap are arguments; the LSE comes on request.
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625], device=device)
    out, lse = attention(q, k, v, window=(64, 0), alibi=slopes, softcap=20.0, return_lse=True)
    print(f"a window, slopes and a soft cap: {tuple(out.shape)}, LSE {tuple(lse.shape)}")

    # Functions of scores and masks are compiled with what they capture; other values need no new compilation.
    for width in (16, 40):
        out = attention(
            q, k, v, mask_mod=lambda b, h, q, k: (q >= k) & (q - k <= width),
            score_mod=lambda score, b, h, q, k: score - slopes[h] * (q - k),
        )  # fmt: skip
        report(f"functions, {width} keys", out, attention(q, k, v, window=(width, 0), alibi=slopes))

    # torch.compile has no break in it, and other lengths need no compilation of their own.
    compiled = torch.compile(lambda q, k, v: attention(q * 0.5, k, v, causal=True), fullgraph=True)
    for rows in (length, length - 20, length - 30):
        tensors = [tensor[:, :, :rows] for tensor in (q, k, v)]
        report(f"compiled, {rows} rows", compiled(*tensors), attention(tensors[0] * 0.5, *tensors[1:], causal=True))

    # A model that calls torch's attention calls the kernels inside of this.
    block = Block(256, 4).to(device, torch.bfloat16)
    x = torch.randn(1, length, 256, device=device, dtype=torch.bfloat16)
    expected = block(x)
    with tessera.torch.use() as use:
        report("a model", block(x), expected)
    print(use)

    # A graph needs no call before its capture.
    if device == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = attention(q, k, v, window=(100, 0))
        graph.replay()
        report("a captured graph", out, attention(q, k, v, window=(100, 0)))


if __name__ == "__main__":
    main()
