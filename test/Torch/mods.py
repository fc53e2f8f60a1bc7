# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Functions of scores and masks with what they capture, and flex_attention, by the interpreter on the CPU."""

import functools
import math
import unittest
import unittest.mock
from collections.abc import Iterable
from typing import NamedTuple

import numpy
import problems
import torch
from problems import make
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.attention import flex_attention as flex

import tessera.torch
from tessera import masks
from tessera._attention import _gradient_kernels
from tessera._functions import _captured, _tracing
from tessera.torch import attention, flex_attention

CAP, TABLE = 2.5, torch.tensor([0.5, -0.25])


def cap(x):
    return CAP * torch.tanh(x / CAP)


def capped(score, b, h, q, k):
    return cap(score) + TABLE[h]


def flex_of_module(q, k, v):
    return flex.flex_attention(q, k, v, score_mod=capped, enable_gqa=True)


def halve(x, times):
    return shrink(x, times - 1) + 0 * halve(x, 0) if times else x


def shrink(x, times):
    return halve(x / 2, times) + 0 * shrink(x, 0) if times else x / 2


def tuned(s, b, h, q, k):
    return s * tuned.factor


class Named(NamedTuple):
    factor: float
    table: torch.Tensor


NAMED = Named(0.25, TABLE)


class Captured(problems.Mods):
    def test_element_types(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8):
            with self.subTest(dtype):
                of_heads, one = torch.tensor([3, -2]).to(dtype), torch.tensor(5).to(dtype)
                tile = torch.arange(-200, 332).view(19, 28).remainder(7).to(dtype)
                self.check(lambda s, b, h, q, k: s * of_heads[h] + tile[q, k] * one / 4)
                self.check(mask_mod=lambda b, h, q, k: (k < q + of_heads[h]) | (tile[q, k] == one))
        for dtype in (torch.float32, torch.int64, torch.int32, torch.int8, torch.bool):
            with self.subTest(dtype):
                rows = torch.arange(2 * 28).view(2, 28).remainder(3).to(dtype)
                self.check(mask_mod=lambda b, h, q, k: rows[b, q] == rows[b][k])
        seen, flag = torch.arange(28) % 3 != 1, torch.tensor(True)
        self.check(mask_mod=lambda b, h, q, k: (seen[k] & flag) | ~flag)

    def test_wide_integers(self):
        """Equality of all 64 bits."""
        names = torch.arange(28) % 2 * 2**40 + 7
        self.check(mask_mod=lambda b, h, q, k: (names[q] == names[k]) | (names[k] == 2**40 + 7))
        drafts = torch.tensor([(1 << 60) - 1, 1 << 53, -(1 << 63), (1 << 53) + 1] * 7)
        self.check(mask_mod=lambda b, h, q, k: (drafts[q] >> (k * 3) & 1) == 1)

    def test_places(self):
        """Closures, globals, defaults, functions in functions, lists and partial functions."""
        width, slopes = 4, [torch.tensor([0.5, 0.25]), torch.tensor([1.0, 2.0])]

        def add(x, amount, *, factor=2):
            return x + amount * factor

        def score(s, b, h, q, k, distance=3, *, offset=TABLE):
            return add(cap(s), slopes[1][h], factor=width) - slopes[0][h] * (q - k + distance) * offset[h]

        self.check(capped)
        self.check(score)
        self.check(functools.partial(lambda factor, s, b, h, q, k, more: s * factor + more[h], 0.5, more=TABLE))
        self.check(mask_mod=flex.and_masks(lambda b, h, q, k: q >= k - width, flex.or_masks(lambda b, h, q, k: k % 3 > 0)))

    def test_other_places(self):
        """Functions that call each other, attributes of functions and modules, namedtuples, imports."""
        named, shape = Named(0.5, TABLE), TABLE.shape

        def imports(s, b, h, q, k):
            import math

            from problems import D as width
            from torch import tanh

            return tanh(s) * math.pi + k / width

        self.check(lambda s, b, h, q, k: halve(s, 3))
        self.check(functools.partial(lambda times, s, b, h, q, k: shrink(halve(s, times), 1), 2))
        self.check(functools.partial(lambda f, times, s, b, h, q, k: f(halve(s, times), 1), shrink, 2))
        self.check(lambda s, b, h, q, k: s * named.factor + named.table[h])
        self.check(lambda s, b, h, q, k: s * shape[0] + len(shape))
        self.check(imports)
        self.check(mask_mod=lambda b, h, q, k: q < problems.D - 50)
        with unittest.mock.patch.object(problems, "D", torch.tensor(13)):
            self.check(mask_mod=lambda b, h, q, k: (q < problems.D) & hasattr(problems, "D"))
        self.check(lambda s, b, h, q, k: (lambda xp, x: getattr(xp, "tanh")(x) + hasattr(xp, "none"))(torch, s))
        for tuned.factor in (0.5, 2.0):
            self.check(tuned)

    def test_masks_of_tessera(self):
        def window(b, h, q, k):
            return (k <= q + 9) & (k >= q + 5)

        want = attention(self.q, self.k, self.v, mask_mod=window)
        for mask in (masks.causal & masks.window(4), flex.and_masks(masks.causal, lambda b, h, q, k: k >= q + 5)):
            self.assertTrue(torch.equal(attention(self.q, self.k, self.v, mask_mod=mask), want))
        self.assertTrue(torch.equal(attention(self.q, self.k, self.v, mask_mod=masks.window(2**31 - 1, 2**40)),
                                    attention(self.q, self.k, self.v)))  # fmt: skip

    def test_arguments(self):
        self.check(lambda s, b, h, q, k, c, slopes: c * (s / c).tanh() - slopes[h], score_args=(1.5, TABLE))
        self.check(mask_mod=lambda b, h, q, k, n, m: (k < n) & (k >= m), mask_args=(9, torch.tensor(2)))
        scalars = numpy.float32(0.5), numpy.int64(3), numpy.bool_(True)
        self.check(lambda s, b, h, q, k: (s * scalars[0] + k) if scalars[2] else s, lambda b, h, q, k: k <= q + scalars[1])

    def test_behind_lengths(self):
        """What a length hides may be NaN, wherever the length ends: given for each batch, as a number, beside a window, compiled."""
        q, k, v = problems.make(batch=4, rows=40, keys=300, dtype=torch.float16)
        lengths = torch.tensor([130, 300, 1, 0], dtype=torch.int32)
        hidden = (torch.arange(300) >= lengths[:, None])[:, None, :, None]
        functions = (
            lambda b, h, i, j: j < lengths[b],
            lambda b, h, i, j: (j < lengths[b]) & (j > i - 20),
            lambda b, h, i, j: (j < lengths[b]) & (h * 7 + i >= j - 90),
        )
        for function in functions:
            want, want_lse = attention(q, k, v.masked_fill(hidden, 0), mask_mod=function, return_lse=True)
            problems.assert_close(self, want, problems.exact_mods(q, k, v, None, function)[0])
            given = q, k.masked_fill(hidden, torch.nan), v.masked_fill(hidden, torch.nan)
            compiled = torch.compile(lambda *x: attention(*x, mask_mod=function, return_lse=True), backend="eager")  # noqa: B023
            for run in (lambda *x: attention(*x, mask_mod=function, return_lse=True), compiled):  # noqa: B023
                out, lse = run(*given)
                self.assertTrue(torch.equal(out, want))
                self.assertTrue(torch.equal(lse, want_lse))
        for length in (0, 77, 128, 300):
            behind = v.index_fill(2, torch.arange(length, 300), torch.nan)
            out = attention(q, k, behind, mask_mod=lambda b, h, i, j: j < length)  # noqa: B023
            want = attention(q, k[:, :, :length], v[:, :, :length])
            problems.assert_close(self, out, want.double())

    def test_other_values(self):
        """Other tensors and numbers need no new source; numbers that Python asks for do."""

        def run(width, table):
            self.check(lambda s, b, h, q, k: s * width + table[h], lambda b, h, q, k: k <= q + width)

        def misses():
            return _captured.answer.cache_info().misses

        run(3, TABLE)
        before = misses()
        for width in (0, -3, 7):
            run(width, torch.randn(2))
        self.assertEqual(misses(), before)
        run(3.5, TABLE)  # An argument of another type.
        self.assertEqual(misses(), before + 1)

        def run_constant(width, flag):
            self.check(
                mask_mod=lambda b, h, q, k: q // width >= k // width if flag else sum(k == q + i for i in range(width)) > 0
            )

        for width in (3, 5):
            for flag in (True, False):
                run_constant(width, flag)

    def test_arithmetic(self):
        """As Python and torch have it, also of negative integers."""
        numbers, reals = torch.tensor([-7, 5]), torch.tensor([-1.75, 0.5])
        for function in (
            lambda s, b, h, q, k: s + numbers[h] // 4 + numbers[h] % 4 + (q - k) // 3 + (q - k) % 3,
            lambda s, b, h, q, k: s + torch.remainder(k - q, -5) + torch.div(k - q, 4, rounding_mode="floor"),
            lambda s, b, h, q, k: s + ((q - k) >> 1) + ((q & 6) << 2) - (q | k) + (q ^ k) + ~q,
            lambda s, b, h, q, k: s + ((1 << (k + 20)) >> (k + 18)) + ((q - 40) >> (k * 3)) + (k << (q - 2)) % 7,
            lambda s, b, h, q, k: s**3 + reals[h] ** 2 + 2.0**s + s.abs() ** 0.5,
            lambda s, b, h, q, k: reals[h].int() + reals[-1] * s + numbers[-2].float() / 8,
            lambda s, b, h, q, k: torch.where(torch.logical_xor(q > k, h == 1), s.exp(), -s.clamp(max=0.25)),
            lambda s, b, h, q, k: torch.sqrt(s * s + 1) + torch.log1p(s.square()) + torch.log1p(s.square() * 1e-4),
            lambda s, b, h, q, k: torch.relu(s) + torch.nn.functional.logsigmoid(s) + s.sin() + torch.cos(s),
            lambda s, b, h, q, k: s.masked_fill(q == k, 0.5).minimum(k.to(s.dtype)) + torch.full_like(s, 2),
            lambda s, b, h, q, k: s * (torch.tensor(3) - numbers.shape[0]) + numbers.size(0) * (True & (q > k)),
            lambda s, b, h, q, k: s + torch.ceil(s) * (1 - q.new_zeros((), dtype=torch.float32)),
        ):
            self.check(function)

    def test_powers_of_integers(self):
        """Exact in 64 bits, as in torch."""
        wide = torch.tensor([40, 63])
        self.check(mask_mod=lambda b, h, q, k: 2 ** (q + 20) + k > 2 ** (q + 20) + 3)
        self.check(mask_mod=lambda b, h, q, k: (2 ** wide[h] < k) | (4 ** (q - k) == 0) | (2 ** (h + 64) != 0))
        self.check(lambda s, b, h, q, k: s * 2.0 ** (-h) + 8**h + (k > 3) ** 2 + q**2.0)

    def test_conditions_as_numbers(self):
        """Sums and products of conditions are conditions, as in torch."""
        self.check(mask_mod=lambda b, h, q, k: (q >= k) + (k < 3))
        self.check(mask_mod=lambda b, h, q, k: (q >= k) * (k > 3) + True * (q == 2))
        self.check(mask_mod=lambda b, h, q, k: torch.maximum(q >= k, k < 3) & ~torch.minimum(q >= k, k < 3))
        self.check(lambda s, b, h, q, k: s + ((q >= k) + (k < 30)) + 2 * (q > k) + (q > k) / 4)

    def test_arithmetic_of_numbers(self):
        """Numbers are those of Python, which wrap nowhere."""
        width, third = 100000, 1 / 3
        self.check(mask_mod=lambda b, h, q, k: k * width < q + width * width // width)
        self.check(mask_mod=lambda b, h, q, k: k - q < (width << 20) % 7 + (-width // 3 & 3) + (third * 9 > 2.5))
        self.check(lambda s, b, h, q, k: s * (width * width / 1e10) + (third * 3 - 1) * 1e9 + torch.where((third < 0.3) & (q >= 0), q, k))
        self.check(lambda s, b, h, q, k: s + torch.tensor(7) * width * (1 - third) / width)
        before = _captured.answer.cache_info().misses
        for width in (3, 5):
            mask = lambda b, h, q, k: k - q < 2 * width - 1  # noqa: E731
            self.check(mask_mod=mask)
        self.assertEqual(_captured.answer.cache_info().misses, before + 1)

    def test_numbers_that_python_asks_for(self):
        """A branch on a captured number is that of its value."""

        def score(s, b, h, q, k):
            factor = {1: 2.0, 2: 0.5}.get(number, 1.0)
            branch = isinstance(number, int) and number in {1, 3} and number + 1 in (2, 5)
            return s * factor + branch * 4 + len(f"{number}") + (3 if str(number * 2) == "4" else 0) + (number < 2 or number > 7)

        def compare(s, b, h, q, k):
            factor = max(number, 1.5) if number in (1, 2) and not number > 4 else divmod(number, 2)[1]
            return s * factor + sorted([number, 2, 7])[1] + (number.is_integer() if isinstance(number, float) else 3)

        def iterate(s, b, h, q, k):
            return s * 2 if isinstance(number, Iterable) else s + min(number, 2)

        for number in (1, 2, 3, 10, 2.0, 1.5):
            for function in (score, compare, iterate):
                self.check(function)

    def test_many_numbers_that_python_asks_for(self):
        """A function does not run anew for each of them."""
        widths, run = list(range(2, 62)), _tracing._run

        def mask(b, h, q, k):
            return sum(q // width == k // width for width in widths) > 40

        with unittest.mock.patch.object(_tracing, "_run", side_effect=run) as runs:
            self.check(mask_mod=mask)
            self.assertLess(runs.call_count, 6)
            runs.reset_mock()
            self.check(mask_mod=mask)
            self.assertEqual(runs.call_count, 0)

    def test_not_a_number(self):
        """Of torch.minimum and the like a NaN comes out."""
        row = torch.tensor([math.nan, 0.5] * 14)
        for function in (torch.minimum, torch.maximum):
            self.check(mask_mod=lambda b, h, q, k: function(row[k], q * 1.0) == function(row[k], q * 1.0))
        self.check(mask_mod=lambda b, h, q, k: torch.relu(row[k]) == row[k].clamp(min=0))

    def test_wide_conversions(self):
        large = torch.tensor([3e9, -5e9])
        self.check(mask_mod=lambda b, h, q, k: large[h].long() + k - q > 3 * 10**9)

    def test_gradients(self):
        slopes, width = torch.tensor([0.5, 0.125]), torch.tensor(11)

        def score(s, b, h, q, k):
            return torch.tanh(s) * CAP - slopes[h] * (q - k).abs()

        def mask(b, h, q, k):
            return (q - k).abs() < width

        leaves = [tensor.requires_grad_() for tensor in (self.q, self.k, self.v)]
        doubles = [leaf.detach().double().requires_grad_() for leaf in leaves]
        found = torch.autograd.grad(attention(*leaves, score_mod=score, mask_mod=mask).float().square().sum(), leaves)
        out = attention(*leaves, score_mod=score, mask_mod=mask).detach().double()
        want = torch.autograd.grad(problems.exact_mods(*doubles, score, mask)[0], doubles, 2 * out)
        for got, expected in zip(found, want):
            self.assertLess((got.double() - expected).norm() / expected.norm(), 2 * torch.finfo(got.dtype).eps)

    def test_gradients_of_few_key_heads(self):
        """Query heads of a group are in parts, with grid points of their own."""
        torch.manual_seed(0)
        slopes = torch.rand(9, requires_grad=True)

        def score(s, b, h, q, k):
            return s - slopes[h] * (q - k).abs()

        def mask(b, h, q, k):
            return (q + k) % 3 != 0

        shapes = (1, 9, 10, 64), (1, 1, 13, 64), (1, 1, 13, 64)
        leaves = [torch.randn(shape, dtype=torch.bfloat16, requires_grad=True) for shape in shapes]
        doubles = [leaf.detach().double().requires_grad_() for leaf in leaves]
        exact = slopes.detach().double().requires_grad_()
        own = lambda s, b, h, q, k: s - exact[h] * (q - k).abs()
        kept = tessera.torch.create_block_mask(mask, 1, None, 10, 13, device="cpu")
        find = _gradient_kernels.find_gradients_of_source
        for given, hides in (({}, None), ({"mask_mod": mask}, mask), ({"block_mask": kept}, mask)):
            with unittest.mock.patch.object(_gradient_kernels, "find_gradients_of_source", wraps=find) as asked:
                out = attention(*leaves, score_mod=score, **given)
                found = torch.autograd.grad(out.float().square().sum(), (*leaves, slopes))
            self.assertIn(dict(asked.call_args.args[-1])["PARTS"], (8, 16))
            want = torch.autograd.grad(problems.exact_mods(*doubles, own, hides)[0], (*doubles, exact), 2 * out.detach().double())
            for got, expected in zip(found, want):
                self.assertLess((got.double() - expected).norm() / expected.norm(), 2**-7)


class Flex(problems.Mods):
    def test_meaning(self):
        """The same as torch's own, aligned at the first query and key."""
        score = functools.partial(lambda table, s, b, h, q, k: s + table[h] * (q - k), TABLE)
        block_mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 19, 28, device="cpu")
        arguments = {"score_mod": score, "block_mask": block_mask, "scale": 0.25, "enable_gqa": True}
        want, want_lse = flex.flex_attention(
            *(x.double() for x in (self.q, self.k, self.v)), **arguments, return_aux=flex.AuxRequest(lse=True)
        )
        out, aux = flex_attention(self.q, self.k, self.v, **arguments, return_aux=flex.AuxRequest(lse=True))
        problems.assert_close(self, out, want)
        self.assertLess((aux.lse - want_lse.lse).abs().max().item(), 1e-4)
        self.assertIsNone(aux.max_scores)
        for lse, returns_lse in ((False, False), (True, True)):
            results = flex_attention(self.q, self.k, self.v, **arguments, return_lse=returns_lse)
            self.assertTrue(torch.equal(results[0] if lse else results, out))
        named = {"score_mod": score, "block_mask": block_mask, "scale": 0.25}
        self.assertTrue(torch.equal(attention(self.q, self.k, self.v, **named), out))

    def test_refusals(self):
        q, k, v = self.q, self.k, self.v
        wide = k.expand(2, 2, 28, 64), v.expand(2, 2, 28, 64)
        block_mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cpu")
        for error, text, tensors, named in (
            (ValueError, "pass enable_gqa=True", (q, k, v), {}),
            (ValueError, "'return_lse' and 'return_aux' are both given", (q, *wide),
             {"return_lse": True, "return_aux": flex.AuxRequest(lse=True)}),
            (TypeError, "'return_aux' is a bool; it is an AuxRequest of", (q, *wide), {"return_aux": True}),
            (NotImplementedError, "asks for max_scores", (q, *wide), {"return_aux": flex.AuxRequest(max_scores=True)}),
            (ValueError, "has lists for 256 queries, and the call has 19", (q, *wide), {"block_mask": block_mask}),
            (NotImplementedError, "is a part of another one", (q, *wide), {"block_mask": block_mask[:, :, 1:]}),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(error, text):
                flex_attention(*tensors, **named)
        for error, text, named in (
            (ValueError, "'mask_mod' and 'block_mask' are both given", {"block_mask": block_mask, "mask_mod": min}),
            (TypeError, "'block_mask' is a Tensor; it is a BlockMask", {"block_mask": torch.ones(2, 2)}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                attention(q, k, v, **named)

    def test_use(self):
        q, k, v = make(batch=1, rows=20, keys=20)
        with tessera.torch.use() as use:
            out = flex.flex_attention(q, k, v, score_mod=capped, enable_gqa=True)
            flex.flex_attention(q, k, v, enable_gqa=True)
            flex.flex_attention(q, k, v, score_mod=lambda s, b, h, q, k: torch.erf(s), enable_gqa=True)
            flex.flex_attention(q.float(), k.float(), v.float(), enable_gqa=True)
            compiled = torch.compile(flex_of_module, fullgraph=True, backend="aot_eager")
            self.assertTrue(torch.equal(compiled(q, k, v), out))
        self.assertEqual((use.taken, use.left.total()), (2, 2))
        self.assertRegex(str(use), "left to torch: .*mods.py:[0-9]+: torch.erf of a traced value is unknown")
        problems.assert_close(self, out, problems.exact_mods(q, k, v, capped)[0])
        self.assertIs(flex.flex_attention, use._original_flex)


class Compiled(problems.Mods):
    def run_compiled(self, function, calls, graphs):
        """Compiled code gives what eager code gives, with so many graphs and without a break."""
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(function, fullgraph=True, backend=counter)
        for arguments in calls:
            self.assertTrue(torch.equal(compiled(*arguments), function(*arguments)))
        self.assertEqual(counter.frame_count, graphs)

    def draw(self, length):
        return make(batch=1, rows=length, keys=length)

    def test_lengths_and_tensors(self):
        def over_an_input(q, k, v, slopes):
            def alibi(s, b, h, i, j):
                return cap(s) - slopes[h] * (i - j)

            return flex_attention(q, k, v, score_mod=alibi, enable_gqa=True)

        def with_arguments(q, k, v, slopes):
            def alibi(s, b, h, i, j, slopes):
                return cap(s) - slopes[h] * (i - j)

            return attention(q, k, v, score_mod=alibi, score_args=(slopes,), mask_mod=masks.window(9))

        for function in (over_an_input, with_arguments):
            torch._dynamo.reset()
            self.run_compiled(function, [(*self.draw(n), torch.randn(2)) for n in (16, 17, 40, 33)], graphs=2)

    def test_numbers(self):
        def run(q, k, v, width):
            return attention(q, k, v, mask_mod=lambda b, h, i, j: (i >= j) & (i - j < width))

        tensors = self.draw(24)
        self.run_compiled(run, [(*tensors, torch.tensor(n)) for n in (2, 9, 4)], graphs=1)
        torch._dynamo.reset()
        self.run_compiled(run, [(*tensors, n) for n in (2, 9, 4, 5)], graphs=2)

        def run_computed(q, k, v, width):
            return attention(q, k, v, mask_mod=lambda b, h, i, j: i - j < (width * width - 1) // 2)

        torch._dynamo.reset()
        self.run_compiled(run_computed, [(*tensors, n) for n in (2, 9, 4, 5)], graphs=2)

        def run_constant(q, k, v, width):
            return attention(q, k, v, mask_mod=lambda b, h, i, j: i // width == j // width)

        torch._dynamo.reset()
        self.run_compiled(run_constant, [(*tensors, n) for n in (2, 9, 4)], graphs=3)

    def test_block_masks(self):
        def run(q, k, v, block_mask):
            return flex_attention(q, k, v, block_mask=block_mask, enable_gqa=True)

        def make_mask(documents):
            mask = flex.and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: documents[q] == documents[k])
            return flex.create_block_mask(mask, None, None, 24, 24, device="cpu")

        tensors = self.draw(24)
        self.run_compiled(run, [(*tensors, make_mask(torch.arange(24) // n)) for n in (5, 7, 9)], graphs=1)

    def test_other_functions(self):
        """Other functions, and other values of what they see, are other graphs."""

        def run(q, k, v, score_mod):
            return attention(q, k, v, score_mod=score_mod)

        tensors, scores = self.draw(24), (lambda s, b, h, q, k: s * 2, lambda s, b, h, q, k: s * 3)
        self.run_compiled(run, [(*tensors, score_mod) for score_mod in scores], graphs=2)

        def run_global(q, k, v):
            return attention(q, k, v, score_mod=capped)

        torch._dynamo.reset()
        compiled = torch.compile(run_global, fullgraph=True, backend="aot_eager")
        for value in (CAP, 0.5):
            with unittest.mock.patch(f"{__name__}.CAP", value):
                self.assertTrue(torch.equal(compiled(*tensors), run_global(*tensors)))

    def test_gradients(self):
        slopes = torch.randn(2)

        def loss(q, k, v, slopes):
            out = attention(q, k, v, score_mod=lambda s, b, h, i, j: cap(s) - slopes[h] * (i - j).abs())
            return out.float().square().sum()

        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        leaves = [tensor.requires_grad_() for tensor in self.draw(24)]
        for got, want in zip(*(torch.autograd.grad(f(*leaves, slopes), leaves) for f in (compiled, loss))):
            self.assertTrue(torch.equal(got, want))

    def test_variables_from_around(self):
        """A function that is made in compiled code takes variables of the function around it, also through one between them."""
        slopes, factor, tensors = torch.randn(2), 3, self.draw(24)

        def run(q, k, v):
            own = factor + 1

            def score(s, b, h, i, j):
                def fall(x):
                    return x - slopes[h] * (i - j).abs()

                return fall(s) * own

            return attention(q, k, v, score_mod=score, mask_mod=lambda b, h, i, j: i - j < factor)

        self.run_compiled(run, [tensors], graphs=1)
        before = run(*tensors)
        compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
        for slopes, factor in ((slopes * 2, 3), (slopes, 9)):  # noqa: B007
            self.assertTrue(torch.equal(compiled(*tensors), run(*tensors)))
            self.assertFalse(torch.equal(run(*tensors), before))

    def test_namedtuples(self):
        tensors = self.draw(24)

        def run(q, k, v, named):
            return attention(q, k, v, score_mod=lambda s, b, h, i, j: s * NAMED.factor + NAMED.table[h] - TABLE.shape[0])

        self.run_compiled(run, [(*tensors, None)], graphs=1)

    def test_refusal(self):
        def run(q, k, v):
            return attention(q, k, v, mask_mod=lambda b, h, i, j: True if i > j else j > 3)

        # The text comes before all that Dynamo says, with and without breaks of the graph.
        for fullgraph in (True, False):
            with self.subTest(fullgraph=fullgraph), self.assertRaisesRegex(Exception, "^\\S*mods.py:[0-9]+: a condition on a traced value"):
                torch.compile(run, fullgraph=fullgraph, backend="aot_eager")(*self.draw(16))


if __name__ == "__main__":
    unittest.main()
