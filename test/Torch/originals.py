# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Functions with the names of others: their signatures and their meaning."""

import inspect
import unittest
import unittest.mock

import problems
import torch
import torch._dynamo.testing
import torch.nn.attention.flex_attention as flex
from problems import band, exact, make

import tessera.torch
from tessera._attention import _gradient_kernels
from tessera.torch import flash_attn_func, scaled_dot_product_attention

FLASH_OPTIONS = (
    "dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, "
    "deterministic=False, return_attn_probs=False"
)


def describe(function):
    """The names, kinds and defaults of the arguments of a function."""
    signature = inspect.signature(function)
    bare = [parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()]
    return str(inspect.Signature(bare))


class ScaledDotProduct(problems.Interpreted):
    def test_signature(self):
        self.assertEqual(
            describe(scaled_dot_product_attention),
            "(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False)",
        )

    def test_causal_mask_is_aligned_at_the_first_row(self):
        for rows, keys in ((70, 70), (70, 90), (90, 70), (1, 40)):
            tensors = make(rows=rows, keys=keys, heads=1)
            expected = torch.nn.functional.scaled_dot_product_attention(
                *(tensor.double() for tensor in tensors), is_causal=True
            )
            problems.assert_close(self, scaled_dot_product_attention(*tensors, is_causal=True), expected, (rows, keys))

    def test_shared_heads_and_scale(self):
        tensors = make(heads=4, kv_heads=2)
        out = scaled_dot_product_attention(*tensors, scale=0.3, enable_gqa=True)
        problems.assert_close(self, out, exact(*tensors, scale=0.3)[0])
        with self.assertRaisesRegex(ValueError, "'key' has 2 heads and 'query' 4; pass enable_gqa=True"):
            scaled_dot_product_attention(*tensors)

    def test_three_dimensions(self):
        q, k, v = (tensor[:, 0] for tensor in make(heads=1))
        expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
        problems.assert_close(self, scaled_dot_product_attention(q, k, v), expected)

    def test_masks(self):
        q, k, v = make(keys=96)
        generator = torch.Generator().manual_seed(3)
        shapes = (70, 96), (2, 1, 70, 96), (1, 2, 1, 96), (70, 1), (2, 1, 1, 96)
        for shape in shapes:
            added = torch.randn(shape, generator=generator)
            for mask in (added, added.bfloat16(), added > -0.5):
                with self.subTest(f"{mask.dtype} {shape}"):
                    wide = mask if mask.dtype is torch.bool else mask.double()
                    doubles = (tensor.double() for tensor in (q, k, v))
                    want = torch.nn.functional.scaled_dot_product_attention(*doubles, wide, enable_gqa=True)
                    got = scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
                    problems.assert_close(self, got, want.nan_to_num())

    def test_mask_of_three_dimensions(self):
        q, k, v = (tensor[:, 0] for tensor in make(heads=1, keys=96))
        mask = torch.randn(2, 70, 96)
        want = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), mask.double())
        problems.assert_close(self, scaled_dot_product_attention(q, k, v, mask), want)

    def test_refusals(self):
        tensors = make(heads=1)
        for given, name in (((None, *tensors[1:]), "query"), ((*tensors[:2], 3), "value"), ((*tensors, [1.0]), "attn_mask")):
            with self.assertRaisesRegex(TypeError, f"argument '{name}' is .*; it is a tensor of torch"):
                scaled_dot_product_attention(*given)
        for exception, text, mask in (
            (TypeError, "argument 'attn_mask' has type torch.int64", torch.ones(70, 90, dtype=torch.int64)),
            (ValueError, "argument 'attn_mask' has shape .70, 91., which is not repeated", torch.ones(70, 91)),
            (ValueError, "'attn_mask' has rows of 90 torch.float32, which do not begin at multiples of 16", torch.ones(70, 90)),
            (ValueError, "argument 'attn_mask' has stride 70 in its last dimension", torch.ones(90, 70).t()),
            (ValueError, "argument 'attn_mask' is on meta", torch.ones(70, 90, device="meta")),
        ):
            with self.subTest(text), self.assertRaisesRegex(exception, text):
                scaled_dot_product_attention(*tensors, attn_mask=mask)
        q, k, v = tensors
        for exception, text, given, options in (
            (ValueError, "argument 'query' has head dimension 60", (q[..., :60], k[..., :60], v), {}),
            (ValueError, "argument 'key' has 2 dimensions", (q, k[0, 0], v), {}),
            (TypeError, "argument 'value' has type torch.float16 and 'query' torch.bfloat16", (q, k, v.half()), {}),
            (ValueError, "argument 'scale' is -1.0; kernels take a number above 1e-30, which float32 has: negate q$", (q, k, v), {"scale": -1.0}),
            (ValueError, "argument 'key' is on cpu and 'query' on meta", (q.to("meta"), k, v), {}),
        ):
            with self.subTest(text), self.assertRaisesRegex(exception, text):
                scaled_dot_product_attention(*given, **options)
        q, k, v = make(heads=1, keys=0)
        self.assertFalse(scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(70, 0)).any())
        with self.assertRaisesRegex(ValueError, "'attn_mask' and 'is_causal' are both given"):
            scaled_dot_product_attention(*tensors, attn_mask=torch.ones(90), is_causal=True)
        with self.assertRaisesRegex(NotImplementedError, "argument 'dropout_p' is 0.1"):
            scaled_dot_product_attention(*tensors, dropout_p=0.1)


