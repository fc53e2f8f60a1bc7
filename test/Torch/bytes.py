# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""tessera.torch.attention_fp8 on the interpreter, compared with f64: what rounding to 8 bits leaves."""

import itertools
import unittest

import problems
import torch
from problems import band, exact, exact_mods, make

import tessera
from tessera._attention._variants import WIDTHS
from tessera._compiler import _choices
from tessera._core import _library
from tessera.torch import _bytes, attention_fp8


def find_error(got, expected):
    return ((got.double() - expected).norm() / expected.norm()).item()


class Meaning(problems.Interpreted):
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

    def test_rotations(self):
        """Of all head dimensions: a Hadamard matrix, and the results of none."""
        for width in (64, 96, 128, 192, 256):
            matrix = _bytes._make_rotation(width, 3, torch.float32, "cpu")
            self.assertTrue(torch.equal(matrix @ matrix.mT, width * torch.eye(width)))
            tensors = make(d=width, rows=20)
            self.check(tensors, exact(*tensors), rotate=True)

    def test_cached(self):
        """Keys and values of 8 bits beside queries of 16: nothing more is rounded than in 16 bits."""
        for dtype, kept, sizes in (
            (torch.bfloat16, torch.float8_e4m3fn, {"d": 64}),
            (torch.float16, torch.float8_e5m2, {"d": 128, "rows": 33, "heads": 4, "kv_heads": 2}),
            (torch.bfloat16, torch.float8_e4m3fn, {"d": 192, "dv": 128, "rows": 20}),
            (torch.bfloat16, torch.float8_e4m3fn, {"d": 256, "rows": 20}),
        ):
            q, k, v = make(dtype=dtype, **sizes)
            k8, v8 = (4 * k).to(kept), (2 * v).to(kept)
            for causal in (False, True):
                out, lse = attention_fp8(q, k8, v8, causal=causal, k_scale=0.25, v_scale=0.5, return_lse=True)
                visible = band(q.shape[2], k.shape[2], right=0) if causal else None
                expected = exact(q, k8.double() / 4, v8.double() / 2, visible)
                self.assertEqual(out.dtype, dtype)
                problems.assert_close(self, out, expected[0], (sizes, causal))
                self.assertTrue(torch.allclose(lse.double(), expected[1], atol=1e-3), sizes)
        out = attention_fp8(q, k8, v8)
        problems.assert_close(self, out, exact(q, k8, v8)[0])

    def test_functions(self):
        """A variant with numbers and views, and functions of Python, for rounded keys and for those of 8 bits."""
        slopes, doc = torch.tensor([0.3, 0.05]), torch.arange(90) // 30
        capped = tessera.Variant(
            score=lambda s, b, h, q, k, cap, slopes: cap * tessera.tanh(s / cap) - slopes[h] * abs(q - k),
            mask=tessera.masks.causal, cap=float, slopes=("H",),
        )  # fmt: skip
        given = {"variant": capped, "arguments": {"cap": 2.0, "slopes": slopes}}
        causal = band(70, 90, right=0)
        mods = {"score_mod": lambda s, b, h, q, k: s - slopes[h] * (q - k).abs(), "mask_mod": lambda b, h, q, k: doc[q] == doc[k]}
        for sizes in ({"d": 64}, {"d": 128, "dtype": torch.float16, "heads": 2, "kv_heads": 2}, {"d": 192, "dv": 64}, {"d": 256}):
            q, k, v = make(**sizes)
            self.check((q, k, v), exact_mods(q, k, v, **mods), **mods)
            bend = lambda s, b, h, q, k: 2 * torch.tanh(s / 2) - slopes[h] * (q - k).abs()  # noqa: E731
            expected = exact_mods(q, k, v, bend, lambda b, h, q, k: causal[q, k])
            self.check((q, k, v), expected, **given)
            k8, v8 = (4 * k).to(torch.float8_e4m3fn), (2 * v).to(torch.float8_e4m3fn)
            out, lse = attention_fp8(q, k8, v8, k_scale=0.25, v_scale=0.5, return_lse=True, **given)
            expected = exact_mods(q, k8.double() / 4, v8.double() / 2, bend, lambda b, h, q, k: causal[q, k])
            problems.assert_close(self, out, expected[0], sizes)
            self.assertTrue(torch.allclose(lse.double(), expected[1], atol=1e-3), sizes)
            # Of a mask that looks into tensors the blocks are listed first.
            out = attention_fp8(q, k8, v8, k_scale=0.25, v_scale=0.5, **mods)
            problems.assert_close(self, out, exact_mods(q, k8.double() / 4, v8.double() / 2, **mods)[0], sizes)

    def test_blocks_of_rotated_keys(self):
        """Blocks that have one scale are rotated by products, whose rows are multiples of 64."""
        for name, d, dv, causal in itertools.product(("fp8", "scores_fp8"), WIDTHS, WIDTHS, (False, True)):
            parameters = {"T": "f8E4M3FN", "D": d, "DV": dv, "OUT": "bf16", "SCALES": "blocks", "V_TRANSPOSED": False, "ROTATED": True}
            if name == "fp8":
                parameters["CAUSAL"] = causal
            chosen = _choices.choose_values(_library.find_source(f"attention_{name}"), (), None, tuple(parameters.items()))
            self.assertEqual((chosen["BLOCK"] % 64, chosen["BLOCK"] % chosen["BN"]), (0, 0), (name, d, dv, causal))

    def test_empty(self):
        q, k, v = make(d=64, keys=0)
        out, lse = attention_fp8(q, k, v, return_lse=True)
        self.assertFalse(out.any())
        self.assertTrue((lse == -torch.inf).all())

    def test_refused(self):
        q, k, v = make(d=64)
        k8, slopes, learned = k.to(torch.float8_e4m3fn), torch.ones(2), torch.ones(2, requires_grad=True)
        for arguments, options, error, text in (
            ((q, k, v), {"layout": "SBHD"}, ValueError, "argument 'layout'"),
            ((q.float(), k, v), {}, TypeError, "argument 'q' has type torch.float32"),
            ((q, None, v), {}, TypeError, "argument 'k' is None; it is a tensor of torch"),
            ((q, k, v[0, 0]), {"layout": "BSHD"}, ValueError, "argument 'v' has 2 dimensions; attention takes 4"),
            ((q, k, v), {"seed": "a"}, TypeError, "argument 'seed' is 'a'; it is an integer"),
            ((q, k, v), {"seed": 1.5}, TypeError, "argument 'seed' is 1.5; it is an integer"),
            ((q, k, v), {"seed": 2**64}, ValueError, "argument 'seed' is 18446744073709551616; it is an integer of 64 bits"),
            ((q, k, v), {"scale": learned[:1]}, NotImplementedError, "argument 'scale' requires a gradient, and kernels compute none"),
            ((q, k, v), {"scale": 0}, ValueError, "argument 'scale' is 0"),
            ((q, k, v), {"k_scale": 2.0}, ValueError, "argument 'k_scale' is given with 'k' of 16 bits"),
            ((q, k8, v), {}, TypeError, "argument 'v' has type torch.bfloat16 and 'k' torch.float8_e4m3fn"),
            ((q, k8[..., :32], k8), {}, ValueError, "argument 'k' has head dimension 32 and 'q' 64"),
            ((q, k8, k8), {"rotate": True}, ValueError, "argument 'rotate' is true with 'k' of 8 bits"),
            ((q, k8, k8), {"k_scale": 0.0}, ValueError, "argument 'k_scale' is 0.0; it is a number above 0"),
            ((q, k8, k8), {"v_scale": torch.ones(1)}, ValueError, "argument 'v_scale' is tensor"),
            (make(d=40), {}, ValueError, "head dimensions 40 and 40"),
            (make(d=64, dv=72), {}, ValueError, "head dimensions 64 and 72"),
            ((q, k.clone().requires_grad_(), v), {}, NotImplementedError, "argument 'k' requires a gradient"),
            ((q, k, v), {"causal": True, "mask_mod": lambda b, h, q, k: q < 9}, ValueError, "argument 'causal' is given with"),
            ((q, k, v), {"score_mod": lambda s, b, h, q, k: s if q > k else 0}, TypeError, "a condition on a traced value"),
            ((q, k, v), {"score_mod": lambda s, b, h, q, k: s * learned[h]}, NotImplementedError, "requires a gradient, and att"),
        ):
            with self.assertRaisesRegex(error, text):
                attention_fp8(*arguments, **options)
        with self.assertRaisesRegex(NotImplementedError, "argument 'q' has a tangent"):
            torch.func.jvp(lambda x: attention_fp8(x, k, v), (q,), (q,))
        problems.tessera.torch.use_interpreter(False)
        with self.assertRaisesRegex(ValueError, "argument 'q' is on the CPU"):
            attention_fp8(q, k, v)


if __name__ == "__main__":
    unittest.main()
