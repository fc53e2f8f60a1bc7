# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Gradients of attention, by the interpreter on the CPU, against those in float64."""

import unittest
import unittest.mock

import problems
import torch
from problems import make
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils.checkpoint import checkpoint

from tessera._attention import _gradient_kernels
from tessera.torch import attention, scaled_dot_product_attention


def expected_gradients(tensors, grad, grad_lse, visible=None, softcap=0.0, alibi=None):
    leaves = [tensor.detach().double().requires_grad_() for tensor in tensors]
    out, lse = problems.exact(*leaves, visible, softcap, alibi)
    loss = (out * grad.double()).sum()
    if grad_lse is not None:
        loss = loss + torch.where(lse.isinf(), 0, lse * grad_lse.double()).sum()
    return torch.autograd.grad(loss, leaves)


class Gradients(problems.Interpreted):
    def check(self, tensors, causal=False, lse=False, layout="BHSD", window=None, **variant):
        leaves = [tensor.requires_grad_() for tensor in tensors]
        out = attention(*leaves, causal=causal, layout=layout, return_lse=lse, window=window, **variant)
        out, logs = out if lse else (out, None)
        generator = torch.Generator().manual_seed(1)
        grad = torch.randn(out.shape, generator=generator).to(out.dtype)
        grads = [grad] + ([torch.randn(logs.shape, generator=generator)] if lse else [])
        found = torch.autograd.grad([out, logs] if lse else [out], leaves, grads)
        order = (lambda x: x.transpose(1, 2)) if layout == "BSHD" else (lambda x: x)
        views = [order(tensor) for tensor in leaves]
        left, right = (None if bound is None or bound < 0 else bound for bound in window or (None, None))
        visible = problems.band(views[0].shape[2], views[1].shape[2], left, 0 if causal else right)
        expected = expected_gradients(views, order(grad), grads[1] if lse else None, visible, **variant)
        for name, got, want, leaf in zip("qkv", found, expected, leaves):
            self.assertEqual((got.shape, got.dtype), (leaf.shape, leaf.dtype))
            error = (order(got).double() - want).norm() / want.norm()
            # dP and dS are rounded to 16 bits, and so is the gradient.
            self.assertLess(error.item(), 2 * torch.finfo(leaf.dtype).eps, name)

    def test_masks_and_lengths(self):
        for causal in (False, True):
            self.check(make(batch=1, rows=70, keys=90), causal)
            self.check(make(batch=1, rows=33, keys=20, dtype=torch.float16), causal, lse=True)

    def test_head_dimensions(self):
        self.check(make(batch=1, heads=1, rows=20, keys=24, d=40, dv=72))
        self.check(make(batch=1, heads=1, rows=20, keys=24, d=128), causal=True)
        self.check(make(batch=1, heads=1, rows=20, keys=24, d=136, dv=64), causal=True)
        self.check(make(batch=1, heads=1, rows=20, keys=24, d=256), lse=True)

    def test_variants(self):
        slopes = torch.tensor([0.5, 0.0625])
        for shape in (dict(rows=70, keys=90), dict(rows=90, keys=70, dtype=torch.float16), dict(rows=40, keys=40, d=128)):
            for variant in (
                dict(window=(8, 2)), dict(window=(-1, 3)), dict(window=(8, None), causal=True), dict(softcap=1.5),
                dict(softcap=1.5, causal=True), dict(alibi=slopes), dict(alibi=slopes, causal=True),
                dict(window=(20, 20), softcap=2.0, alibi=slopes),
            ):  # fmt: skip
                with self.subTest(**shape, **variant):
                    self.check(make(batch=1, **shape), lse=True, **variant)

    def test_variants_of_wide_and_padded_heads(self):
        self.check(make(batch=1, heads=1, rows=20, keys=24, d=72, dv=40), softcap=1.5)
        self.check(make(batch=1, heads=1, rows=20, keys=24, d=256), window=(4, 4), lse=True)
        self.check(make(batch=1, heads=1, rows=20, keys=24, d=256), softcap=1.5)

    def test_layout_and_groups(self):
        self.check(make(batch=2, heads=4, kv_heads=2, rows=20, keys=24, layout="BSHD"), layout="BSHD")

    def test_gradients_of_any_strides(self):
        leaves = [tensor.requires_grad_() for tensor in make(batch=1, rows=16, keys=16)]
        attention(*leaves).float().sum().backward()
        ones = torch.ones(1, 2, 16, 64)
        for leaf, want in zip(leaves, expected_gradients(leaves, ones, None)):
            self.assertLess((leaf.grad.double() - want).abs().max().item(), 0.05)

    def test_nothing_to_see(self):
        leaves = [tensor.requires_grad_() for tensor in make(batch=1, rows=5, keys=0)]
        found = torch.autograd.grad(attention(*leaves).sum(), leaves)
        self.assertTrue(all((gradient == 0).all() for gradient in found))

    def test_which_kernels(self):
        """Sums over blocks are in no order; where torch wants one, others are taken."""
        find, found = _gradient_kernels.find_gradients, []

        def note(*arguments):
            found.append(arguments[2])
            return find(*arguments)

        with unittest.mock.patch.object(_gradient_kernels, "find_gradients", note):
            self.check(make(batch=1, rows=16, keys=16))
            torch.use_deterministic_algorithms(True)
            try:
                self.check(make(batch=1, rows=16, keys=16), causal=True, lse=True)
            finally:
                torch.use_deterministic_algorithms(False)
        self.assertEqual(found, [False, True])

    def test_transformations(self):
        tensors = make(batch=1, rows=32, keys=32)

        def loss(*leaves):
            return attention(*leaves, causal=True).float().square().sum()

        def gradients(function):
            leaves = [tensor.clone().requires_grad_() for tensor in tensors]
            return torch.autograd.grad(function(*leaves), leaves)

        expected = gradients(loss)
        counter = CompileCounterWithBackend("aot_eager")
        for function in (
            torch.compile(loss, fullgraph=True, backend=counter),
            lambda *leaves: checkpoint(loss, *leaves, use_reentrant=False),
        ):
            for got, want in zip(gradients(function), expected):
                self.assertTrue(torch.equal(got, want))
        self.assertEqual(counter.frame_count, 1)

    def test_one_tensor_twice(self):
        """Keys that are values, or queries too, and a table that is given twice, in compiled code."""
        x, y = make(batch=1, heads=2, kv_heads=2, rows=70, keys=70)[:2]
        table = torch.rand(2, generator=torch.Generator().manual_seed(1))

        def scaled(s, b, h, q, k, gains, biases):
            return s * gains[h] + biases[h]

        cases = {
            "keys are values": (lambda q, k: attention(q, k, k), (x, y)),
            "one for all": (lambda q: attention(q, q, q, causal=True), (x,)),
            "one is given twice": (lambda q, k: attention(q, k, k, window=(9, 3)), (x, x)),
            "the original's": (lambda q: scaled_dot_product_attention(q, q, q), (x,)),
            "a score": (lambda q, k: attention(q, k, k, score_mod=lambda s, b, h, q, k: s * 0.5), (x, y)),
            "a table": (
                lambda q, k, table: attention(q, k, k.clone(), score_mod=scaled, score_args=(table, table)), (x, y, table),
            ),
        }  # fmt: skip
        for name, (run, given) in cases.items():
            with self.subTest(name):
                torch._dynamo.reset()
                found = []
                for call in (torch.compile(run, fullgraph=True, backend="aot_eager"), run):
                    leaves = [tensor.clone().requires_grad_() for tensor in dict.fromkeys(given)]
                    own = leaves * (len(given) // len(leaves))
                    found.append(torch.autograd.grad(call(*own).float().square().sum(), leaves))
                for got, want in zip(*found):
                    self.assertLess((got - want).norm(), 2 * torch.finfo(x.dtype).eps * want.norm())

    def test_gradients_of_gradients(self):
        """They may be asked for, and are refused where they are needed."""
        q, k, v = make(batch=1, heads=1, rows=16, keys=16)
        for options in ({"causal": True}, {"return_lse": True}, {"score_mod": lambda s, b, h, q, k: s * 2}):
            leaf = q.clone().requires_grad_()
            out = attention(leaf, k, v, **options)
            loss = (out[0] if "return_lse" in options else out).sum()
            (gradient,) = torch.autograd.grad(loss, leaf, create_graph=True)
            (plain,) = torch.autograd.grad(attention(leaf, k, v, **{**options, "return_lse": False}).sum(), leaf)
            self.assertTrue(torch.equal(gradient, plain))
            with self.assertRaisesRegex(NotImplementedError, "gradients of attention have no gradients themselves"):
                gradient.sum().backward()

    def test_torch_func(self):
        """Transforms of torch.func are those of autograd, call by call."""
        q, k, v = make(batch=1, rows=16, keys=16)
        many = torch.stack([q, -q, 2 * q])
        slopes = torch.tensor([0.5, 0.25])
        for options in ({"causal": True}, {"alibi": slopes, "return_lse": True}, {"score_mod": lambda s, b, h, q, k: s * slopes[h]}):

            def loss(q, k, v):
                out = attention(q, k, v, **options)
                return out[0].float().sum() + out[1].sum() if "return_lse" in options else out.float().sum()

            def expect(q):
                leaves = [tensor.detach().clone().requires_grad_() for tensor in (q, k, v)]
                return torch.autograd.grad(loss(*leaves), leaves)

            with self.subTest(options):
                for got, want in zip(torch.func.grad(loss, (0, 1, 2))(q, k, v), expect(q)):
                    self.assertTrue(torch.equal(got, want))
                value, pull = torch.func.vjp(loss, q, k, v)
                self.assertTrue(torch.equal(pull(torch.ones_like(value))[1], expect(q)[1]))
                mapped = torch.vmap(torch.func.grad(loss, (0, 1, 2)), (0, None, None))(many, k, v)
                for index in range(3):
                    for got, want in zip(mapped, expect(many[index])):
                        self.assertTrue(torch.equal(got[index], want))
                of_all = torch.func.grad(lambda many: torch.vmap(loss, (0, None, None))(many, k, v).sum())(many)
                self.assertTrue(torch.equal(of_all[2], expect(many[2])[0]))
                with self.assertRaisesRegex(NotImplementedError, "gradients of attention have no gradients themselves"):
                    torch.func.grad(lambda q: torch.func.grad(loss)(q, k, v).float().sum())(q)

    def test_compiled_map(self):
        q, k, v = make(batch=1, rows=16, keys=16)
        for options in ({"causal": True}, {"score_mod": lambda s, b, h, q, k: s * 2}):
            torch._dynamo.reset()
            run = torch.vmap(lambda q: attention(q, k, v, **options))
            compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
            many = torch.stack([q, -q])
            with torch.no_grad():
                self.assertTrue(torch.equal(compiled(many), run(many)))
            for wanted in (True, False):
                with self.assertRaisesRegex(Exception, "mapped over by torch.vmap in compiled code, .* under torch.no_grad"):
                    compiled(many.clone().requires_grad_(wanted))

    def test_opcheck(self):
        q, k, v = make(batch=1, rows=16, keys=24)
        out, lse = torch.ops.tessera.attention_forward(q, k, v, None, "attention_fwd CAUSAL=true", 0.125)
        given = torch.randn_like(out), torch.randn_like(lse), q, k, v, out, lse
        for variant in ((None, "attention_fwd CAUSAL=true", 0.125),
                        (torch.ones(2), "attention_variants MASK=window ALIBI=true", 0.125, 0.0, 4, 2)):  # fmt: skip
            torch.library.opcheck(torch.ops.tessera.attention_backward.default, (*given, *variant))

    def test_refusals(self):
        """What a launch refuses of the gradients and the statistics that it gets."""
        q, k, v = make(batch=1, rows=16, keys=24)
        out, lse = torch.ops.tessera.attention_forward(q, k, v, None, "attention_fwd CAUSAL=true", 0.125)
        given = {
            "grad": out, "grad_lse": lse, "q": q, "k": k, "v": v, "out": out, "lse": lse, "alibi": None,
            "variant": "attention_fwd CAUSAL=true", "scale": 0.125,
        }  # fmt: skip
        for text, changed in (
            ("argument 'lse' has another type than the elements of its view, 'f32'", {"lse": lse.bfloat16()}),
            ("dimension 1 of the tensor for 'lse' is 1; an earlier argument has H = 2", {"lse": lse[:, :1]}),
            ("argument 'lse' has 2 dimensions; its view has 3", {"lse": lse[0]}),
            ("argument 'dlse' has another type", {"grad_lse": lse.half()}),
            ("dimension 2 of the tensor for 'dlse' is 15; an earlier argument has SQ = 16", {"grad_lse": lse[:, :, 1:]}),
            ("dimension 2 of the tensor for 'do' is 15; an earlier argument has SQ = 16", {"grad": out[:, :, 1:]}),
            ("argument 'o' has another type than the elements of its view, 'bf16'", {"out": out.half()}),
            ("requires that HK divides H, got HK = 3", {name: given[name].expand(-1, 3, -1, -1) for name in "kv"}),
            ("there are no gradients of 'gemm'", {"variant": "gemm BM=64"}),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                torch.ops.tessera.attention_backward(**{**given, **changed})


if __name__ == "__main__":
    unittest.main()