class Use(problems.Interpreted):
    def test_use_beside_chosen_backends(self):
        """Torch's own operations are left where they are asked for, as for gradients of gradients."""
        q, k, v = make(heads=1, rows=20, keys=20)
        functional, backends = torch.nn.functional, torch.nn.attention.SDPBackend
        with tessera.torch.use() as use:
            with torch.nn.attention.sdpa_kernel(backends.MATH):
                leaf = q.clone().requires_grad_()
                out = functional.scaled_dot_product_attention(leaf, k, v)
                (first,) = torch.autograd.grad(out.float().square().sum(), leaf, create_graph=True)
                self.assertTrue(torch.autograd.grad(first.float().sum(), leaf)[0].any())
            self.assertEqual(use.taken, 0)
            self.assertIn("1 calls left to torch: sdpa_kernel asks for torch's own operations", str(use))
            with torch.nn.attention.sdpa_kernel([backends.MATH, backends.FLASH_ATTENTION]):
                functional.scaled_dot_product_attention(q, k, v)
            self.assertEqual((use.taken, use.left.total()), (1, 1))

    def test_takes_and_leaves(self):
        functional, original = torch.nn.functional, torch.nn.functional.scaled_dot_product_attention
        tensors = make(heads=1)
        mask = torch.ones(70, 90, dtype=torch.bool)
        with tessera.torch.use() as use:
            out = functional.scaled_dot_product_attention(*tensors, is_causal=True)
            self.assertTrue(torch.equal(out, scaled_dot_product_attention(*tensors, is_causal=True)))
            functional.scaled_dot_product_attention(*tensors, attn_mask=mask)
            functional.scaled_dot_product_attention(*tensors, mask)
            functional.scaled_dot_product_attention(*make(heads=1, d=36))
            functional.scaled_dot_product_attention(*(tensor.float() for tensor in tensors))
            functional.scaled_dot_product_attention(*tensors, scale=0.0)
            q, k, v = tensors
            moved = torch.zeros(2, 1, 90, 72, dtype=k.dtype)[..., 4:68]
            functional.scaled_dot_product_attention(q, moved, v)
            functional.scaled_dot_product_attention(*(torch.nested.nested_tensor([tensor[0], tensor[1]]) for tensor in tensors))
            with self.assertRaises(TypeError):
                functional.scaled_dot_product_attention(None, *tensors[1:])
            functional.scaled_dot_product_attention(tensors[0].requires_grad_(), *tensors[1:], is_causal=True).sum().backward()
        self.assertIs(functional.scaled_dot_product_attention, original)
        self.assertEqual(use.taken, 2)
        leaf = tensors[0].detach().float().requires_grad_()
        original(leaf, *(tensor.float() for tensor in tensors[1:]), is_causal=True).sum().backward()
        self.assertLess((tensors[0].grad.float() - leaf.grad).abs().max().item(), 0.02)
        self.assertEqual(sum(use.left.values()), 8)
        for text in (
            "2 calls taken",
            "2 calls left to torch: attn_mask is given",
            "1 calls left to torch: argument 'query' has head dimension 36",
            "1 calls left to torch: argument 'query' has type torch.float32",
            "1 calls left to torch: argument 'query' is nested or sparse",
            "1 calls left to torch: argument 'query' is None; it is a tensor of torch",
            "1 calls left to torch: argument 'scale' is 0.0; kernels take a number above 1e-30",
            "1 calls left to torch: argument 'key' has strides (6480, 6480, 72, 1) and begins at element 4 of its storage",
        ):
            self.assertIn(text, str(use))

    def test_stopped_in_any_order(self):
        functional, tensors = torch.nn.functional, make(heads=1)
        own = functional.scaled_dot_product_attention, flex.flex_attention
        for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)):
            uses = [tessera.torch.use() for _ in order]
            for left, index in enumerate(order, -2):
                uses[index].stop()
                uses[index].stop()
                functional.scaled_dot_product_attention(*tensors)
                self.assertEqual(sum(use.taken for use in uses), min(left + 3, 2), order)
            self.assertEqual((functional.scaled_dot_product_attention, flex.flex_attention), own, order)

    def test_compiled(self):
        tensors = make(heads=1)
        with tessera.torch.use():
            function = torch.compile(
                lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v), fullgraph=True,
                backend="aot_eager",
            )  # fmt: skip
            self.assertTrue(torch.equal(function(*tensors), scaled_dot_product_attention(*tensors)))


