#!/usr/bin/env python3
"""The masks and functions of scores of test/Torch/catalogue.py on the GPU, beside f64: as they are, on 24 queries and keys, and
each element of these as a block of 25 x 25, so that masks hide whole blocks.

    python3 test/gpu/catalogue.py [--part I/N]

Errors are at most twice those of PyTorch with scores and sums in f32, and P and the output in the type of the inputs. Needs
libtessera and ptxas, as each kernel is compiled when it is first called. The last line reads "N passed, N failed".
"""

import argparse
import os
import sys

import torch

import checks
from kernels import ROOT, tessera  # noqa: F401  puts the package on the path
from tessera.torch import attention

sys.path.insert(0, os.path.join(ROOT, "test", "Torch"))
import catalogue  # noqa: E402
import problems  # noqa: E402

SIDE = 25
# Two units of the last place of a value near 0.3.
LAST_PLACES = 2 * 0.3 * 2**-8


def coarsen(function, is_mask):
    """The function on blocks of SIDE x SIDE in place of elements."""
    if is_mask:
        return lambda b, h, q, k: function(b, h, q // SIDE, k // SIDE)
    return lambda score, b, h, q, k: function(score, b, h, q // SIDE, k // SIDE)


def round_as_kernels(q, k, v, score_mod=None, mask_mod=None):
    """The output with what kernels round: P and O."""
    scores = q.float() @ k.float().mT * q.shape[3] ** -0.5
    if score_mod is not None:
        scores = problems.look(score_mod, scores.shape, scores)
    if mask_mod is not None:
        scores = scores.masked_fill(~problems.look(mask_mod, scores.shape), -torch.inf)
    p = torch.exp(scores - scores.amax(-1, keepdim=True).clamp(min=-1e30))
    return (p.to(v.dtype).float() @ v.float() / p.sum(-1, keepdim=True)).nan_to_num(0).to(v.dtype)


def check(function, is_mask, side, d):
    length = catalogue.S * side
    generator = torch.Generator(device="cuda").manual_seed(length)
    sizes = catalogue.B, catalogue.H, length, d
    q, k, v = (torch.randn(sizes, generator=generator, device="cuda").bfloat16() for _ in range(3))
    given = {"mask_mod" if is_mask else "score_mod": function if side == 1 else coarsen(function, is_mask)}
    out, lse = attention(q, k, v, return_lse=True, **given)
    exact, exact_lse = problems.exact_mods(q, k, v, **given)
    error, allowed = ((x.double() - exact).abs().max().item() for x in (out, round_as_kernels(q, k, v, **given)))
    limit = 2 * allowed + LAST_PLACES * max(1.0, exact.abs().max().item())
    seen = exact_lse.isfinite()
    lse_error = ((lse.double() - exact_lse)[seen].abs() / exact_lse[seen].abs().clamp(min=1)).max().item()
    if not (error <= limit and lse_error < 1e-3 and torch.equal(lse == -torch.inf, ~seen)):
        raise AssertionError(f"{length} keys: error {error:.2e} (limit {limit:.2e}), LSE {lse_error:.2e}")


def make_check(function, is_mask):
    def run():
        check(function, is_mask, 1, 64)
        check(function, is_mask, SIDE, 128)

    run.__name__ = function.__name__
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="0/1", metavar="I/N", help="part I of N, from 0 on")
    part, parts = map(int, parser.parse_args().part.split("/"))
    for name, value in vars(catalogue).items():
        if isinstance(value, torch.Tensor):
            setattr(catalogue, name, value.cuda())
    torch.set_default_device("cuda")
    wanted = [(mask, True) for mask in catalogue.MASKS] + [(score, False) for score in catalogue.SCORES]
    checks.run([make_check(*item) for item in wanted[part::parts]])


if __name__ == "__main__":
    main()
