"""Problems for the tests, and what they compare results with."""

import sys
import unittest

import torch

import tessera.torch
from tessera.torch import attention

D = 64
# Every run of a test draws the same numbers: a failure is one for everybody.
torch.manual_seed(0)


def make(batch=2, heads=2, kv_heads=1, rows=70, keys=90, d=D, dv=None, dtype=torch.bfloat16, layout="BHSD", seed=0):
    """q, k, v in the order of `layout`."""
    generator = torch.Generator().manual_seed(seed)

    def normal(heads, length, width):
        shape = (batch, heads, length, width) if layout == "BHSD" else (batch, length, heads, width)
        return torch.randn(shape, generator=generator).to(dtype)

    return normal(heads, rows, d), normal(kv_heads, keys, d), normal(kv_heads, keys, dv or d)


def list_errors(q, k, v):
    """(tensors, exception, what it says) of tensors that attention refuses."""
    return (
        ((q[0], k, v), ValueError, "argument 'q' has 3 dimensions; attention takes 4"),
        ((q.float(), k.float(), v.float()), TypeError, "argument 'q' has type torch.float32; attention takes"),
        ((q, k, v.half()), TypeError, "argument 'v'"),
        ((q, k, v[:, :, :80]), ValueError, "argument 'v'"),
        ((q, k[..., 4:], v), ValueError, "argument 'k'"),
    )


def exact(q, k, v, visible=None, softcap=0.0, slopes=None, scale=None):
    """(output, LSE) in float64 of [B, H, S, D] tensors; `visible` is a matrix of rows and keys."""
    q, k, v = q.double(), k.double(), v.double()
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    rows, keys = q.shape[2], k.shape[2]
    scores = q @ k.mT * (q.shape[3] ** -0.5 if scale is None else scale)
    if softcap:
        scores = softcap * (scores / softcap).tanh()
    if slopes is not None:
        distance = (torch.arange(rows)[:, None] + keys - rows - torch.arange(keys)).abs()
        scores = scores - slopes.double().view(-1, 1, 1) * distance
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0)
    return weights @ v, scores.logsumexp(-1)


def band(rows, keys, left=None, right=None):
    """Which keys a row sees, aligned at the last row and key."""
    offset = torch.arange(keys) - (torch.arange(rows)[:, None] + keys - rows)
    visible = torch.ones(rows, keys, dtype=torch.bool)
    if left is not None:
        visible &= offset >= -left
    if right is not None:
        visible &= offset <= right
    return visible


def look(function, sizes, *scores):
    """A function of a place, and of a score if it takes one, at all places of [batch, heads, rows, keys]."""
    for dim in (3, 2, 1, 0):
        function = torch.vmap(function, (*(0 for _ in scores), *(0 if i == dim else None for i in range(4))))
    return function(*scores, *map(torch.arange, sizes))


def exact_mods(q, k, v, score_mod=None, mask_mod=None):
    """(output, LSE) in float64 of [B, H, S, D] tensors, with functions of scores and masks."""
    q, k, v = q.double(), k.double(), v.double()
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = q @ k.mT * q.shape[3] ** -0.5
    if score_mod is not None:
        scores = look(score_mod, scores.shape, scores)
    if mask_mod is not None:
        scores = scores.masked_fill(~look(mask_mod, scores.shape), -torch.inf)
    return scores.softmax(-1).nan_to_num(0) @ v, scores.logsumexp(-1)


def error_limit(expected, dtype):
    """Twice what rounding P and the output to 16 bits costs, and two units in the last place of a value near 0.3."""
    unit = torch.finfo(dtype).eps
    return 2 * unit * expected.abs().max().item() + 2 * unit * 0.25


def assert_close(test, out, expected, what=""):
    error = (out.double() - expected).abs().max().item() if out.numel() else 0.0
    test.assertLessEqual(error, error_limit(expected, out.dtype), what)


def use_interpreter(test):
    """For the time of a test."""
    test.addCleanup(tessera.torch.use_interpreter, tessera.torch.use_interpreter())


class Interpreted(unittest.TestCase):
    """Tests whose calls the interpreter computes, each as if nothing was compiled before."""

    def setUp(self):
        use_interpreter(self)
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()


class Mods(Interpreted):
    """Tests of functions of scores and masks."""

    def setUp(self):
        super().setUp()
        self.q, self.k, self.v = make(batch=2, rows=19, keys=28, dtype=torch.float16)

    def check(self, score_mod=None, mask_mod=None, **named):
        """attention with functions beside their definition."""
        out, lse = attention(self.q, self.k, self.v, score_mod=score_mod, mask_mod=mask_mod, return_lse=True, **named)
        if score_mod is not None:
            arguments = named.get("score_args", ())
            original_score, score_mod = score_mod, lambda *values: original_score(*values, *arguments)
        if mask_mod is not None:
            mask_arguments = named.get("mask_args", ())
            original_mask, mask_mod = mask_mod, lambda *values: original_mask(*values, *mask_arguments)
        want, want_lse = exact_mods(self.q, self.k, self.v, score_mod, mask_mod)
        assert_close(self, out, want)
        self.assertTrue(torch.equal(lse.isinf(), want_lse.isinf()))
        self.assertLess((lse - want_lse).nan_to_num(0).abs().max().item(), 1e-4)
