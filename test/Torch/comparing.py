# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s %source
"""Kernels and variants beside functions of numpy that say what they should compute."""

import pathlib
import re
import sys
import unittest
import unittest.mock

import numpy as np
import torch

import tessera
import tessera.torch

ROOT = pathlib.Path(sys.argv.pop())
SCALED = re.search(r"```tile\n(.*?)^```", (ROOT / "docs/first-kernel.md").read_text(), re.MULTILINE | re.DOTALL)[1]
SHAPE = {"M": 20, "N": 24, "K": 40}


def scaled(a, b, s):
    return s[:, None] * (a @ b.T)


def attention(q, k, v, scale, cap):
    scores = cap * np.tanh(np.einsum("bhqd,bhkd->bhqk", q, k) * scale / cap)
    queries, keys = scores.shape[-2:]
    scores = np.where(np.arange(keys) <= np.arange(queries)[:, None] + keys - queries, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - largest)
    total = weights.sum(-1, keepdims=True)
    return np.einsum("bhqk,bhkd->bhqd", weights / total, v), (largest + np.log(total))[..., 0]


class ComparingTest(unittest.TestCase):
    def test_right(self):
        for type_ in ("bf16", "f16"):
            program = tessera.Program(SCALED, T=type_)
            (one,) = program.compare(scaled, SHAPE)
            self.assertTrue(one.holds and 0 < one.error < one.tolerance * one.largest / 4, one)
        both = program.compare(lambda **inputs: {"c": scaled(**inputs)}, [SHAPE, {**SHAPE, "M": 65}], seed=3)
        self.assertEqual([comparison.shape["M"] for comparison in both], [20, 65])
        self.assertNotEqual(both[0].largest, one.largest)

    def test_wrong(self):
        """Columns that are scaled in place of rows, which the interpreter alone cannot tell."""
        wrong = tessera.Program(SCALED.replace("%st axis 1", "%st axis 0").replace("%s[%row]", "%s[%col]"))
        with self.assertRaisesRegex(tessera.MismatchError, r"c \(M=24, N=24, K=40\): max error .* is allowed: FAILED"):
            wrong.compare(scaled, {**SHAPE, "M": 24})
        with self.assertRaises(AssertionError):
            tessera.Program(SCALED).compare(lambda a, b, s: scaled(a, b, s) * np.inf, SHAPE)

    def test_compiled(self):
        """A compiled kernel, in place of whose launch the interpreter runs on the tensors that the launch would get."""
        kernel, program = tessera.compile(SCALED, image="ptx"), tessera.Program(SCALED)

        def launch(kernel, **arguments):
            self.assertEqual({name: str(tensor.dtype) for name, tensor in arguments.items()},
                             {"a": "torch.bfloat16", "b": "torch.bfloat16", "s": "torch.float32", "c": "torch.bfloat16"})  # fmt: skip
            program(**arguments)

        with unittest.mock.patch.object(tessera.Kernel, "__call__", launch):
            (one,) = kernel.compare(scaled, SHAPE, device="cpu")
            (other,) = program.compare(scaled, SHAPE)
            self.assertEqual(one, other)
            with self.assertRaisesRegex(tessera.MismatchError, "c .*FAILED"):
                kernel.compare(lambda a, b, s: a @ b.T, SHAPE, device="cpu")

    def test_little_everywhere(self):
        """The softmax of the lessons, and the same without its mask: each element is 1.4% off, about what 16 bits lose at most."""
        source = re.findall(r"```tile\n(.*?)^```", (ROOT / "docs/lessons.md").read_text(), re.MULTILINE | re.DOTALL)[1]
        softmax = lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)
        (right,) = tessera.Program(source).compare(softmax, {"M": 5})
        self.assertLess(right.norm_error, right.tolerance / 8)
        unmasked = source.replace("arith.select %inside, %wide, %least : !Mask, !Tile", "arith.maxnumf %wide, %wide : !Tile")
        self.assertNotEqual(source, unmasked)
        with self.assertRaisesRegex(tessera.MismatchError, "in the norm, .* is allowed: FAILED"):
            tessera.Program(unmasked).compare(softmax, {"M": 5})

    def test_given(self):
        ones = np.ones((20, 40))
        (one,) = tessera.Program(SCALED).compare(scaled, SHAPE, a=ones, b=np.ones((24, 40)), s=np.ones(20))
        self.assertEqual((one.error, one.largest), (0, 40))

    def test_refusals(self):
        program = tessera.Program(SCALED)
        with self.assertRaisesRegex(ValueError, "a shape lacks the extent of 'K', a dimension of 'a'"):
            program.compare(scaled, {"M": 8, "N": 8})
        with self.assertRaisesRegex(ValueError, r"gives 'c' of shape \(24, 20\); the kernel's has \(20, 24\)"):
            program.compare(lambda **inputs: scaled(**inputs).T, SHAPE)
        with self.assertRaisesRegex(ValueError, "the function gives 'd', and the kernel writes c"):
            program.compare(lambda **inputs: {"d": scaled(**inputs)}, SHAPE)
        with self.assertRaisesRegex(ValueError, "the function gives 2 results, and the kernel writes c"):
            program.compare(lambda **inputs: (1, 2), SHAPE)

    def test_variant(self):
        variant = tessera.Variant(
            score=lambda s, b, h, q, k, cap: cap * tessera.tanh(s / cap), mask=tessera.masks.causal, cap=float
        )
        shape = {"B": 1, "H": 2, "HK": 2, "SQ": 33, "SK": 40}
        results = variant.compare(attention, shape, parameters={"D": 64}, scale=0.125, cap=3.0)
        self.assertEqual([result.name for result in results], ["o", "lse"])
        with self.assertRaises(tessera.MismatchError):
            variant.compare(lambda cap, **inputs: attention(cap=2 * cap, **inputs), shape, parameters={"D": 64}, scale=0.125, cap=3.0)
        with self.assertRaisesRegex(TypeError, "the kernel takes the scalar 'cap'; give it by name"):
            variant.compare(attention, shape, parameters={"D": 64}, scale=0.125)

    def test_views_without_strides(self):
        """The interpreter reads memory, which some tensors of torch stand for otherwise."""
        program, (a, b, c) = tessera.Program(SCALED), (torch.ones(8, 8, dtype=torch.bfloat16) for _ in range(3))
        negated = torch.ones(8, dtype=torch.complex64).conj().imag
        with self.assertRaisesRegex(TypeError, "argument 'a' is sparse; it is a strided tensor"):
            program(a.to_sparse(), b, torch.ones(8), c)
        with self.assertRaisesRegex(ValueError, r"argument 's' is a view that reads its memory negated; pass its resolve_neg\(\)"):
            program(a, b, negated, c)

    def test_block_mask_without_a_driver(self):
        before = tessera.torch.use_interpreter()
        try:
            documents = torch.zeros(256, dtype=torch.int64)
            mask = tessera.torch.create_block_mask(lambda b, h, q, k: documents[q] == documents[k], None, None, 256, 256)
            if not torch.cuda.is_available():
                self.assertEqual(mask.device.type, "cpu")
        finally:
            tessera.torch.use_interpreter(before)


if __name__ == "__main__":
    unittest.main()
