# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""What functions of scores and masks are known by: whatever changes of what they read, the next call computes with it. With
TESSERA_THOROUGH=1 of more functions under torch.compile."""

import os
import random
import sys
import unittest

import numpy
import problems
import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Python"))

import changing

import tessera
from tessera.torch import BlockMask, attention, create_block_mask

TORCH = changing.Framework(
    torch, ("sin", "cos", "tanh", "relu"), (torch.float32, torch.int32, torch.bool), "(x * 3).to($) * 0.5"
)
TESSERA = changing.Framework(tessera, ("sin", "cos", "tanh", "floor"))


class Functions(problems.Interpreted):
    def setUp(self):
        super().setUp()
        self.q, self.k, self.v = problems.make(batch=1, heads=1, rows=6, keys=9, dtype=torch.float16)

    def check(self, score, run):
        out, lse = run(self.q, self.k, self.v)
        want, want_lse = problems.exact_mods(self.q, self.k, self.v, lambda *values: score(*values).double())
        problems.assert_close(self, out, want)
        self.assertLess((lse - want_lse).abs().max().item(), 1e-3)

    def follow(self, seed, run_of, kinds=None, changes=4):
        """A function that is drawn, and what it is after each of some changes."""
        function = changing.Changing(random.Random(seed), TORCH, kinds)
        run, kind = run_of(function.module), "nothing"
        for _ in range(changes):
            with self.subTest(seed=seed, kinds=function.kinds, changed=kind):
                self.check(function.module.score, run)
            kind = function.change()

    def run_eagerly(self, module):
        return lambda *tensors: attention(*tensors, score_mod=module.score, return_lse=True)

    def run_compiled(self, module):
        # A function of a module that Dynamo guards.
        exec("def run(*tensors): return attention(*tensors, score_mod=score, return_lse=True)", vars(module))
        module.attention = attention
        return torch.compile(module.run, fullgraph=True, backend="eager")

    def test_each_kind(self):
        for seed, kind in enumerate(changing.READS):
            self.follow(seed, self.run_eagerly, [kind], 5)

    def test_eagerly(self):
        for seed in range(100):
            self.follow(seed, self.run_eagerly)

    def test_compiled(self):
        # Dynamo does not know attributes of partial functions, nor zeros of either sign from each other.
        kinds = [kind for kind in changing.READS if kind not in ("attribute of partial", "sign")]
        for seed, kind in enumerate(kinds):
            self.follow(seed, self.run_compiled, [kind], 5 if kind == "asked number" else 3)
        for seed in range(100 if os.environ.get("TESSERA_THOROUGH") == "1" else 0):
            self.follow(seed, self.run_compiled, random.Random(seed).sample(kinds, 3))

    def test_gradients(self):
        for seed in range(10):
            function = changing.Changing(random.Random(seed), TORCH)
            score = function.module.score
            for _ in range(3):
                leaves = [tensor.clone().requires_grad_() for tensor in (self.q, self.k, self.v)]
                doubles = [leaf.detach().double().requires_grad_() for leaf in leaves]
                out = attention(*leaves, score_mod=score)
                found = torch.autograd.grad(out.float().square().sum(), leaves)
                exact = problems.exact_mods(*doubles, lambda *values: score(*values).double())[0]
                want = torch.autograd.grad(exact, doubles, 2 * out.detach().double(), allow_unused=True)
                for got, expected in zip(found, want):
                    expected = torch.zeros_like(got, dtype=torch.float64) if expected is None else expected
                    self.assertLess((got.double() - expected).norm().item(), 4e-3 * (1 + expected.norm().item()))
                function.change()

    def test_variant(self):
        """A Variant is what its functions say when it is made."""
        q, k, v = (tensor.numpy() for tensor in (self.q, self.k, self.v))
        for seed in range(30):
            function = changing.Changing(random.Random(seed), TESSERA)
            for _ in range(3):
                variant = tessera.Variant(score=function.module.score)
                out, lse = numpy.zeros_like(q), numpy.zeros(q.shape[:3], numpy.float32)
                variant.program(T="f16", D=64, DV=64)(q, k, v, out, lse, scale=0.125)
                with self.subTest(seed=seed, kinds=function.kinds):
                    self.assertLess(abs(variant.reference(q, k, v, 0.125)[1] - lse).max(), 1e-3)
                source, _ = variant.source, function.change()
                if tessera.Variant(score=function.module.score).source != source:
                    with self.assertRaisesRegex(tessera.TraceError, "something else than when the variant was made"):
                        variant.reference(q, k, v, 0.125)


class Masks(unittest.TestCase):
    def test_block_mask(self):
        """The lists of one are of the mask that it was made of."""
        problems.use_interpreter(self)
        tensors = problems.make(batch=1, heads=1, kv_heads=1, rows=6, keys=9, dtype=torch.float16)
        module = changing.make_module("library")
        module.library = torch
        exec("def mask(b, h, q, k): return library.drawn_by_a_test(q * 3 % 5, k)", vars(module))
        torch.drawn_by_a_test = torch.le
        block_mask = create_block_mask(module.mask, None, None, 6, 9, device="cpu")
        # Lists of blocks that are given are of no function.
        blocks = torch.zeros(1, 1, 1, 1, dtype=torch.int32)
        listed = BlockMask.from_kv_blocks(None, blocks, mask_mod=module.mask, seq_lengths=(6, 9))
        attention(*tensors, block_mask=block_mask)
        for torch.drawn_by_a_test in (torch.le, torch.lt, torch.ge):
            want = attention(*tensors, mask_mod=module.mask)
            self.assertTrue(torch.equal(attention(*tensors, block_mask=listed), want))
        with self.assertRaisesRegex(ValueError, "is another one than when its lists were made"):
            attention(*tensors, block_mask=block_mask)


if __name__ == "__main__":
    unittest.main()
