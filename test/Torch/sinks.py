# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Sinks of heads, by the interpreter on the CPU: a key more that every row sees, with the value 0, beside float64."""

import itertools
import unittest

import problems
import torch
from problems import band, make
from torch.nn.attention import flex_attention as flex

import tessera
from tessera.torch import BlockMask, attention, flex_attention

LENGTHS = torch.tensor([30, 70])


def exact(q, k, v, sinks, visible=None, score=None):
    """(output, LSE) in float64, differentiable."""
    q, k, v = (tensor.double() for tensor in (q, k, v))
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = q @ k.mT * q.shape[3] ** -0.5
    if score is not None:
        scores = score(scores)
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    lse = torch.logaddexp(torch.logsumexp(scores, -1), sinks.double()[:, None])
    return torch.exp(scores - lse[..., None]) @ v, lse


class Cases(problems.Interpreted):
    def draw(self, **named):
        return make(**{"heads": 4, "kv_heads": 2, "rows": 70, "keys": 90, "dtype": torch.float16, **named})

    def draw_sinks(self, dtype=torch.float32):
        return torch.tensor([0.5, -2.0, 3.0, 0.0], dtype=dtype)

    def check(self, named, visible, score=None, dtype=torch.float32, **sizes):
        """Output, LSE and gradients."""
        tensors = *self.draw(**sizes), self.draw_sinks(dtype)
        leaves = [tensor.requires_grad_() for tensor in tensors]
        doubles = [tensor.detach().double().requires_grad_() for tensor in tensors]
        found = attention(*leaves[:3], sinks=leaves[3], return_lse=True, **named)
        want = exact(*doubles, visible, score)
        problems.assert_close(self, found[0], want[0].detach())
        self.assertLess((found[1] - want[1]).abs().max().item(), 1e-4)
        generator = torch.Generator().manual_seed(2)
        factors = [torch.randn(x.shape, generator=generator).to(x.dtype) for x in found]
        gradients = torch.autograd.grad(found, leaves, factors)
        for got, expected in zip(gradients, torch.autograd.grad(want, doubles, [x.double() for x in factors])):
            # That of sinks is a sum in which much cancels.
            self.assertLessEqual((got.double() - expected).norm(), 8 * torch.finfo(got.dtype).eps * expected.norm() + 0.02 * (got.dim() == 1))


class Results(Cases):
    def test_masks(self):
        """Beside masks that have names, lengths of each sequence, rows that see nothing else, and blocks."""
        of_lengths = (torch.arange(90) < LENGTHS[:, None])[:, None, None, :]
        blocks = BlockMask.from_kv_blocks(torch.tensor([[[1, 0]]]), torch.tensor([[[[1], [0]]]]), BLOCK_SIZE=64, seq_lengths=(70, 90))
        cases = {
            "none": ({}, None),
            "causal": ({"causal": True}, band(70, 90, right=0)),
            "window": ({"window": (20, 3)}, band(70, 90, 20, 3)),
            "lengths": ({"mask_mod": lambda b, h, q, k: k < LENGTHS[b]}, of_lengths),
            "some see nothing": (
                {"mask_mod": lambda b, h, q, k: (k < LENGTHS[b]) & (q > 40)}, of_lengths & (torch.arange(70) > 40)[:, None],
            ),
            "blocks": ({"block_mask": blocks}, (torch.arange(70) < 64)[:, None] & (torch.arange(90) >= 64)),
        }  # fmt: skip
        for (name, case), d in itertools.product(cases.items(), (64, 256)):
            with self.subTest(name, d=d):
                self.check(*case, d=d)

    def test_types(self):
        for dtype in (torch.float16, torch.bfloat16):
            self.check({"causal": True}, band(70, 90, right=0), dtype=dtype)

    def test_scores(self):
        """Beside a soft cap, slopes, a bias and a function."""
        slopes, bias = torch.tensor([0.5, 0.25, 0.125, 1.0]), torch.randn(70, 96, generator=torch.Generator().manual_seed(1))
        distance = (torch.arange(70)[:, None] + 20 - torch.arange(90)).abs()
        fall = slopes.double().view(-1, 1, 1) * distance
        for named, score in (
            ({"softcap": 1.5}, lambda s: 1.5 * torch.tanh(s / 1.5)),
            ({"alibi": slopes}, lambda s: s - fall),
            ({"alibi": slopes, "softcap": 1.5, "window": (30, 0)}, lambda s: 1.5 * torch.tanh(s / 1.5) - fall),
            ({"bias": bias[:, :90]}, lambda s: s + bias[:, :90].double()),
            ({"score_mod": lambda s, b, h, q, k: s * slopes[h]}, lambda s: s * slopes.double().view(-1, 1, 1)),
        ):
            with self.subTest(list(named)):
                self.check(named, band(70, 90, 30, 0) if "window" in named else None, score)

    def test_other_numbers(self):
        """A sink of -inf is none, and one above all scores leaves nothing."""
        q, k, v = self.draw()
        sinks = torch.tensor([-torch.inf, 1e4, -1e4, 0.0])
        out, lse = attention(q, k, v, causal=True, sinks=sinks, return_lse=True)
        plain, plain_lse = attention(q, k, v, causal=True, return_lse=True)
        for head in (0, 2):
            self.assertLess((out[:, head] - plain[:, head]).abs().max().item(), 2e-3)
            self.assertLess((lse[:, head] - plain_lse[:, head]).abs().max().item(), 1e-4)
        self.assertEqual(out[:, 1].abs().max().item(), 0)
        self.assertTrue((lse[:, 1] == 1e4).all())

    def test_no_keys(self):
        q, k, v = self.draw()
        sinks = self.draw_sinks().requires_grad_()
        out, lse = attention(q, k[:, :, :0], v[:, :, :0], sinks=sinks, return_lse=True)
        self.assertTrue((out == 0).all() and torch.equal(lse, sinks[:, None].expand(2, 4, 70)))
        self.assertTrue(torch.equal(torch.autograd.grad(lse.sum(), sinks)[0], torch.full((4,), 140.0)))

    def test_fallback(self):
        q, k, v = self.draw()
        for named in ({"causal": True}, {"window": (9, 4), "softcap": 2.0}, {"bias": torch.ones(90), "softcap": 2.0}):
            sinks = self.draw_sinks().requires_grad_()
            found = attention(q.float(), k.float(), v.float(), sinks=sinks, fallback="torch", **named)
            if "bias" in named:
                want, _ = exact(q, k, v, sinks, None, lambda s: 2 * torch.tanh(s / 2) + 1)
                problems.assert_close(self, found.half(), want)
                continue
            want = attention(q, k, v, sinks=sinks, **named)
            problems.assert_close(self, want, found.double())
            gradients = [torch.autograd.grad(x.float().square().sum(), sinks)[0] for x in (found, want)]
            self.assertLess((gradients[0] - gradients[1]).norm(), 0.01 * gradients[0].norm())


