# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""tessera.torch.attention on the interpreter, compared with f64."""

import unittest
import unittest.mock

import numpy
import problems
import torch
from problems import band, exact, make

import tessera.torch
from tessera.torch import attention

SLOPES = torch.tensor([0.5, 0.1])


class Meaning(problems.Interpreted):
    def check(self, tensors, expected, **options):
        out, lse = attention(*tensors, return_lse=True, **options)
        problems.assert_close(self, out, expected[0], options)
        self.assertTrue(torch.allclose(lse.double(), expected[1], rtol=1e-5, atol=1e-5), options)
        self.assertTrue(torch.equal(attention(*tensors, **options), out))

    def test_masks(self):
        tensors = make()
        for options, bounds in (
            ({}, {}),
            ({"causal": True}, {"right": 0}),
            ({"window": (20, 3)}, {"left": 20, "right": 3}),
            ({"window": (-1, 5)}, {"right": 5}),
            ({"window": (None, None)}, {}),
            ({"causal": True, "window": (16, 7)}, {"left": 16, "right": 0}),
            ({"window": (2**31 - 1, 5)}, {"right": 5}),
            ({"window": (5, 2**31 - 1)}, {"left": 5}),
            ({"window": (2**40, 2**40)}, {}),
        ):
            self.check(tensors, exact(*tensors, band(70, 90, **bounds)), **options)

    def test_scores(self):
        tensors = make()
        self.check(tensors, exact(*tensors, softcap=1.5), softcap=1.5)
        self.check(tensors, exact(*tensors, slopes=SLOPES), alibi=SLOPES)
        visible = band(70, 90, right=0)
        expected = exact(*tensors, visible, softcap=1.5, slopes=SLOPES, scale=0.3)
        self.check(tensors, expected, causal=True, softcap=1.5, alibi=SLOPES, scale=0.3)

    def test_types_and_sizes(self):
        for sizes in (
            {"dtype": torch.float16},
            {"heads": 6, "kv_heads": 3},
            {"d": 128, "dv": 64},
            {"d": 96},
            {"d": 40},
            {"d": 72, "dv": 200, "dtype": torch.float16},
            {"d": 120},
            {"rows": 1, "keys": 1},
            {"rows": 129, "keys": 257, "batch": 1},
        ):
            tensors = make(**sizes)
            self.check(tensors, exact(*tensors))

    def test_wide(self):
        """Head dimensions above 256: forward alone, and without functions of scores."""
        for sizes, options, bounds in (
            ({"heads": 4, "d": 512}, {"causal": True}, {"right": 0}),
            ({"d": 320, "dv": 264, "dtype": torch.float16}, {}, {}),
            ({"d": 512, "dv": 128}, {"window": (20, 3)}, {"left": 20, "right": 3}),
        ):
            tensors = make(batch=1, **sizes)
            self.check(tensors, exact(*tensors, band(70, 90, **bounds)), **options)
        q, k, v = make(batch=1, d=512)
        with self.assertRaisesRegex(NotImplementedError, "argument 'q' has head dimension 512, and gradients are those of up to 256"):
            attention(q.requires_grad_(), k, v)
        with torch.no_grad():
            attention(q, k, v)
        with self.assertRaisesRegex(ValueError, "head dimension 512; attention with functions of scores takes multiples of 8 up to 256"):
            attention(q.detach(), k, v, score_mod=lambda s, b, h, i, j: s)

    def test_rows_without_keys(self):
        tensors = make(rows=90, keys=20)
        out, lse = attention(*tensors, causal=True, return_lse=True)
        self.assertFalse(out[:, :, :70].any())
        self.assertTrue((lse[:, :, :70] == -torch.inf).all())
        self.check(tensors, exact(*tensors, band(90, 20, right=0)), causal=True)

    def test_empty(self):
        q, k, v = make(keys=0)
        out, lse = attention(q, k, v, return_lse=True)
        self.assertFalse(out.any())
        self.assertTrue((lse == -torch.inf).all())
        self.assertEqual(attention(*make(rows=0)).shape, (2, 2, 0, 64))
        self.assertEqual(attention(*make(batch=0)).shape, (0, 2, 70, 64))

    def test_layouts_and_strides(self):
        q, k, v = make(layout="BSHD", heads=4, kv_heads=4, rows=50, keys=50)
        expected = exact(*(tensor.transpose(1, 2) for tensor in (q, k, v)))[0].transpose(1, 2)
        out = attention(q, k, v, layout="BSHD")
        problems.assert_close(self, out, expected)
        self.assertTrue(out.is_contiguous())
        packed = torch.stack((q, k, v), 2)
        packed = attention(*packed.unbind(2), layout="BSHD")
        self.assertTrue(torch.equal(packed, out))
        self.assertTrue(packed.is_contiguous())
        heads_first = attention(*(tensor.transpose(1, 2).contiguous() for tensor in (q, k, v)))
        self.assertTrue(torch.equal(heads_first.transpose(1, 2), out))
        self.assertTrue(heads_first.is_contiguous())

    def test_autocast(self):
        q, k, v = make(dtype=torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            out = attention(q, k, v)
        self.assertTrue(torch.equal(out, attention(q.bfloat16(), k.bfloat16(), v.bfloat16())))

    def test_fallback_agrees(self):
        slopes = SLOPES
        for options in ({}, {"causal": True, "window": (16, None)}, {"softcap": 1.5, "alibi": slopes}):
            tensors = make()
            out, lse = attention(*tensors, return_lse=True, **options)
            single = (tensor.float().requires_grad_() for tensor in tensors)
            other, other_lse = attention(*single, return_lse=True, fallback="torch", **options)
            problems.assert_close(self, out, other.detach().double(), options)
            self.assertTrue(torch.allclose(lse, other_lse, atol=1e-4))

    def test_bias(self):
        q, k, v = make()
        bias = torch.randn(2, 1, 70, 96, generator=torch.Generator().manual_seed(2))[..., :90]
        for options in ({}, {"causal": True}, {"window": (20, 3)}, {"window": (None, -30)}, {"scale": 0.3}):
            with self.subTest(options):
                out, lse = attention(q, k, v, bias=bias, return_lse=True, **options)
                single = (tensor.float() for tensor in (q, k, v))
                want, want_lse = attention(*single, bias=bias, return_lse=True, fallback="torch", **options)
                problems.assert_close(self, out, want.double())
                self.assertTrue(torch.allclose(lse, want_lse, atol=1e-4))
        turned = (tensor.transpose(1, 2) for tensor in (q, k, v))
        other = attention(*turned, bias=bias, layout="BSHD").transpose(1, 2)
        self.assertTrue(torch.equal(other, attention(q, k, v, bias=bias)))

    def test_fallback_takes_tensors_where_they_lie(self):
        """Rows that do not begin at multiples of 16 bytes, which kernels on a device refuse."""
        q, k, v = make()
        moved, far = torch.empty(2, 1, 90, 72, dtype=q.dtype)[..., 4:68].copy_(k), torch.empty(2, 1, 90, 68, dtype=q.dtype)
        with unittest.mock.patch.object(tessera.torch._fallback, "attention", wraps=tessera.torch._fallback.attention) as taken:
            for key in (moved, far[..., :64].copy_(k)):
                problems.assert_close(self, attention(q, key, v, fallback="torch"), exact(q, k, v)[0])
            self.assertEqual(taken.call_count, 2)
            attention(q, k, v, fallback="torch")
            self.assertEqual(taken.call_count, 2)

    def test_fallback_takes_what_no_kernel_takes(self):
        q, k, v = (tensor.float().requires_grad_() for tensor in make(d=40))
        bias = torch.zeros(70, 90)
        out = attention(q, k, v, bias=bias, fallback="torch")
        out.sum().backward()
        self.assertTrue(q.grad.abs().sum() > 0)
        problems.assert_close(self, out.detach().bfloat16(), exact(q, k, v)[0].detach())

    def test_fallback_of_wide_numbers(self):
        """float64 is computed in itself, and under autocast no score is rounded to 16 bits."""
        tensors = make()
        bias = torch.randn(70, 90, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        want = exact(*tensors)[0]
        out, lse = attention(*(tensor.double() for tensor in tensors), return_lse=True, fallback="torch")
        self.assertLess((out - want).abs().max().item(), 1e-12)
        self.assertEqual((out.dtype, lse.dtype), (torch.float64, torch.float32))
        options = {"bias": bias, "fallback": "torch", "return_lse": True}
        plain = attention(*tensors, **options)
        with torch.autocast("cpu", torch.bfloat16):
            cast = attention(*tensors, **options)
        for got, expected in zip(cast, plain):
            self.assertTrue(torch.equal(got, expected))

    def test_fallback_of_hidden_rows(self):
        """Rows that a bias of -inf hides have gradients of 0."""
        leaves = [tensor.double().requires_grad_() for tensor in make(rows=6, keys=9)]
        bias = torch.randn(6, 9, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        bias[2], bias[4, :5] = -torch.inf, -torch.inf
        bias.requires_grad_()
        out, lse = attention(*leaves, bias=bias, return_lse=True, fallback="torch")
        self.assertFalse(out[:, :, 2].any())
        shown = torch.arange(6) != 2
        (out.square().sum() + lse[:, :, shown].sum()).backward()
        others = [leaf.detach()[:, :, shown].requires_grad_() if leaf is leaves[0] else leaf.detach().requires_grad_() for leaf in leaves]
        out, lse = attention(*others, bias=bias.detach()[shown], return_lse=True, fallback="torch")
        (out.square().sum() + lse.sum()).backward()
        self.assertFalse(leaves[0].grad[:, :, 2].any() or bias.grad[2].any())
        for got, want in zip((leaves[0].grad[:, :, shown], leaves[1].grad, leaves[2].grad), (other.grad for other in others)):
            self.assertTrue(torch.allclose(got, want))

    def test_fallback_refuses(self):
        """What PyTorch's operations would take for something else, or refuse without a name."""
        q, k, v = (tensor.float() for tensor in make())
        for exception, text, tensors, options in (
            (ValueError, "argument 'k' is on meta and 'q' on cpu", (q, k.to("meta"), v), {}),
            (ValueError, "argument 'k' has batch 1 and 'q' 2", (q, k[:1], v[:1]), {}),
            (ValueError, "argument 'v' has length 80 and 'k' 90", (q, k, v[:, :, :80]), {}),
            (ValueError, "argument 'k' has 3 dimensions", (q, k[0], v), {}),
            (TypeError, "argument 'q' has type torch.int32", (q.int(), k.int(), v.int()), {}),
            (TypeError, "argument 'k' is nested or sparse", (q, k.to_sparse(), v), {}),
            (ValueError, "argument 'alibi' is on meta", (q, k, v), {"alibi": SLOPES.to("meta")}),
            (ValueError, "argument 'bias' has shape (7, 90), which is not repeated to (2, 2, 70, 90)", (q, k, v),
             {"bias": torch.zeros(7, 90)}),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaises(exception) as caught:
                attention(*tensors, fallback="torch", **options)
            self.assertIn(text, str(caught.exception))


class Refusals(problems.Interpreted):
    def test_tangents(self):
        """Forward-mode derivatives, which would be 0 otherwise."""
        q, k, v = make()
        for options in ({}, {"causal": True, "softcap": 2.0}, {"bias": torch.zeros(70, 96)[:, :90]}, {"return_lse": True}):
            for name, call in (
                ("q", lambda x: attention(x, k, v, **options)), ("v", lambda x: attention(q, k, x, **options)),
            ):  # fmt: skip
                x = {"q": q, "v": v}[name]
                with self.subTest(options), self.assertRaisesRegex(NotImplementedError, f"argument '{name}' has a tangent"):
                    torch.func.jvp(call, (x,), (torch.ones_like(x),))
        with torch.autograd.forward_ad.dual_level():
            attention(q, k, v)

    def refuse(self, exception, text, *tensors, **options):
        with self.assertRaises(exception) as caught:
            attention(*tensors, **options)
        self.assertIn(text, str(caught.exception))

    def test_tensors(self):
        q, k, v = make()
        self.refuse(TypeError, "argument 'q' has type torch.float32", q.float(), k.float(), v.float())
        bytes = (tensor.to(torch.float8_e4m3fn) for tensor in (q, k, v))
        self.refuse(TypeError, "float8_e4m3fn; attention takes float16 and bfloat16, and attention_fp8 e4m3", *bytes)
        self.refuse(TypeError, "argument 'v' has type torch.float16 and 'q' torch.bfloat16", q, k, v.half())
        self.refuse(ValueError, "argument 'k' has 3 dimensions", q, k[0], v)
        self.refuse(ValueError, "argument 'k' has 2 dimensions", q, k[0, 0], v, layout="BSHD")
        multiples = "argument 'q' has head dimension 36; attention takes multiples of 8 up to 512"
        self.refuse(ValueError, multiples, *make(d=36))
        self.refuse(ValueError, "argument 'v' has head dimension 520", *make(dv=520))
        self.refuse(ValueError, "argument 'k' has batch 1 and 'q' 2", q, k[:1], v)
        self.refuse(ValueError, "argument 'v' has length 89 and 'k' 90", q, k, v[:, :, 1:])
        self.refuse(ValueError, "argument 'v' has number of heads 2 and 'k' 1", q, k, v.expand(-1, 2, -1, -1))
        self.refuse(ValueError, "argument 'q' has 3 heads, which is no multiple of the 2", *make(heads=3, kv_heads=2))
        self.refuse(ValueError, "no multiple of the 0 heads of 'k'", q, k[:, :0], v[:, :0])
        self.refuse(ValueError, "argument 'k' has stride 90 in its last dimension", q, k.mT.contiguous().mT, v)
        self.refuse(ValueError, "argument 'v' is on meta and 'q' on cpu", q, k, v.to("meta"))

    def test_what_is_no_tensor(self):
        q, k, v = make()
        for value, what in ((None, "None"), ([1.0], "of type list"), (3, "of type int"), (q.float().numpy(), "of type ndarray")):
            for options in ({}, {"layout": "BSHD"}, {"window": (1, 1)}, {"bias": torch.zeros(90)}, {"mask_mod": problems.band},
                            {"fallback": "torch"}, {"return_lse": True, "causal": True}):
                with self.subTest(what, **options), torch.no_grad():
                    self.refuse(TypeError, f"argument 'q' is {what}; it is a tensor of torch", value, k, v, **options)
                with self.subTest(what, **options):
                    self.refuse(TypeError, f"argument 'k' is {what}", q, value, v, **options)
                    self.refuse(TypeError, f"argument 'v' is {what}", q, k, value, **options)
            if value is not None:
                self.refuse(TypeError, f"argument 'alibi' is {what}", q, k, v, alibi=value)
                self.refuse(TypeError, f"argument 'bias' is {what}", q, k, v, bias=value)
        # Nothing else is taken for that.
        with self.assertRaisesRegex(tessera.TraceError, "AttributeError: 'int' object has no attribute 'missing'"):
            attention(q, k, v, score_mod=lambda score, b, h, row, key: score + (3).missing)

    def test_options(self):
        tensors = make()
        for options in ({}, {"window": (1, 1)}, {"fallback": "torch"}, {"mask_mod": problems.band}):
            self.refuse(TypeError, "argument 'scale' is 'a'; it is a number above 0, or None", *tensors, scale="a", **options)
        self.refuse(TypeError, "argument 'scale' is [1.0]; it is", *tensors, scale=[1.0])
        self.refuse(TypeError, "argument 'softcap' is 'x'; it is a number, 0 for none", *tensors, softcap="x")
        for softcap in (-1.0, 1e-40, 1e60, torch.inf, torch.nan):
            self.refuse(ValueError, f"argument 'softcap' is {softcap}; it is 0 for none, or a number from 1e-30 to 1e+30", *tensors,
                        softcap=softcap)  # fmt: skip
        self.assertTrue(torch.equal(attention(*tensors, softcap=None, window=(1, 1)), attention(*tensors, window=(1, 1))))
        with self.assertRaisesRegex(TypeError, r"attention\(\) got an unexpected keyword argument 'casual'; did you mean 'causal'\?"):
            attention(*tensors, casual=True)
        self.refuse(ValueError, "argument 'layout' is 'SBHD'", *tensors, layout="SBHD")
        self.refuse(ValueError, "argument 'fallback' is 'slow'", *tensors, fallback="slow")
        self.refuse(ValueError, "argument 'alibi' is torch.float32 of shape (3,)", *tensors, alibi=torch.ones(3))
        self.refuse(ValueError, "one float32 slope for each of the 2 heads", *tensors, alibi=torch.ones(2).half())
        self.refuse(ValueError, "argument 'alibi' is on meta and 'q' on cpu", *tensors, alibi=torch.ones(2, device="meta"))
        self.refuse(ValueError, "argument 'scale' is -0.5; kernels take a number above 1e-30, which float32 has: negate q, or pass",
                    *tensors, scale=-0.5)  # fmt: skip
        for scale in (0.0, 1e-50, torch.inf, torch.nan):
            self.refuse(ValueError, f"argument 'scale' is {scale}; kernels take a number above 1e-30", *tensors, scale=scale)
        for scale in (0.0, -0.5, 1e-50):
            problems.assert_close(self, attention(*tensors, scale=scale, fallback="torch"), exact(*tensors, scale=scale)[0])
        self.refuse(TypeError, "argument 'scale' is a tensor of shape (2,); it is a number", *tensors, scale=torch.ones(2))
        self.refuse(ValueError, "argument 'window' is 3; it is (left, right)", *tensors, window=3)
        self.refuse(ValueError, "argument 'window' is (1, 2, 3); it is", *tensors, window=(1, 2, 3))
        self.refuse(TypeError, "argument 'window' has a bound of 3.5; it is an integer", *tensors, window=(3.5, 0))
        for bound in (numpy.float32(3.5), torch.tensor(3.5), numpy.array(3.5), "3"):
            self.refuse(TypeError, f"argument 'window' has a bound of {bound!r}; it is an integer", *tensors, window=(bound, 0))
        for bound in (numpy.int32(3), torch.tensor(3)):
            self.assertTrue(torch.equal(attention(*tensors, window=(bound, 0)), attention(*tensors, window=(3, 0))))
        self.refuse(NotImplementedError, "'bias' is given beside softcap", *tensors, bias=torch.zeros(90), softcap=2.0)
        for fallback in (None, "torch"):
            self.refuse(TypeError, "argument 'bias' is a mask", *tensors, bias=torch.zeros(90, dtype=torch.bool), fallback=fallback)
        self.refuse(ValueError, "argument 'bias' has rows of 90", *tensors, bias=torch.zeros(70, 90))

    def test_gradients(self):
        slopes = torch.ones(2, requires_grad=True)
        self.refuse(ValueError, "one float32 slope for each of the 2 heads", *make(), alibi=slopes.half())
        with torch.no_grad():
            self.assertFalse(attention(*make(), alibi=slopes).requires_grad)

    def test_gradients_of_numbers(self):
        """Kernels have none of the scale and the soft cap, the fallback has."""
        tensors = make(rows=9, keys=11)
        for name, number in (("scale", 0.3), ("softcap", 1.5)):
            for options in ({}, {"window": (2, 1)}, {"bias": torch.zeros(11)} if name == "scale" else {"causal": True}):
                leaf = torch.tensor(number, requires_grad=True)
                self.refuse(NotImplementedError, f"argument '{name}' requires a gradient", *tensors, **options, **{name: leaf})
                with torch.no_grad():
                    out = attention(*tensors, **options, **{name: leaf})
                self.assertTrue(torch.equal(out, attention(*tensors, **options, **{name: number})))
                out = attention(*tensors, **options, fallback="torch", **{name: leaf})
                double = leaf.detach().double().requires_grad_()
                visible = {"window": problems.band(9, 11, 2, 1), "causal": problems.band(9, 11, right=0)}
                want, _ = exact(*tensors, next((visible[key] for key in options if key in visible), None), **{name: double})
                found, expected = (torch.autograd.grad(x.double().sum(), y)[0] for x, y in ((out, leaf), (want, double)))
                self.assertLess((found - expected).abs().item(), 0.02 * expected.abs().item() + 0.01)
        leaf = torch.tensor(0.3, requires_grad=True)
        self.refuse(NotImplementedError, "'scale' requires a gradient, and kernels compute none of a number: detach it, or multiply",
                    *tensors, scale=leaf, mask_mod=lambda b, h, q, k: q >= k)  # fmt: skip

    def test_cpu(self):
        tessera.torch.use_interpreter(False)
        self.refuse(ValueError, "argument 'q' is on the CPU", *make())

    def test_warm_up(self):
        with self.assertRaisesRegex(TypeError, "argument 'dtype' is torch.float32"):
            tessera.torch.warm_up(torch.float32, 64)
        for error, text, sizes in (
            (ValueError, "argument 'head_dim' has head dimension 36; attention takes multiples of 8", {"head_dim": 36}),
            (ValueError, "argument 'value_dim' has head dimension 520", {"head_dim": 64, "value_dim": 520}),
            (TypeError, "argument 'head_dim' is '64'; it is an integer", {"head_dim": "64"}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                tessera.torch.warm_up(torch.bfloat16, **sizes)


if __name__ == "__main__":
    unittest.main()
