# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Gradients of what functions of scores capture, for each way in which it is looked at, by the interpreter on the CPU, against
autograd in float64."""

import functools
import os
import random
import unittest
import unittest.mock

import problems
import torch
from problems import make
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode

import tessera
import tessera.torch
from tessera._attention import _gradient_kernels
from tessera.torch import _captured, attention, flex_attention

B, H, ROWS, KEYS = 2, 2, 19, 28
COUNT = 200 if os.environ.get("TESSERA_THOROUGH") else 20
RISING = tessera.Variant(
    score=lambda s, b, h, q, k, slopes, rows: s * rows[h, q] - slopes[h] * abs(q - k),
    mask=tessera.masks.window(9, 3), slopes=("H",), rows=("H", "SQ"),
)  # fmt: skip
_generator = torch.Generator().manual_seed(3)


def draw(*shape, dtype=torch.float32):
    return (torch.randn(shape, generator=_generator) / 2 + 1).to(dtype)


class Cases(problems.Interpreted):
    def setUp(self):
        super().setUp()
        self.tensors = make(batch=B, rows=ROWS, keys=KEYS, dtype=torch.float16)

    def check(self, score_mod, *learned, mask_mod=None, **named):
        """Gradients of q, k, v and of what is learned, which the function takes as further arguments."""
        leaves = [tensor.clone().requires_grad_() for tensor in (*self.tensors, *learned)]
        out, lse = attention(*leaves[:3], score_mod=score_mod, score_args=tuple(leaves[3:]), mask_mod=mask_mod,
                             return_lse=True, **named)  # fmt: skip
        self.compare(leaves, out, lse, lambda doubles: problems.exact_mods(
            *doubles[:3], lambda *values: score_mod(*values, *doubles[3:]), mask_mod))  # fmt: skip

    def compare(self, leaves, out, lse, exact):
        doubles = [leaf.detach().double().requires_grad_() for leaf in leaves]
        want, want_lse = exact(doubles)
        weights = torch.randn(lse.shape, generator=_generator)
        found = torch.autograd.grad((out.float().square().sum(), (lse * weights).sum()), leaves)
        # Rows that see nothing have no LSE.
        of_lse = torch.where(want_lse.isinf(), 0, want_lse * weights).sum()
        wanted = torch.autograd.grad(((want * 2 * out.detach().double()).sum(), of_lse), doubles)
        for i, (got, expected) in enumerate(zip(found, wanted)):
            self.assertEqual((got.dtype, got.shape), (leaves[i].dtype, leaves[i].shape))
            error = (got.double() - expected).norm() / expected.norm().clamp(min=1e-3)
            # What is learned has sums in which scores of both signs meet, and is rounded to its own type.
            limit = 2 * torch.finfo(out.dtype).eps if i < 3 else 4 * torch.finfo(out.dtype).eps + torch.finfo(got.dtype).eps
            self.assertLess(error.item(), limit, f"of number {i}")


class Loads(Cases):
    def test_heads(self):
        self.check(lambda s, b, h, q, k, slopes: s - slopes[h] * (q - k).abs(), draw(H))
        self.check(lambda s, b, h, q, k, gains: torch.tanh(s * gains[b, h]), draw(B, H), mask_mod=lambda b, h, q, k: q >= k)
        self.check(lambda s, b, h, q, k, slopes: s - slopes[h] * (q - k).abs(), draw(H, dtype=torch.bfloat16))

    def test_numbers(self):
        self.check(lambda s, b, h, q, k, cap, shift: cap * torch.tanh(s / cap) + shift * (q > k), draw(), draw())
        self.check(lambda s, b, h, q, k, first: s * first[0] + first[1].exp(), draw(3))

    def test_rows_and_columns(self):
        self.check(lambda s, b, h, q, k, rows, keys: s * rows[h, q] + keys[b, k], draw(H, ROWS), draw(B, KEYS))
        # Not in the last dimension, and moved by a number.
        self.check(lambda s, b, h, q, k, rows, keys: s * rows[q, 1] + keys[k + 2], draw(ROWS, 2), draw(KEYS + 2))

    def test_factors(self):
        """Of rows: whole, of no size, below 0, and beside what is added; of groups of heads, and with tiles that are cut."""
        rows = draw(H, ROWS)
        rows[0, 3:7], rows[1] = 0, -rows[1]
        self.check(lambda s, b, h, q, k, rows, gains: s * (rows[h, q] + gains[b]), rows, draw(B))
        self.check(lambda s, b, h, q, k, gains: s * gains[h], torch.tensor([0.0, -1.5]), mask_mod=lambda b, h, q, k: q >= k)
        self.check(lambda s, b, h, q, k, gains, keys: s * gains[h] * (q + 1.0).log() - keys[k], draw(H), draw(KEYS))
        self.check(lambda s, b, h, q, k, gains: s / gains[h] + q, draw(H))
        self.tensors = make(batch=1, heads=4, kv_heads=2, rows=150, keys=140, d=72, dv=40)
        self.check(lambda s, b, h, q, k, gains: s * gains[h, 2], draw(4, 3), mask_mod=lambda b, h, q, k: q >= k)

    def test_pairs(self):
        self.check(lambda s, b, h, q, k, bias: s + bias[b, h, q, k], draw(B, H, ROWS, KEYS))
        self.check(lambda s, b, h, q, k, bias: s + bias[q, k], draw(ROWS, KEYS, dtype=torch.float16))
        self.check(lambda s, b, h, q, k, bias: s * bias[h, k, q], draw(H, KEYS, ROWS), mask_mod=lambda b, h, q, k: q >= k - 4)

    def test_tables(self):
        self.check(lambda s, b, h, q, k, table: s + table[h, q - k + KEYS - 1], draw(H, ROWS + KEYS))
        self.check(lambda s, b, h, q, k, table: s + table[(q - k).clamp(-3, 3) + 3, h], draw(7, H))
        kinds = torch.randint(0, 5, (KEYS,), generator=_generator)
        self.check(lambda s, b, h, q, k, table: s * table[kinds[k]], draw(5))

    def test_one_at_two_places(self):
        self.check(lambda s, b, h, q, k, table: s * table[h] + table[1 - h] * s.square() + table[0], draw(H))

    def test_widths_and_heads(self):
        self.tensors = make(batch=1, heads=4, kv_heads=2, rows=33, keys=20, d=72, dv=40)
        self.check(lambda s, b, h, q, k, slopes: s - slopes[h] * (q - k).abs(), draw(4))
        self.tensors = make(batch=1, rows=16, keys=24, d=256)
        self.check(lambda s, b, h, q, k, bias: s + bias[h, q, k], draw(H, 16, 24))

    def test_lists_of_blocks(self):
        documents = torch.randint(0, 3, (B, KEYS), generator=_generator)
        self.check(lambda s, b, h, q, k, slopes: s - slopes[h] * (q - k).abs(), draw(H),
                   mask_mod=lambda b, h, q, k: documents[b, q] == documents[b, k])  # fmt: skip

    def test_kernel_for_each(self):
        """Where no kernel has the registers for all numbers of an MLP, each of its views has a kernel."""
        refused = tessera.Diagnostic("error", "", 0, 0, "no registers", (), "registers")
        find = _gradient_kernels.find_gradients_of_source

        def find_one(kind, source, learned, *given):
            if len(learned) > 1:
                raise tessera.CompileError("no registers", "source", [refused])
            return find(kind, source, learned, *given)

        def score(s, b, h, q, k, rates, starts, factors):
            x = torch.log((q - k).abs() + 1.0)
            return s + sum(factors[i] * torch.tanh(x * rates[i] + starts[i]) for i in range(3))

        self.addCleanup(_gradient_kernels.list_gradients_of_source.cache_clear)
        with unittest.mock.patch.object(_gradient_kernels, "find_gradients_of_source", find_one):
            with self.assertWarnsRegex(RuntimeWarning, "'.*', '.*', '.*' take a kernel each: no registers$"):
                self.check(score, draw(3), draw(3), draw(3))

    def test_poles(self):
        """Rows and keys that are not there, and scores that a mask hides, add nothing where a derivative is infinite."""
        self.check(lambda s, b, h, q, k, t, u: s / t[h, q] + u[k], draw(H, ROWS).abs() + 0.5, draw(KEYS))
        self.check(lambda s, b, h, q, k, t, u: s / t[h, k] + u[q] * t[h, k].log(), draw(H, KEYS).abs() + 0.5, draw(ROWS))
        pairs = torch.where(torch.arange(KEYS) > torch.arange(ROWS)[:, None], 0, draw(ROWS, KEYS).abs() + 0.5)
        leaves = [tensor.clone().requires_grad_() for tensor in (*self.tensors, pairs, draw(H))]
        out = attention(*leaves[:3], score_mod=lambda s, b, h, q, k, t, u: s + u[h] * torch.log(t[q, k]) / t[q, k],
                        score_args=tuple(leaves[3:]), mask_mod=lambda b, h, q, k: q >= k)  # fmt: skip
        for gradient in torch.autograd.grad(out.float().sum(), leaves):
            self.assertTrue(gradient.isfinite().all())


NUMBERS = torch.arange(KEYS) * 3 % 5
# Ways of looking at a tensor, with its shape, and what may be done with values of about 1.
LOOKS = {
    "{}": (), "{}[h]": (H,), "{}[b, h]": (B, H), "{}[h, q]": (H, ROWS), "{}[b, k]": (B, KEYS), "{}[k, 1]": (KEYS, 2),
    "{}[q, k]": (ROWS, KEYS), "{}[h, k, q]": (H, KEYS, ROWS), "{}[h, (q - k).clamp(-3, 3) + 3]": (H, 7), "{}[NUMBERS[k]]": (5,),
}  # fmt: skip
STEPS = (
    "({x} + {y})", "{x} * {y}", "({x} - 0.5 * {y})", "torch.tanh({x}) * {y}", "torch.sin({x} + {y})", "{x} / ({y} * {y} + 0.5)",
    "torch.sqrt({x} * {x} + 0.25) * {y}", "torch.where(q > k, {x}, {y})", "torch.exp(torch.tanh({x}))",
    "torch.maximum({x}, {y})", "{x} * (q - k) / 16", "torch.log({x} * {x} + 0.5)",
)  # fmt: skip


def write_random(seed):
    """(a function of a score by chance, what it takes further)."""
    choice = random.Random(seed)
    looks = choice.sample(list(LOOKS), choice.randint(1, 3))
    values = ["torch.tanh(s)", *(look.format(f"x{i}") for i, look in enumerate(looks))]
    for _ in range(choice.randint(1, 5)):
        x, y = choice.choice(values), choice.choice(values)
        values.append(choice.choice(STEPS).format(x=x, y=y))
    names = ", ".join(f"x{i}" for i in range(len(looks)))
    total = " + ".join(f"torch.tanh({value})" for value in values[1:])
    # Of the test's module, as functions are.
    function = eval(f"lambda s, b, h, q, k, {names}: s + {total}", globals())
    generator = torch.Generator().manual_seed(seed)
    return function, [torch.rand(LOOKS[look], generator=generator) * 2 - 1 for look in looks]


class Functions(Cases):
    def test_random(self):
        for seed in range(COUNT):
            with self.subTest(seed=seed):
                function, learned = write_random(seed)
                self.check(function, *learned)


class Ways(Cases):
    def test_captured(self):
        """From around the function, not a leaf, and beside tensors that are not learned."""
        weights, table = draw(H).requires_grad_(), draw(H)
        slopes, seen = weights.exp(), torch.zeros(H, requires_grad=True)

        def score(s, b, h, q, k):
            return s - slopes[h] * (q - k).abs() + table[h]

        out = attention(*self.tensors, score_mod=score, mask_mod=lambda b, h, q, k: q + 9 > k + seen[h])
        out.float().square().sum().backward()
        doubles = [tensor.double() for tensor in self.tensors]
        learned = weights.detach().double().requires_grad_()
        want, _ = problems.exact_mods(
            *doubles, lambda s, b, h, q, k: s - learned.exp()[h] * (q - k).abs() + table[h], lambda b, h, q, k: q + 9 > k
        )
        (wanted,) = torch.autograd.grad(want, learned, 2 * out.detach().double())
        self.assertLess((weights.grad - wanted).norm() / wanted.norm(), 2e-3)
        self.assertIsNone(seen.grad)

    def test_flex(self):
        weight = draw(H).requires_grad_()
        out = flex_attention(*self.tensors, score_mod=lambda s, b, h, q, k: s * weight[h], enable_gqa=True)
        out.float().sum().backward()
        self.assertGreater(weight.grad.abs().min().item(), 0)

    def test_variant(self):
        slopes, rows = draw(H), draw(H, ROWS)
        leaves = [tensor.requires_grad_() for tensor in (*self.tensors, slopes, rows)]
        out, lse = attention(*leaves[:3], variant=RISING, arguments={"slopes": slopes, "rows": rows}, return_lse=True)
        visible = problems.band(ROWS, KEYS, 9, 3)

        def exact(doubles):
            q, k, v, *learned = doubles
            return problems.exact_mods(
                q, k, v, lambda s, b, h, i, j: s * learned[1][h, i] - learned[0][h] * abs(i - j),
                lambda b, h, i, j: visible[i, j],
            )  # fmt: skip

        self.compare(leaves, out, lse, exact)

    def test_slopes(self):
        for softcap, window in ((0.0, None), (1.5, (9, 3))):
            leaves = [tensor.clone().requires_grad_() for tensor in (*self.tensors, draw(H))]
            out, lse = attention(*leaves[:3], alibi=leaves[3], softcap=softcap, window=window, return_lse=True)
            visible = None if window is None else problems.band(ROWS, KEYS, *window)
            with self.subTest(softcap=softcap):
                self.compare(leaves, out, lse, lambda x: problems.exact(*x[:3], visible, softcap, x[3]))

    def test_bias(self):
        for shape in ((ROWS, KEYS), (1, H, ROWS, KEYS), (B, 1, 1, KEYS), (H, 1, 1)):
            leaves = [tensor.clone().requires_grad_() for tensor in (*self.tensors, draw(*shape))]
            out, lse = attention(*leaves[:3], bias=leaves[3], return_lse=True)

            def exact(doubles):
                q, k, v, bias = doubles
                return problems.exact_mods(q, k, v, lambda s, b, h, i, j: s + bias.expand(B, H, ROWS, KEYS)[b, h, i, j])

            with self.subTest(shape):
                self.compare(leaves, out, lse, exact)

    def test_cancelling(self):
        """What is added to all scores of a query has no gradient, and the same elements have one as those of keys."""
        leaves = [tensor.clone().requires_grad_() for tensor in (*self.tensors, draw(B, H, KEYS), draw(H))]

        def score(s, b, h, q, k, gates, shifts):
            return s * 0.5 + gates[b, h, q] * 2 - gates[b, h, k] + shifts[h]

        out = attention(*leaves[:3], score_mod=score, score_args=tuple(leaves[3:]), mask_mod=lambda b, h, q, k: k < q + 7)
        found = torch.autograd.grad(out.float().square().sum(), leaves)
        doubles = [leaf.detach().double().requires_grad_() for leaf in leaves]
        want, _ = problems.exact_mods(
            *doubles[:3], lambda *values: score(*values, *doubles[3:]), lambda b, h, q, k: k < q + 7
        )
        wanted = torch.autograd.grad((want * 2 * out.detach().double()).sum(), doubles)
        self.assertTrue(torch.equal(found[4], torch.zeros(H)))
        self.assertLess(wanted[4].abs().max().item(), 1e-12)
        for got, expected in zip(found[:4], wanted):
            self.assertLess(((got.double() - expected).norm() / expected.norm()).item(), 4e-3)

    def test_expanded(self):
        """A tensor that is repeated, whose gradient autograd sums."""
        single = draw(1, ROWS, KEYS).requires_grad_()
        wide = single.expand(H, ROWS, KEYS)
        loss = attention(*self.tensors, score_mod=lambda s, b, h, q, k: s + wide[h, q, k]).float().square().sum()
        dense = single.detach().repeat(H, 1, 1).requires_grad_()
        other = attention(*self.tensors, score_mod=lambda s, b, h, q, k: s + dense[h, q, k]).float().square().sum()
        (got,), (parts,) = torch.autograd.grad(loss, single), torch.autograd.grad(other, dense)
        self.assertLess((got - parts.sum(0, keepdim=True)).abs().max().item(), 1e-5)

    def test_compile(self):
        table, slopes = draw(H, ROWS + KEYS), draw(H)

        def loss(q, k, v, table, slopes):
            out = attention(q, k, v, score_mod=lambda s, b, h, i, j: s + table[h, i - j + KEYS - 1] - slopes[h] * (i - j).abs())
            return out.float().square().sum()

        def differentiate(run):
            leaves = [tensor.clone().requires_grad_() for tensor in (*self.tensors, table, slopes)]
            return torch.autograd.grad(run(*leaves), leaves)

        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(loss, fullgraph=True, backend=counter)
        for got, want in zip(differentiate(compiled), differentiate(loss)):
            self.assertTrue(torch.equal(got, want))
        self.assertEqual(counter.frame_count, 1)

    def test_sinks(self):
        """Of a variant with sinks: rows that see a key more, with the value 0, and nothing else."""
        variant = tessera.Variant(
            score=lambda s, b, h, q, k, gains: s * gains[h], sink=lambda b, h, sinks, gains: sinks[b, h] * gains[h],
            mask=lambda b, h, q, k: k < q - 2, sinks=("B", "H"), gains=("H",),
        )  # fmt: skip
        leaves = [tensor.clone().requires_grad_() for tensor in (*self.tensors, draw(B, H), draw(H))]
        given = dict(zip(("sinks", "gains"), leaves[3:]))
        out, lse = attention(*leaves[:3], variant=variant, arguments=given, return_lse=True)

        def exact(doubles):
            of_keys, of_sinks = problems.exact_mods(
                *doubles[:3], lambda s, b, h, q, k: s * doubles[4][h], lambda b, h, q, k: k < q - 2
            ), doubles[3] * doubles[4]  # fmt: skip
            both = torch.logaddexp(of_keys[1], of_sinks[..., None])
            return of_keys[0] * torch.exp(of_keys[1] - both)[..., None], both

        self.compare(leaves, out, lse, exact)

    def test_nothing_to_see(self):
        slopes = draw(H).requires_grad_()
        tensors = make(batch=1, rows=5, keys=0)
        attention(*tensors, score_mod=lambda s, b, h, q, k: s * slopes[h]).sum().backward()
        self.assertTrue(torch.equal(slopes.grad, torch.zeros(H)))

    def test_no_use(self):
        """Elements that only choose: the gradient is 0."""
        limits = draw(H).requires_grad_()
        attention(*self.tensors, score_mod=lambda s, b, h, q, k: torch.where(s > limits[h], s, 0)).sum().backward()
        self.assertTrue(torch.equal(limits.grad, torch.zeros(H)))


class Order(Cases):
    def setUp(self):
        super().setUp()
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)

    def differentiate(self, score_mod):
        return attention(*self.tensors, score_mod=score_mod).float().sum().backward()

    def test_any_order(self):
        slopes, bias = draw(H).requires_grad_(), draw(H, ROWS, KEYS).requires_grad_()
        for score in (lambda s, b, h, q, k: s * slopes[h], lambda s, b, h, q, k: s + bias[h, q, k]):
            with self.assertRaisesRegex(RuntimeError, "is a sum over blocks in any order, and torch.use_deterministic_alg"):
                self.differentiate(score)
        torch.use_deterministic_algorithms(True, warn_only=True)
        with self.assertWarnsRegex(UserWarning, "is a sum over blocks in any order"):
            self.differentiate(lambda s, b, h, q, k: s * slopes[h])

    def test_asked_for(self):
        """By a call, without PyTorch's own switch."""
        torch.use_deterministic_algorithms(False)
        slopes, bias = draw(H).requires_grad_(), draw(B, H, ROWS, KEYS).requires_grad_()
        calls = (lambda s, b, h, q, k: s * slopes[h], "loose"), (lambda s, b, h, q, k: s + bias[b, h, q, k], "one order")
        for score, kind in calls:
            with self.subTest(kind), unittest.mock.patch.object(
                _gradient_kernels, "find_gradients_of_source", wraps=_gradient_kernels.find_gradients_of_source
            ) as find:
                if kind == "loose":
                    with self.assertRaisesRegex(RuntimeError, "in any order, and attention was called with deterministic=True"):
                        attention(*self.tensors, score_mod=score, deterministic=True)
                else:
                    attention(*self.tensors, score_mod=score, deterministic=True).float().sum().backward()
                    self.assertEqual([call.args[3] for call in find.call_args_list], [True])

    def test_one_order(self):
        bias, rows = draw(B, H, ROWS, KEYS), draw(B, H, ROWS)
        self.check(lambda s, b, h, q, k, bias, rows: s * rows[b, h, q] + bias[b, h, q, k], bias, rows)
        self.tensors = make(batch=1, rows=ROWS, keys=KEYS, dtype=torch.float16)
        self.check(lambda s, b, h, q, k, bias: s + bias[h, q, k], draw(H, ROWS, KEYS))
        for score in (lambda s, b, h, q, k, t: s + t[h, q, k] + t[h, k, q], lambda s, b, h, q, k, t: s + t[h, q, k // 2]):
            with self.assertRaisesRegex(RuntimeError, "in any order"):
                self.check(score, draw(H, KEYS, KEYS))


class Sources(unittest.TestCase):
    def test_names(self):
        self.assertEqual(RISING.learnable, ("rows", "slopes"))
        self.assertIn('tile.with_respect_to = ["rows"]', RISING.write_gradients(learned=("rows",)))
        with self.assertRaisesRegex(ValueError, "'left' in `learned` is no view .*; it has rows, slopes"):
            RISING.write_gradients(learned=("left",))
        names = RISING.gradients_program(learned=("slopes", "rows"), D=64).names
        self.assertEqual([name for name in names if name.startswith("d")][-2:], ["dslopes", "drows"])

    def test_no_rule(self):
        """Refused where it stands, as without what is learned."""
        written, _ = _captured.find(torch.device("cpu"), lambda s, b, h, q, k: s * TABLE[h], (), None, ())
        source = written.source.replace("arith.mulf", "math.powf")
        with self.assertRaisesRegex(tessera.CompileError, "has no rule for its derivative"):
            _gradient_kernels.find_gradients_of_source(tessera.Program, source, ("TABLE_0",), True, "f16", 64, 64, False)


    def test_refused_forward(self):
        """What has no gradient is refused by the forward call, which names the tensors, or says that it is the score."""
        find = _captured.find

        def find_powers(*arguments):
            written, found = find(*arguments)
            written.source = written.source.replace("arith.mulf", "math.powf")
            return written, found

        q, k, v = make(B, H, H, ROWS, KEYS, dtype=torch.float16)
        table = draw(H).requires_grad_()
        calls = (
            (lambda s, b, h, q, k: s + table[h] * 2.5, r"'table' can have no gradient: .* has no rule for its derivative.*; detach 'table'$"),
            (lambda s, b, h, q, k: s * table[h], r"the score has no gradient: .* has no rule for its derivative.*; detach query, key and value"),
        )  # fmt: skip
        for score, message in calls:
            with self.subTest(message), unittest.mock.patch.object(_captured, "find", find_powers):
                with self.assertRaisesRegex(tessera.TraceError, message):
                    attention(q, k, v, score_mod=score)

    def test_no_room(self):
        """A view whose sums no kernel has the registers for is named by the forward call, before any is launched."""
        message = "gradients of 'rates' take more registers than there are: .* no schedule of this kernel fits.*; detach what"
        with FakeTensorMode():
            q, k, v = (torch.empty(B, H, ROWS, 64, device="cuda", dtype=torch.float16) for _ in range(3))
            rates = torch.empty(60, device="cuda").requires_grad_()

            def score(s, b, h, q, k):
                x = torch.log((q - k).abs() + 1.0)
                return s + sum(torch.relu(x * rates[i] + 1.0) for i in range(60))

            with self.assertRaisesRegex(tessera.TraceError, message):
                attention(q, k, v, score_mod=score)

    def test_smaller_tiles(self):
        """What takes too many registers for the usual tiles is compiled with others, and warnings say so."""
        variant = tessera.Variant(
            score=lambda s, b, h, q, k, slopes, gate: s / gate[b, k] - slopes[h] * abs(q - k), slopes=("H",), gate=("B", "SK")
        )
        kind = functools.partial(tessera.compile, image="ptx", cache=False)
        with self.assertWarns(RuntimeWarning) as caught:
            kernel = _gradient_kernels.find_gradients_of_source(kind, variant.source, ("slopes", "gate"), False, "bf16", 128, 128, False)
        self.assertRegex(str(caught.warnings[0].message), "are taken, GQN = 32, as rules say: no schedule of this kernel fits")
        self.assertRegex(str(caught.warnings[1].message), "gradients take attention_gradients_fixed.tile, with more products")
        self.assertEqual(kernel.names[-4:], ("gate", "slopes", "dslopes", "dgate"))


TABLE = torch.tensor([0.5, -0.25])


if __name__ == "__main__":
    unittest.main()