class Fronts(Cases):
    def test_flex(self):
        q, k, v = self.draw()
        sinks = self.draw_sinks()
        block_mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 70, 90, device="cpu")
        named = {"block_mask": block_mask, "enable_gqa": True, "sinks": sinks}
        out, aux = flex_attention(q, k, v, **named, return_aux=flex.AuxRequest(lse=True))
        want, lse = exact(q, k, v, sinks, torch.ones(70, 90).tril() > 0)
        problems.assert_close(self, out, want)
        self.assertLess((aux.lse - lse).abs().max().item(), 1e-4)

    def test_compiled(self):
        """One graph for other sinks, with gradients."""
        compiled = torch.compile(lambda q, k, v, sinks: attention(q, k, v, causal=True, sinks=sinks), fullgraph=True, backend="aot_eager")
        for factor in (1, 2):
            leaves = [tensor.requires_grad_() for tensor in (*self.draw(), factor * self.draw_sinks())]
            outs = compiled(*leaves), attention(*leaves[:3], causal=True, sinks=leaves[3])
            self.assertTrue(torch.equal(*outs))
            for got, want in zip(*(torch.autograd.grad(out.float().square().sum(), leaves) for out in outs)):
                self.assertLessEqual((got - want).norm(), 1e-3 * want.norm())

    def test_layout_and_map(self):
        q, k, v = self.draw()
        sinks = self.draw_sinks()
        want = attention(q, k, v, sinks=sinks)
        swapped = attention(*(tensor.transpose(1, 2) for tensor in (q, k, v)), sinks=sinks, layout="BSHD")
        self.assertTrue(torch.equal(swapped.transpose(1, 2), want))
        for stacked, dim in ((sinks, None), (torch.stack([sinks, 2 * sinks]), 0)):
            mapped = torch.vmap(lambda q, k, v, sinks: attention(q[None], k[None], v[None], sinks=sinks)[0], (0, 0, 0, dim))
            out = mapped(q, k, v, stacked)
            for index in range(2):
                own = sinks if dim is None else stacked[index]
                one = attention(q[index : index + 1], k[index : index + 1], v[index : index + 1], sinks=own)
                self.assertTrue(torch.equal(out[index : index + 1], one))


class Refusals(Cases):
    def test_arguments(self):
        q, k, v = self.draw()
        sinks = self.draw_sinks()
        variant = tessera.Variant(score=lambda s, b, h, q, k: s)
        for error, text, given, named in (
            (ValueError, r"'sinks' is torch.float64 of shape \(4,\); attention takes one number for each of the 4 heads", sinks.double(), {}),
            (ValueError, r"'sinks' is torch.float32 of shape \(2,\)", sinks[:2], {}),
            (ValueError, r"'sinks' is torch.float32 of shape \(2, 4\)", sinks.expand(2, 4), {"causal": True}),
            (ValueError, r"'sinks' is torch.float32 of shape \(2,\)", sinks[:2], {"fallback": "torch", "bias": torch.ones(90), "softcap": 2.0}),
            (ValueError, "'sinks' is on meta and 'q' on cpu", sinks.to("meta"), {}),
            (ValueError, "'sinks' has stride 2; it must be 1: pass sinks.contiguous", torch.zeros(8)[::2], {}),
            (TypeError, "'sinks' is of type float; it is a tensor of torch", 3.0, {}),
            (ValueError, "'sinks' is given with functions of scores and masks", sinks, {"variant": variant, "arguments": {}}),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(error, text):
                attention(q, k, v, sinks=given, **named)

    def test_order(self):
        """Their gradient is a sum over rows in any order."""
        q, k, v = self.draw()
        sinks = self.draw_sinks().requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "the gradient of 'sinks_.*' is a sum over blocks in any order"):
            attention(q, k, v, causal=True, sinks=sinks, deterministic=True)
        leaf = q.requires_grad_()
        found = [
            torch.autograd.grad(attention(leaf, k, v, causal=True, sinks=sinks.detach(), deterministic=True).sum(), leaf)[0]
            for _ in range(2)
        ]
        self.assertTrue(torch.equal(*found))


if __name__ == "__main__":
    unittest.main()