class Flash(problems.Interpreted):
    def test_signature(self):
        self.assertEqual(describe(flash_attn_func), f"(q, k, v, {FLASH_OPTIONS})")

    def expected(self, tensors, **options):
        out, lse = exact(*(tensor.transpose(1, 2) for tensor in tensors), **options)
        return out.transpose(1, 2), lse

    def test_masks_are_aligned_at_the_last_row(self):
        tensors = make(layout="BSHD", rows=60)
        for options, bounds in (
            ({}, {}),
            ({"causal": True}, {"right": 0}),
            ({"window_size": (16, 4)}, {"left": 16, "right": 4}),
            ({"causal": True, "window_size": (16, -1)}, {"left": 16, "right": 0}),
        ):
            expected, _ = self.expected(tensors, visible=band(60, 90, **bounds))
            problems.assert_close(self, flash_attn_func(*tensors, **options), expected, options)

    def test_scores(self):
        tensors, slopes = make(layout="BSHD"), torch.tensor([0.5, 0.1])
        options = {"softcap": 2.0, "alibi_slopes": slopes, "return_attn_probs": True}
        out, lse, weights = flash_attn_func(*tensors, 0.0, 0.2, **options)
        expected, expected_lse = self.expected(tensors, softcap=2.0, slopes=slopes, scale=0.2)
        problems.assert_close(self, out, expected)
        self.assertTrue(torch.allclose(lse.double(), expected_lse, atol=1e-4))
        self.assertIsNone(weights)

    def test_softcap_below_0_is_none(self):
        tensors = make(layout="BSHD")
        self.assertTrue(torch.equal(flash_attn_func(*tensors, softcap=-1.0), flash_attn_func(*tensors)))

    def test_deterministic_gradients(self):
        """Which kernels are asked for; GPU tests compare the bits of runs."""
        find, asked = _gradient_kernels.find_gradients, []
        with unittest.mock.patch.object(
            _gradient_kernels, "find_gradients", lambda kind, text, fixed, *rest: asked.append(fixed) or find(kind, text, fixed, *rest)
        ):
            for options in ({}, {"softcap": 2.0}, {"return_attn_probs": True}):
                for deterministic in (True, False):
                    tensors = [tensor.requires_grad_() for tensor in make(layout="BSHD")]
                    results = flash_attn_func(*tensors, deterministic=deterministic, **options)
                    (results[0] if options.get("return_attn_probs") else results).sum().backward()
        self.assertEqual(asked, [True, False] * 3)

    def test_packed(self):
        q, k, v = make(layout="BSHD", kv_heads=2, rows=50, keys=50)
        out = flash_attn_func(q, k, v, causal=True)
        packed = tessera.torch.flash_attn_qkvpacked_func(torch.stack((q, k, v), 2), causal=True)
        self.assertTrue(torch.equal(packed, out))
        packed = tessera.torch.flash_attn_kvpacked_func(q, torch.stack((k, v), 2), causal=True)
        self.assertTrue(torch.equal(packed, out))

    def test_refusals(self):
        tensors = make(layout="BSHD")
        q, k, v = tensors
        for call, name in (
            (lambda: flash_attn_func(q, [1.0], v), "k"),
            (lambda: flash_attn_func(q, k, v, alibi_slopes=2.0), "alibi_slopes"),
            (lambda: tessera.torch.flash_attn_qkvpacked_func(None), "qkv"),
            (lambda: tessera.torch.flash_attn_kvpacked_func(q, 1), "kv"),
            (lambda: tessera.torch.flex_attention(q, None, v), "key"),
        ):
            with self.assertRaisesRegex(TypeError, f"argument '{name}' is .*; it is a tensor of torch"):
                call()
        ones = torch.ones
        for exception, text, given, options in (
            (ValueError, "argument 'window_size' is 5; it is", (q, k, v), {"window_size": 5}),
            (TypeError, "argument 'window_size' has a bound of 0.5", (q, k, v), {"window_size": (0.5, 1)}),
            (ValueError, "argument 'softmax_scale' is -1.0; kernels take a number above 1e-30.*negate q$", (q, k, v), {"softmax_scale": -1.0}),
            (TypeError, "argument 'softmax_scale' is 'x'", (q, k, v), {"softmax_scale": "x"}),
            (ValueError, "argument 'softcap' is nan", (q, k, v), {"softcap": float("nan")}),
            (ValueError, "argument 'alibi_slopes' is torch.float32 of shape .3,.", (q, k, v), {"alibi_slopes": ones(3)}),
            (ValueError, "argument 'k' has 2 dimensions; attention takes 4", (q, k[0, 0], v), {}),
            (ValueError, "argument 'v' has length 89 and 'k' 90", (q, k, v[:, :-1]), {}),
        ):
            with self.subTest(text), self.assertRaisesRegex(exception, text):
                flash_attn_func(*given, **options)
        # Autocast would cast these.
        for call, names, scale in (
            (flash_attn_func, "'softmax_scale' is -1.0; kernels take", "softmax_scale"),
            (scaled_dot_product_attention, "'scale' is -1.0; kernels take", "scale"),
            (tessera.torch.flex_attention, "'scale' is -1.0; kernels take", "scale"),
        ):
            with torch.autocast("cpu", torch.bfloat16), self.assertRaisesRegex(ValueError, names):
                call(*(tensor.float() for tensor in (k, k, v)), **{scale: -1.0})
        with self.assertRaisesRegex(NotImplementedError, "argument 'dropout_p' is 0.5"):
            flash_attn_func(*tensors, 0.5)
        with self.assertRaisesRegex(NotImplementedError, r"argument 'alibi_slopes' is of shape \(2, 2\)"):
            flash_attn_func(*tensors, alibi_slopes=torch.ones(2, 2))
        packed = torch.ones(2, 50, 3, 2, 64, dtype=torch.bfloat16)
        with self.assertRaisesRegex(ValueError, r"argument 'qkv' has shape \(2, 50, 2, 2, 64\); it is \[B, S, 3, heads"):
            tessera.torch.flash_attn_qkvpacked_func(packed[:, :, :2])
        with self.assertRaisesRegex(ValueError, r"argument 'qkv' has shape \(50, 3, 2, 64\)"):
            tessera.torch.flash_attn_qkvpacked_func(packed[0])
        with self.assertRaisesRegex(ValueError, r"argument 'kv' has shape \(2, 50, 3, 2, 64\); it is \[B, S, 2, heads"):
            tessera.torch.flash_attn_kvpacked_func(tensors[0], packed)


class Compiled(problems.Interpreted):
    """Masks of lengths that change, under torch.compile."""

    def test_masks_of_changing_lengths(self):
        torch._dynamo.reset()
        counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(scaled_dot_product_attention, fullgraph=True, backend=counter)
        for length in (8, 16, 24, 40):
            q, k, v = make(rows=length, keys=length)
            mask = torch.randn(length, length)
            self.assertTrue(torch.equal(compiled(q, k, v, mask, enable_gqa=True), scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)), length)
        self.assertLessEqual(counter.frame_count, 2)

    def test_shared_heads_of_three_dimensions(self):
        q, k, v = (tensor[0] for tensor in make())
        k, v = k[:1], v[:1]
        want = torch.nn.functional.scaled_dot_product_attention(q[None].float(), k[None].float(), v[None].float(), enable_gqa=True)[0]
        problems.assert_close(self, scaled_dot_product_attention(q, k, v, enable_gqa=True), want.double(), {})



if __name__ == "__main__":
    unittest.main()
