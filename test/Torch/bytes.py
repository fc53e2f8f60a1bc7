# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""tessera.torch.attention_fp8 on the interpreter, compared with f64: what rounding to 8 bits leaves."""

import unittest

import problems
import torch
from problems import band, exact, make

from tessera.torch import attention_fp8


def find_error(got, expected):
    return ((got.double() - expected).norm() / expected.norm()).item()


class Meaning(unittest.TestCase):
    def setUp(self):
        problems.use_interpreter(self)

    def check(self, tensors, expected, limit=0.06, **options):
        out, lse = attention_fp8(*tensors, return_lse=True, **options)
        self.assertEqual(out.dtype, tensors[0].dtype)
        self.assertLess(find_error(out, expected[0]), limit, options)
        self.assertTrue(torch.allclose(lse.double(), expected[1], atol=0.1), options)
        self.assertTrue(torch.equal(attention_fp8(*tensors, **options), out))

    def test_sizes(self):
        for sizes in (
            {"d": 64},
            {"d": 64, "dtype": torch.float16, "heads": 6, "kv_heads": 3},
            {"d": 128},
            {"d": 96, "rows": 40},
            {"d": 192, "rows": 40},
            {"d": 256, "rows": 40},
            {"d": 192, "dv": 128, "rows": 40},
            {"d": 64, "dv": 96, "rows": 40},
            {"d": 64, "rows": 1, "keys": 1},
        ):
            tensors = make(**sizes)
            self.check(tensors, exact(*tensors))

    def test_options(self):
        tensors = make(d=64)
        self.check(tensors, exact(*tensors, band(70, 90, right=0)), causal=True)
        self.check(tensors, exact(*tensors, scale=0.1), scale=0.1)
        self.check(tensors, exact(*tensors), rotate=False)
        turned = tuple(x.transpose(1, 2) for x in tensors)
        out = attention_fp8(*turned, layout="BSHD")
        self.assertTrue(torch.equal(out.transpose(1, 2), attention_fp8(*tensors)))

    def test_rotation(self):
        """Of table 3 of the paper: N(0, 1) + N(0, 100) Bernoulli(0.001)."""
        generator = torch.Generator().manual_seed(1)
        tensors = make(d=128, rows=200, keys=200)
        for x in tensors:
            chosen = torch.rand(x.shape, generator=generator) < 0.001
            x += (10 * torch.randn(x.shape, generator=generator) * chosen).to(x.dtype)
        expected = exact(*tensors)[0]
        plain, rotated = (find_error(attention_fp8(*tensors, rotate=rotate), expected) for rotate in (False, True))
        self.assertLess(rotated, plain)
        self.assertFalse(torch.equal(attention_fp8(*tensors, seed=1), attention_fp8(*tensors)))

    def test_empty(self):
        q, k, v = make(d=64, keys=0)
        out, lse = attention_fp8(q, k, v, return_lse=True)
        self.assertFalse(out.any())
        self.assertTrue((lse == -torch.inf).all())

    def test_refused(self):
        q, k, v = make(d=64)
        for arguments, options, error, text in (
            ((q, k, v), {"layout": "SBHD"}, ValueError, "argument 'layout'"),
            ((q.float(), k, v), {}, TypeError, "argument 'q' has type torch.float32"),
            ((q, k, v), {"scale": 0}, ValueError, "argument 'scale' is 0"),
            (make(d=40), {}, ValueError, "head dimensions 40 and 40"),
            (make(d=64, dv=72), {}, ValueError, "head dimensions 64 and 72"),
            (make(d=96), {"rotate": True}, ValueError, "argument 'rotate' is true with head dimension 96"),
            ((q, k.clone().requires_grad_(), v), {}, NotImplementedError, "argument 'k' requires a gradient"),
        ):
            with self.assertRaisesRegex(error, text):
                attention_fp8(*arguments, **options)
        problems.tessera.torch.use_interpreter(False)
        with self.assertRaisesRegex(ValueError, "argument 'q' is on cpu"):
            attention_fp8(q, k, v)


if __name__ == "__main__":
    unittest.main()
