# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Attention with functions of scores and masks, and its gradients, by the interpreter on the CPU, against float64."""

import unittest
import unittest.mock

import problems
import torch
from problems import make
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.testing import CompileCounterWithBackend

import tessera
from tessera import masks
from tessera.torch import _compute, _functions, attention

SOFTCAP = tessera.Variant(score=lambda s, b, h, q, k, cap: cap * tessera.tanh(s / cap), cap=float)
RISING = tessera.Variant(score=lambda s, b, h, q, k, slopes: s * s - slopes[h] * abs(q - k), mask=masks.window(9, 3), slopes=("H",))
PREFIX = tessera.Variant(mask=masks.causal | masks.prefix)
ROWS = tessera.Variant(score=lambda s, b, h, q, k, rows: s * rows[h, q], rows=("H", "SQ"))


def exact(q, k, v, bend, visible):
    """(output, LSE) in float64; `bend` is the function of scores."""
    q, k, v = q.double(), k.double(), v.double()
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = bend(q @ k.mT * q.shape[3] ** -0.5).masked_fill(~visible, -torch.inf)
    return scores.softmax(-1).nan_to_num(0) @ v, scores.logsumexp(-1)


class Functions(problems.Interpreted):
    def check(self, tensors, variant, arguments, bend=lambda s: s, visible=None, layout="BHSD"):
        order = (lambda x: x.transpose(1, 2)) if layout == "BSHD" else (lambda x: x)
        leaves = [tensor.requires_grad_() for tensor in tensors]
        out, lse = attention(*leaves, variant=variant, arguments=arguments, layout=layout, return_lse=True)
        views = [order(leaf).detach().double().requires_grad_() for leaf in leaves]
        if visible is None:
            visible = torch.ones(views[0].shape[2], views[1].shape[2], dtype=torch.bool)
        want, want_lse = exact(*views, bend, visible)
        problems.assert_close(self, order(out), want)
        self.assertLess((lse - want_lse).abs().nan_to_num(0).max().item(), 1e-2)
        grads = [torch.randn(x.shape, generator=torch.Generator().manual_seed(1)) for x in (order(out), lse)]
        found = torch.autograd.grad([out, lse], leaves, [order(grads[0]).to(out.dtype), grads[1]])
        rounded = grads[0].to(out.dtype).double()
        loss = (want * rounded).sum() + torch.where(want_lse.isinf(), 0, want_lse * grads[1]).sum()
        for name, got, expected in zip("qkv", found, torch.autograd.grad(loss, views)):
            error = (order(got).double() - expected).norm() / expected.norm()
            self.assertLess(error.item(), 2 * torch.finfo(got.dtype).eps, name)

    def test_functions(self):
        slopes = torch.tensor([0.5, 0.125])
        rows, keys = torch.arange(33)[:, None], torch.arange(50)
        self.check(make(batch=2, rows=33, keys=50), SOFTCAP, {"cap": 1.5}, lambda s: 1.5 * (s / 1.5).tanh())
        self.check(
            make(batch=1, rows=33, keys=50, dtype=torch.float16), RISING, {"slopes": slopes},
            lambda s: s * s - slopes.view(-1, 1, 1) * (rows - keys).abs(), problems.band(33, 50, 9, 3),
        )  # fmt: skip
        factors = torch.linspace(0.5, 1.5, 66).view(2, 33)
        self.check(make(batch=1, rows=33, keys=50, d=96), ROWS, {"rows": factors}, lambda s: s * factors[..., None])

    def test_rows_of_captured_tensors(self):
        """Kernels get tensors of queries and keys whose rows begin at multiples of 16 bytes."""
        q, k, v = (x.requires_grad_() for x in make(batch=1, rows=9, keys=11))
        bias, seen = torch.randn(9, 11, generator=torch.Generator().manual_seed(3)), torch.ones(9, 11, dtype=torch.bool).tril(2)
        launched = []

        def launch(kernel, *arguments):
            launched.append([given for name, given in zip(kernel.names, arguments) if name.startswith(("bias", "seen"))])
            return real(kernel, *arguments)

        real = _compute.launch
        with unittest.mock.patch.object(_compute, "launch", launch):
            mods = {"score_mod": lambda s, b, h, i, j: s + bias[i, j], "mask_mod": lambda b, h, i, j: seen[i, j]}
            out = attention(q, k, v, **mods)
            out.sum().backward()
        self.assertEqual(len(launched), 2)
        for views in launched:
            self.assertEqual({view.dtype for view in views}, {torch.float32, torch.int8})
            for view in views:
                self.assertEqual((view.shape, view.stride(0) * view.element_size() % 16), ((9, 11), 0))
                self.assertTrue(torch.equal(view, bias if view.is_floating_point() else seen.to(torch.int8)))
        problems.assert_close(self, out.detach(), exact(q.detach(), k.detach(), v.detach(), lambda s: s + bias, seen)[0])

    def test_numbers(self):
        tensors = make(batch=1, rows=9, keys=11)
        for error, text, variant, arguments in (
            (NotImplementedError, "'cap' requires a gradient.*a view of one element, `cap=.1,.`", SOFTCAP,
             {"cap": torch.tensor(2.0, requires_grad=True)}),
            (TypeError, "'cap' of the variant is 'a'; it is a number", SOFTCAP, {"cap": "a"}),
            (TypeError, "'cap' is a tensor of shape .2,.; it is a number", SOFTCAP, {"cap": torch.ones(2)}),
            (TypeError, "'prefix' of the variant is 9.7; it is an integer", PREFIX, {"prefix": 9.7}),
            (TypeError, "'prefix' of the variant is 'a'; it is an integer", PREFIX, {"prefix": "a"}),
            (TypeError, "'prefix' of the variant is tensor.9.7.*; it is an integer", PREFIX, {"prefix": torch.tensor(9.7)}),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(error, text):
                attention(*tensors, variant=variant, arguments=arguments)
        out = attention(*tensors, variant=PREFIX, arguments={"prefix": torch.tensor(7)})
        self.assertTrue(torch.equal(out, attention(*tensors, variant=PREFIX, arguments={"prefix": 7})))
        cap, view = torch.tensor([2.0], requires_grad=True), tessera.Variant(
            score=lambda s, b, h, q, k, cap: cap[0] * tessera.tanh(s / cap[0]), cap=(1,)
        )
        attention(*tensors, variant=view, arguments={"cap": cap}).float().square().sum().backward()
        self.assertGreater(cap.grad.abs().item(), 0)

    def test_integers_layouts_and_widths(self):
        visible = problems.band(20, 24, right=0) | (torch.arange(24) < 7)
        self.check(make(batch=2, rows=20, keys=24, layout="BSHD"), PREFIX, {"prefix": 7}, visible=visible, layout="BSHD")
        self.check(make(batch=1, rows=20, keys=24, d=72, dv=40), PREFIX, {"prefix": 7}, visible=visible)
        self.check(make(batch=1, rows=20, keys=24, d=256), SOFTCAP, {"cap": 1.5}, lambda s: 1.5 * (s / 1.5).tanh())

    def test_nothing_to_see(self):
        leaves = [tensor.requires_grad_() for tensor in make(batch=1, rows=5, keys=0)]
        found = torch.autograd.grad(attention(*leaves, variant=SOFTCAP, arguments={"cap": 1.0}).sum(), leaves)
        self.assertTrue(all((gradient == 0).all() for gradient in found))

    def test_compile(self):
        tensors = make(batch=1, rows=32, keys=32)
        slopes = torch.tensor([0.5, 0.125])

        def gradients(run):
            leaves = [tensor.clone().requires_grad_() for tensor in tensors]
            return torch.autograd.grad(run(*leaves), leaves)

        def loss(*leaves):
            return attention(*leaves, variant=RISING, arguments={"slopes": slopes}).float().square().sum()

        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(loss, fullgraph=True, backend=counter)
        for got, want in zip(gradients(compiled), gradients(loss)):
            self.assertTrue(torch.equal(got, want))
        self.assertEqual(counter.frame_count, 1)

    def test_graphs_hold_lines(self):
        """Inductor of PyTorch 2.11 writes the arguments of ops into comments, of which a line break is the end."""
        texts = []

        def keep(graph, _):
            nodes = [node for node in graph.graph.nodes if "tessera.variant" in str(node.target)]
            texts.extend(argument for node in nodes for argument in node.args if isinstance(argument, str))
            return make_boxed_func(graph.forward)

        leaves = [tensor.requires_grad_() for tensor in make(batch=1, rows=16, keys=16)]
        run = lambda *x: attention(*x, variant=SOFTCAP, arguments={"cap": 2.0})  # noqa: E731
        compiled = torch.compile(run, fullgraph=True, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep))
        compiled(*leaves).float().sum().backward()
        self.assertTrue(any("attention.tile" in text for text in texts))
        self.assertFalse(any("\n" in text for text in texts))

    def test_opcheck(self):
        q, k, v = make(batch=1, rows=16, keys=24)
        given = [torch.ones(2)], [], [], "slopes||"
        out, lse = torch.ops.tessera.variant_forward(q, k, v, *given, RISING.source, 0.125)
        torch.library.opcheck(torch.ops.tessera.variant_forward.default, (q, k, v, *given, RISING.source, 0.125))
        for learned in ("", "slopes"):
            arguments = torch.randn_like(out), torch.randn_like(lse), q, k, v, out, lse, *given, learned, RISING.source, 0.125
            torch.library.opcheck(torch.ops.tessera.variant_backward.default, arguments)

    def test_steep_sigmoid(self):
        """The derivative is 0 where the function is flat."""
        leaves = [tensor.requires_grad_() for tensor in make(batch=1, rows=16, keys=16)]
        attention(*leaves, score_mod=lambda s, b, h, q, k: torch.sigmoid(s * 200)).float().sum().backward()
        self.assertTrue(all(torch.isfinite(leaf.grad).all() for leaf in leaves))

    def check_vmap(self, calls, *given, make_mod):
        """Three samples at a time, forward and gradients, as one after the other; `calls` of kernels for each."""
        q, k, v = make(batch=2, rows=16, keys=16)
        tensors = torch.stack([q, -q, 2 * q]), torch.stack([k, 2 * k, -k]), torch.stack([v, v, -v])

        def loss(q, k, v, *given):
            out, lse = attention(q, k, v, **make_mod(*given), return_lse=True)
            return out.float().square().sum() + lse.sum(), (out, lse)

        run = torch.func.grad(loss, tuple(range(3 + len(given))), has_aux=True)
        each = [run(*parts) for parts in zip(*tensors, *given)]
        with unittest.mock.patch.object(_functions, "_run_forward", wraps=_functions._run_forward) as find:
            gradients, results = torch.vmap(run)(*tensors, *given)
            self.assertEqual(find.call_count, calls)
        for index, (wanted, outputs) in enumerate(each):
            for got, want in zip((*gradients, *results), (*wanted, *outputs)):
                self.assertTrue(torch.equal(got[index], want))
        gradients, results = torch.vmap(run)(*(tensor[:0] for tensor in (*tensors, *given)))
        for got, want in zip((*gradients, *results), (*each[0][0], *each[0][1])):
            self.assertEqual(got.shape, (0, *want.shape))

    def test_fallbacks(self):
        """For which tiles speculation does not hold: where scores are far above those of the first block, and for NaN."""

        def falling(s, b, h, q, k, slope):
            return s - slope * abs(q - k)

        torch.manual_seed(5)
        q, k, v = (torch.randn(1, 2, 600, 64, dtype=torch.bfloat16) for _ in range(3))
        none = tessera.Variant(score=falling, slope=float).find_fallbacks(q, k, v, 0.125, slope=0.1)
        self.assertEqual((none.dtype, none.tolist()), (torch.int32, [[[0, 0, 0], [0, 0, 0]]]))
        wide = tessera.Variant(score=lambda s, b, h, q, k: s * 60.0).find_fallbacks(q, k, v, 0.125)
        # Of 40 columns as of these and zeros.
        narrow = tessera.Variant(score=lambda s, b, h, q, k: s * 60.0)
        zeros = torch.nn.functional.pad(q[..., :40], (0, 24)), torch.nn.functional.pad(k[..., :40], (0, 24)), v
        found = narrow.find_fallbacks(q[..., :40].contiguous(), k[..., :40].contiguous(), v[..., :40].contiguous(), 0.125)
        self.assertTrue(torch.equal(found, narrow.find_fallbacks(*zeros, 0.125)) and found.any())
        with self.assertRaisesRegex(ValueError, "a head dimension of 600 is more than kernels take"):
            narrow.find_fallbacks(q.new_zeros(1, 1, 8, 600), k, v, 0.125)
        self.assertEqual(wide.sum(), 6)
        causal = tessera.Variant(score=falling, mask=masks.causal, slope=float)
        self.assertEqual(causal.find_fallbacks(q, k, v, 0.125, slope=0.1).sum(), 0)
        q[0, 1, 300, 0] = float("nan")
        self.assertEqual(causal.find_fallbacks(q, k, v, 0.125, slope=0.1).tolist(), [[[0, 0, 0, 0], [0, 1, 0, 0]]])

    def test_vmap(self):
        generator = torch.Generator().manual_seed(5)
        draw = lambda *shape: torch.rand(shape, generator=generator) + 0.5  # noqa: E731
        # What counts the batch, or is of it, goes with it; else there is a call for each.
        self.check_vmap(1, make_mod=lambda: {"score_mod": lambda s, b, h, q, k: s * 0.5, "mask_mod": lambda b, h, q, k: q >= k})
        self.check_vmap(1, draw(3, 2, 2), make_mod=lambda f: {"score_mod": lambda s, b, h, q, k: s * f[b, h]})
        self.check_vmap(1, draw(3, 16, 2), make_mod=lambda f: {"score_mod": lambda s, b, h, q, k: s + f[q, b]})
        self.check_vmap(3, draw(3, 2), make_mod=lambda f: {"score_mod": lambda s, b, h, q, k: s * f[h]})
        self.check_vmap(3, make_mod=lambda: {"mask_mod": lambda b, h, q, k: q + 4 * b >= k})
        self.check_vmap(1, draw(3, 2), make_mod=lambda f: {"score_mod": lambda s, b, h, q, k: s * f[b]})

    def test_refusals(self):
        q, k, v = make(batch=1, rows=8, keys=8)

        def refuse(error, text, **named):
            with self.assertRaisesRegex(error, text):
                attention(q, k, v, **named)

        refuse(TypeError, "argument 'variant' is of type int; it is a tessera.Variant", variant=3)
        refuse(TypeError, "the variant takes cap in `arguments`; 'cap' is missing", variant=SOFTCAP)
        refuse(TypeError, "'slope' is missing or unknown", variant=SOFTCAP, arguments={"cap": 1.0, "slope": 1.0})
        refuse(ValueError, "argument 'arguments' is given without a variant", arguments={"cap": 1.0})
        refuse(ValueError, "argument 'causal' is given with functions", variant=SOFTCAP, arguments={"cap": 1.0}, causal=True)
        refuse(ValueError, "argument 'scale' is 0", variant=SOFTCAP, arguments={"cap": 1.0}, scale=0)
        refuse(TypeError, "a view of dimensions .*, got a float", variant=RISING, arguments={"slopes": 1.0})
        refuse(TypeError, "it is a float32 view of dimensions", variant=RISING, arguments={"slopes": torch.ones(2, 2)})

    def test_tangent_of_what_is_captured(self):
        q, k, v = make(batch=1, rows=20, keys=20)
        table = torch.ones(4)
        with torch.autograd.forward_ad.dual_level():
            table = torch.autograd.forward_ad.make_dual(table, torch.ones(4))
            with self.assertRaisesRegex(NotImplementedError, "argument 'table' has a tangent"):
                attention(q, k, v, score_mod=lambda s, b, h, q, k: s + table[k % 4])

if __name__ == "__main__":
    unittest.main()
