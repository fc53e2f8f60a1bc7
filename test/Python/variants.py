# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %python %s
"""Functions of scores and masks in Python: traced, as a source, and as the interpreter runs it."""

import ctypes
import functools
import itertools
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import tessera
from tessera import masks
from tessera._core import _library
from tessera._functions import _places, _trace, _views
from tessera._compiler._program import Program

T = tessera


class Array:
    """Numbers of a shape, with the interface of numpy's arrays."""

    def __init__(self, shape, values=None, code="f"):
        self.shape, self.code = shape, code
        self.count = math.prod(shape)
        self.size = struct.calcsize(code)
        self.buffer = ctypes.create_string_buffer(self.count * self.size)
        if values is not None:
            struct.pack_into(f"<{self.count}{code}", self.buffer, 0, *values)

    @property
    def __array_interface__(self):
        typestr = {"f": "<f4", "e": "<f2"}[self.code]
        return {"shape": self.shape, "typestr": typestr, "data": (ctypes.addressof(self.buffer), False), "version": 3}

    def read(self):
        return struct.unpack_from(f"<{self.count}{self.code}", self.buffer)


def reference(score, mask, q, k, v, heads, sq, sk, dim, scale, sinks=None):
    """Rows of O for one batch, by definition, on Python's numbers; with the score of a sink for each head."""
    rows = []
    for h in range(heads):
        for i in range(sq):
            row = q[(h * sq + i) * dim :][:dim]
            scores = []
            for j in range(sk):
                x = scale * sum(a * b for a, b in zip(row, k[(h * sk + j) * dim :][:dim]))
                scores.append(score(x, h, i, j) if mask(h, i, j) else -math.inf)
            of_sink = sinks[h] if sinks else -math.inf
            top = max(*scores, of_sink)
            weights = [math.exp(x - top) if top > -math.inf else 0.0 for x in (*scores, of_sink)]
            total = sum(weights) or 1.0
            rows += [sum(w * v[(h * sk + j) * dim + c] for j, w in enumerate(weights[:-1])) / total for c in range(dim)]
    return rows


class RunTest(unittest.TestCase):
    """Variants against their definition, on the interpreter."""

    def check(self, variant, score=lambda s, h, i, j: s, mask=lambda h, i, j: True, sq=20, sk=24, sinks=None, **given):
        heads, dim, rng = 2, 64, random.Random(1)
        if sinks:
            given["sinks"] = Array((heads,), sinks)
        draw = lambda n: [round(rng.gauss(0, 1), 2) for _ in range(n * heads * dim)]  # noqa: E731
        half = lambda values: list(struct.unpack(f"<{len(values)}e", struct.pack(f"<{len(values)}e", *values)))  # noqa: E731
        q, k, v = half(draw(sq)), half(draw(sk)), half(draw(sk))
        o, lse = Array((1, heads, sq, dim), code="e"), Array((1, heads, sq))
        program = variant.program(D=64, BM=64, BN=16, T="f16")
        views = (Array((1, heads, n, dim), values, "e") for n, values in ((sq, q), (sk, k), (sk, v)))
        program(*views, o, lse, 0.125, *given.values())
        expected = reference(score, mask, q, k, v, heads, sq, sk, dim, 0.125, sinks)
        self.assertLess(max(abs(a - b) for a, b in zip(o.read(), expected)), 4e-3)
        do = half(draw(sq))

        def loss(**tensors):
            tensors = {"q": q, "k": k, "v": v, "sinks": sinks, **tensors}
            rows = reference(score, mask, **tensors, heads=heads, sq=sq, sk=sk, dim=dim, scale=0.125)
            return sum(a * b for a, b in zip(rows, do))

        shapes = {"q": sq, "k": sk, "v": sk}
        for fixed in (False, True):
            learned = ("sinks",) if sinks else ()
            gradients = variant.gradients_program(fixed, learned, D=64, T="f16", GN=64)
            of_sinks = {"dsinks": Array((heads,), (0.0,) * heads)} if sinks else {}
            results = {name: Array((1, heads, n, dim), code="e") for name, n in shapes.items()}
            inputs = [Array((1, heads, n, dim), values, "e") for n, values in ((sq, q), (sk, k), (sk, v))]
            outputs = o, Array((1, heads, sq, dim), do, "e"), lse
            gradients(*inputs, *outputs, *results.values(), scale=0.125, **given, **of_sinks)
            for h in range(heads if sinks else 0):
                slope = sum(sign * loss(sinks=[x + sign * 1e-4 * (i == h) for i, x in enumerate(sinks)]) for sign in (1, -1)) / 2e-4
                self.assertAlmostEqual(of_sinks["dsinks"].read()[h], slope, delta=1e-2 * max(1, abs(slope)), msg=(h, fixed))
            for name, values in (("q", q), ("k", k), ("v", v)):
                found = results[name].read()
                for place in rng.sample(range(len(values)), 2):
                    moved = [[x + sign * 1e-4 * (i == place) for i, x in enumerate(values)] for sign in (1, -1)]
                    slope = (loss(**{name: moved[0]}) - loss(**{name: moved[1]})) / 2e-4
                    self.assertAlmostEqual(found[place], slope, delta=1e-2 * max(1, abs(slope)), msg=(name, fixed))

    def test_causal(self):
        self.check(T.Variant(mask=masks.causal), mask=lambda h, i, j: j <= i + 4)

    def test_window_of_sinks(self):
        mask = masks.causal & (masks.window(5) | masks.prefix)
        self.check(T.Variant(mask=mask), mask=lambda h, i, j: j <= i + 4 and (j >= i - 1 or j < 2), prefix=2)

    def test_numbers_without_a_limit(self):
        """Whole numbers are compared, whatever 32 bits have."""
        for number in (-(2**31), 2**31 - 100, 2**31 - 1):
            with self.subTest(number=number):
                ahead = T.Variant(mask=lambda b, h, q, k, n: k <= q + n, n=int)
                self.check(ahead, mask=lambda h, i, j: j <= i + number, n=number)
                least = T.Variant(mask=lambda b, h, q, k, n: (k >= n) | (k == 3), n=int)
                self.check(least, mask=lambda h, i, j: j >= number or j == 3, n=number)

    def test_chunks(self):
        for size in (3, 8, 16):
            same = T.Variant(mask=lambda b, h, q, k: q // size == k // size)
            self.check(same, mask=lambda h, i, j: i // size == j // size)
            causal = T.Variant(mask=lambda b, h, q, k: (k // size <= q // size) & (k >= q - q % size - size))
            self.check(causal, mask=lambda h, i, j: i // size - 1 <= j // size <= i // size)

    def test_not(self):
        self.check(T.Variant(mask=~masks.causal), mask=lambda h, i, j: j > i + 4)

    def test_soft_cap(self):
        variant = T.Variant(score=lambda s, b, h, q, k, cap: cap * T.tanh(s / cap), cap=float)
        self.check(variant, score=lambda s, h, i, j: 0.5 * math.tanh(s / 0.5), cap=0.5)

    def test_alibi(self):
        def alibi(s, b, h, q, k, slopes):
            return s - slopes[h] * abs(q - k)

        slopes = Array((2,), (0.5, 0.25))
        self.check(T.Variant(score=alibi, slopes=("H",)), slopes=slopes,
                   score=lambda s, h, i, j: s - (0.5, 0.25)[h] * abs(i - j))  # fmt: skip

    def test_bias_of_rows(self):
        values = [0.1 * i for i in range(40)]
        variant = T.Variant(score=lambda s, b, h, q, k, rows: s * rows[h, q], rows=("H", "SQ"))
        self.check(variant, score=lambda s, h, i, j: s * values[h * 20 + i], rows=Array((2, 20), values))

    def test_sinks(self):
        values = (0.5, 3.0)
        variant = T.Variant(mask=masks.causal, sink=lambda b, h, x: x[h] * 0.5 + 0.5, x=("H",))
        self.assertEqual(variant.learnable, ("x",))
        with self.assertRaisesRegex(ValueError, "'y' in `learned` is no view .*; it has x"):
            variant.write_gradients(learned=("y",))
        self.check(T.Variant(mask=masks.causal, sink=lambda b, h, sinks: sinks[h], sinks=("H",)), sinks=values,
                   mask=lambda h, i, j: j <= i + 4)  # fmt: skip

    def test_documents(self):
        numbers = [float(i // 9) for i in range(24)]
        variant = T.Variant(mask=T.Mask(lambda b, h, q, k, n: n[q] == n[k], n=("SK",)) & masks.causal)
        self.check(variant, mask=lambda h, i, j: numbers[i] == numbers[j] and j <= i + 4, n=Array((24,), numbers))

    def test_every_other_key(self):
        variant = T.Variant(mask=lambda b, h, q, k: (q - k) % 2 == h)
        self.check(variant, mask=lambda h, i, j: (i - j) % 2 == h)

    def test_bias_of_distances(self):
        values = [float(i % 7) for i in range(43)]
        variant = T.Variant(score=lambda s, b, h, q, k, x: s + x[q - k + 23], x=(43,))
        self.check(variant, score=lambda s, h, i, j: s + values[i - j + 23], x=Array((43,), values))

    def test_bias_of_elements(self):
        values = [0.01 * i for i in range(20 * 24)]
        variant = T.Variant(score=lambda s, b, h, q, k, bias: s + bias[q, k], bias=("SQ", "SK"))
        self.check(variant, score=lambda s, h, i, j: s + values[i * 24 + j], bias=Array((20, 24), values))

    def test_where_and_integers(self):
        def score(s, b, h, q, k):
            return T.where((q + k) % 3 == 1, s * 2, T.minimum(s, 0.1)) + T.maximum(q // 4, 2) * 0.125

        self.check(T.Variant(score=score, mask=lambda b, h, q, k: (q // 8 == k // 8) ^ (h == 1)),
                   score=lambda s, h, i, j: (s * 2 if (i + j) % 3 == 1 else min(s, 0.1)) + max(i // 4, 2) / 8,
                   mask=lambda h, i, j: (i // 8 == j // 8) != (h == 1))  # fmt: skip

    def test_choices_of_sums(self):
        def score(s, b, h, q, k, bonus):
            near = T.where((q ^ k) % 2 == 0, s + bonus, s)
            return T.where(near > 0, near, 0.25 * near) - T.where(k % 3 == 0, 0.5, bonus)

        def expected(s, h, i, j):
            near = s + 0.75 if (i ^ j) % 2 == 0 else s
            return (near if near > 0 else near / 4) - (0.5 if j % 3 == 0 else 0.75)

        self.check(T.Variant(score=score, bonus=float), score=expected, bonus=0.75)

    def test_choices_of_factors(self):
        def score(s, b, h, q, k):
            return 2 * T.where(q < k, T.where(h == 1, s, s + 0.5), -0.5 * s + q / 16) + T.where(k % 2 == 0, s, 0.125)

        self.check(T.Variant(score=score),
                   score=lambda s, h, i, j: 2 * ((s + 0.5 * (h != 1)) if i < j else i / 16 - s / 2) + (0.125 if j % 2 else s))  # fmt: skip


class TextTest(unittest.TestCase):
    def test_source(self):
        variant = T.Variant(score=lambda s, b, h, q, k: s - 2 * (q - k))
        self.assertEqual(
            variant.source,
            '$import "attention.tile"\n\nparam REFERENCE : name = $(BYTES ? "first" : "unbiased")\n\n'
            "func.func @score(%s: f32, %b: i32, %h: i32, %q: i32, %k: i32) -> f32 {\n"
            "  %t1 = arith.subi %q, %k : i32\n"
            "  %t2 = arith.constant 2 : i32\n"
            "  %t3 = arith.muli %t2, %t1 : i32\n"
            "  %t4 = arith.sitofp %t3 : i32 to f32\n"
            "  %t5 = arith.subf %s, %t4 : f32\n"
            "  func.return %t5 : f32\n"
            "}\n",
        )

    def test_constants(self):
        """As f32 has them."""
        variant = T.Variant(score=lambda s, b, h, q, k: T.where(k < q, -1e39, 0.1 * T.where(k == q, s, math.nan)))
        for text in ("0xFF800000 : f32", "1.000000000e-01 : f32", "0x7FC00000 : f32"):
            self.assertIn(f"arith.constant {text}", variant.source)

    def test_gradients(self):
        variant = T.Variant(score=lambda s, b, h, q, k, cap: cap * T.tanh(s / cap), mask=masks.window(64), cap=float)
        self.assertIn('$import "attention_gradients_fixed.tile"', variant.write_gradients(fixed=True))
        kernel = variant.compile_gradients(D=64, DLSE=True, image="ptx")
        self.assertEqual(kernel._names[:7] + kernel._names[-2:], ["q", "k", "v", "o", "do", "lse", "dlse", "scale", "cap"])

    def test_learned_views(self):
        """Each function has the gradients of what it asks for itself."""
        variant = T.Variant(score=lambda s, b, h, q, k, a: s * a[h], sink=lambda b, h, a, x: a[h] + x[h], a=("H",), x=("H",))
        text = variant.write_gradients(learned=("x", "a"))
        for part in ('@score, tile.with_respect_to = ["a"]', '@sink, tile.with_respect_to = ["x", "a"]'):
            self.assertIn(part, text)
        self.assertNotIn("@argument_gradients", text)
        self.assertNotIn("@sink_gradients", variant.write_gradients(learned=()))
        names = variant.gradients_program(learned=("x", "a"), D=64).names
        self.assertEqual(set(names[names.index("scale") + 1 :]), {"x", "a", "dx", "da"})
        self.assertEqual(_places.list_exact(T.Variant(score=lambda s, b, h, q, k, a: s + a[h, q, k], a=("H", "SQ", "SK")).source, "h"), ("a",))

    def test_factors(self):
        """What only a factor of rows asks for is learned where dQ is converted, whatever else a score adds."""
        forms = (
            (lambda s, b, h, q, k, a, c: s * a[h], ("head", True, False, 128)),
            (lambda s, b, h, q, k, a, c: a[h] * s * c[q] - s / c[q] + q, ("row", True, False, 128)),
            (lambda s, b, h, q, k, a, c: T.where(q > 3, -s, s * a[h]) + abs(q - k), ("row", True, False, 128)),
            (lambda s, b, h, q, k, a, c: s * a[h] - c[k], ("head", True, True, 128)),
            (lambda s, b, h, q, k, a, c: (s + c[k]) * a[h], ("head", False, True, 128)),
            (lambda s, b, h, q, k, a, c: s * a[h] * c[k], ("any", False, True, 64)),
            (lambda s, b, h, q, k, a, c: s + a[h] * (q - k), ("head", False, True, 64)),
            (lambda s, b, h, q, k, a, c: T.tanh(s) * a[h], ("any", False, True, 64)),
            (lambda s, b, h, q, k, a, c: T.where(s > 0, s, s * a[h]), ("any", False, True, 64)),
        )
        for number, (score, (derivative, has_factor, has_others, rows)) in enumerate(forms):
            variant = T.Variant(score=score, a=("H",), c=("SQ",))
            text = variant.write_gradients(learned=variant.learnable)
            with self.subTest(number):
                self.assertIn(f'param DERIVATIVE : name = "{derivative}"', text)
                self.assertEqual(("@factor_gradients" in text, "@argument_gradients" in text), (has_factor, has_others))
                self.assertEqual(("FACTORS" in text, "LEARNED" in text), (has_factor, has_others))
                self.assertEqual(T.resolve(text, D=64)["parameters"]["GM"]["value"], str(rows))
        self.assertIn('param DERIVATIVE : name = "head"', T.Variant(mask=masks.causal).write_gradients())

    def test_instrument(self):
        variant = T.Variant(mask=masks.causal)
        stages = variant.compile(D=64, image="ptx", instrument="timeline,blocks=2").description["timeline"]["stages"]
        self.assertIn("q x k", [stage["label"] for stage in stages])
        self.assertNotIn("timeline", variant.compile(D=64, image="ptx").description)
        with self.assertRaisesRegex(T.CompileError, "the first word is what is recorded"):
            variant.compile(D=64, image="ptx", instrument="clock")

    def test_explain(self):
        text = T.Variant(mask=masks.window(64)).explain(D=64)
        self.assertIn("the mask leaves out iterations at both ends", text)
        self.assertRegex(text, r"(?s)remark: speculates: .*\nfind_fallbacks\(")
        exact = T.Variant(mask=masks.window(64)).explain(D=64, schedule="speculate=false")
        self.assertIn("exact region alone: speculate = false", exact)
        self.assertNotIn("find_fallbacks", exact)

    def test_another_process_asks_no_compiler(self):
        program = """if True:
            import tessera
            from tessera import masks; from tessera._attention import _gradient_kernels, _variants; from tessera._compiler import _compile

            variant = tessera.Variant(mask=lambda b, h, q, k, of: (of[b, q] == of[b, k]) & (q >= k), of=("B", "SK"))
            found = _variants.find_variant(variant.source, "bf16", 64, 64)
            shape = {"B": 1, "H": 1, "SQ": 4096, "HK": 1, "SK": 4096}
            print(found._find_class(shape), 'VISITS : name = "list"' in variant.source, _compile._compiler.cache_info().currsize)
        """
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "TESSERA_CACHE_DIR": cache}
            run = [sys.executable, "-c", program]
            said = [subprocess.check_output(run, env=environment, text=True).split() for _ in range(2)]
        self.assertEqual(said, [["few-medium", "True", "1"], ["few-medium", "True", "0"]])


class VisitsTest(unittest.TestCase):
    """Whether comparisons say which blocks a mask leaves, or a list has to."""

    def form(self, mask, **arguments):
        source = T.Variant(mask=mask, **arguments).source
        lists = re.findall(r'^param LISTS : name = "(.*)"$', source, re.M)
        self.assertEqual('param VISITS : name = "list"' in source, bool(lists))
        return lists[0] if lists else "interval"

    def test_forms(self):
        self.assertEqual(self.form(masks.causal), "interval")
        self.assertEqual(self.form(masks.window(5) & masks.prefix), "interval")
        self.assertEqual(self.form(masks.causal | masks.prefix), "interval")
        self.assertEqual(self.form(lambda b, h, q, k: (k < 4) | ((k <= q) & (q - k < 9))), "one")
        self.assertEqual(self.form(lambda b, h, q, k: (k % 8 == 0) | (q % 8 == 1)), "one")
        self.assertEqual(self.form(lambda b, h, q, k: abs(q - k) > h), "head")
        self.assertEqual(self.form(lambda b, h, q, k, n: n[q] == n[k], n=("SK",)), "one")

    def test_chunks(self):
        """Quotients by constants grow with what is divided."""
        for chunks in (
            lambda b, h, q, k: q // 100 == k // 100,
            lambda b, h, q, k: k // 64 <= q // 64,
            lambda b, h, q, k: (k >= q // 64 * 64) & (k <= q),
            lambda b, h, q, k: k >= q - q % 64,
            lambda b, h, q, k: (q >> 6 == k >> 6) & (q >= k),
            lambda b, h, q, k, n: (q + n) // 64 >= k // 64,
        ):
            self.assertEqual(self.form(chunks, **({"n": int} if "n" in chunks.__code__.co_varnames else {})), "interval")
        for remainders in (lambda b, h, q, k: q % 64 == k % 64, lambda b, h, q, k: k // 64 != q // 64):
            self.assertEqual(self.form(remainders), "one")

    def test_from_the_end(self):
        """Blocks are counted from the last key where a mask compares keys with lengths."""
        for mask, named, ends in (
            (lambda b, h, q, k, n: k < n, {"n": int}, True),
            (lambda b, h, q, k, n: (q - k < 9) & ~(k - 3 >= n), {"n": int}, True),
            (lambda b, h, q, k, n: (k <= q) & (q - k < n), {"n": int}, False),
            (masks.causal, {}, False),
            (lambda b, h, q, k, n: n[q] == n[k], {"n": ("SK",)}, False),
        ):
            self.assertEqual('param ALIGN : name = "end"' in T.Variant(mask=mask, **named).source, ends)

    def functions(self, mask):
        """What the functions of a mask compare, by name."""
        source = T.Variant(mask=mask, n=("SK",)).source
        found = re.findall(r"func\.func @(\w+)\(.*?\n}", source, re.S)
        bodies = re.findall(r"func\.func @\w+\((.*?)\n}", source, re.S)
        compared = [sorted(re.findall(r"arith\.cmp[if] (\w+)", body)) for body in bodies]
        self.assertEqual("param BY_DATA : bool = true" in source, "mask_by_data" in found)
        return dict(zip(found, compared))

    def test_two_parts(self):
        """What a mask of a list loads for is apart from what it says by places."""
        both = self.functions(lambda b, h, q, k, n: (n[q] == n[k]) & (q >= k) & (n[k] < 5.0) & (k != 7))
        self.assertEqual(both, {"mask": ["ne", "sge"], "mask_by_data": ["oeq", "olt"]})
        self.assertEqual(self.functions(lambda b, h, q, k, n: n[q] == n[k]), {"mask_by_data": ["oeq"]})
        either = self.functions(lambda b, h, q, k, n: (n[q] == n[k]) | (q >= k))
        self.assertEqual(either, {"mask_by_data": ["oeq", "sge"]})
        self.assertEqual(self.functions(lambda b, h, q, k, n: q % 8 == k % 8), {"mask": ["eq"]})

    def test_place_in_parts(self):
        """Problems of either part have the line of the function."""
        mask = lambda b, h, q, k, n: (n[q] == n[k]) & (q >= k)  # noqa: E731
        variant = T.Variant(mask=mask, n=("SK",))
        lines = variant.source.splitlines()
        asked = [place for line, place in zip(lines, variant._places) if "arith.cmp" in line]
        self.assertEqual(len(asked), 2)
        for place in asked:
            self.assertRegex(place, "variants.py:[0-9]+: ")
        self.assertEqual(self.form(lambda b, h, q, k, n: n[b, q] == n[b, k], n=("B", "SK")), "batch")

    def test_rows(self):
        """Comparisons with integers that are loaded for each query bound the blocks, and tiles leave registers for them."""

        def packed(b, h, q, k):
            starts = _views.View(_trace.current(), "starts", ("SK",), "i32")
            return (starts[q] <= k) & (k <= q)

        self.assertEqual(self.form(packed), "interval")
        self.assertIn('param LOADS : name = "row"', T.Variant(mask=packed).source)
        self.assertNotIn("param LOADS", T.Variant(mask=masks.causal).source)
        self.assertEqual(self.form(lambda b, h, q, k, n: n[q] <= k, n=("SQ",)), "one")  # Of floats.

    def test_pairs(self):
        """Scores that load for each query and key have the tiles of variants/bias.tile; those that gather do not."""

        def biased(element):
            def score(s, b, h, q, k):
                return s + _views.View(_trace.current(), "bias", ("H", "SQ", "SK"), element)[h, q, k]

            return T.Variant(score=score, mask=masks.causal)

        bias = os.path.join(os.path.dirname(_library.find_source("attention")), "variants", "bias.tile")
        for element, d in itertools.product(("f32", "bf16", "f16"), (64, 96, 128, 192, 256)):
            found = biased(element).program(D=d).parameters
            expected = Program(bias, D=d, BIAS=element).parameters
            self.assertEqual((found["BM"], found["BN"]), (expected["BM"], expected["BN"]))
        for score in (lambda s, b, h, q, k, n: s + n[k, q], lambda s, b, h, q, k, n: s + n[q, k + 1]):
            self.assertNotIn("pair", T.Variant(score=score, n=("SQ", "SK")).source)

    def test_distances(self):
        """Scores that load by a distance, or by what is loaded by one, have the tiles of variants/relative.tile."""

        def bucket(s, b, h, q, k, n):
            return s + n[h, _views.View(_trace.current(), "buckets", ("SK",), "i32")[q - k]]

        relative = os.path.join(os.path.dirname(_library.find_source("attention")), "variants", "relative.tile")
        for d, score in itertools.product((64, 96, 128, 192, 256), (lambda s, b, h, q, k, n: s + n[h, k - q], bucket)):
            variant = T.Variant(score=score, mask=masks.causal, n=("H", "DISTANCES"))
            found = variant.program(D=d).parameters
            expected = Program(relative, D=d).parameters
            self.assertEqual((found["BM"], found["BN"]), (expected["BM"], expected["BN"]))
            variant.gradients_program(learned=("n",), D=d)
        for score in (lambda s, b, h, q, k, n: s + n[h, q] * n[h, k], lambda s, b, h, q, k, n: s + n[h, 0] * (q - k)):
            self.assertNotIn("param LOADS", T.Variant(score=score, n=("H", "SK")).source)

    def test_numbers_of_keys(self):
        """Scores that load a number of each key have it through a pipe, and with 64 columns three consumers."""

        def chosen(score, n, **parameters):
            found = tessera.resolve(T.Variant(score=score, mask=masks.causal, n=n).source, **parameters)
            tile = [int(found["parameters"][name]["value"]) for name in ("BM", "BN")]
            return tile, "producer = all" in json.dumps(found["schedules"])

        def gate(s, b, h, q, k, n):
            return s + n[b, h, q] - n[b, h, k]

        for score, n in ((gate, ("B", "H", "SK")), (lambda s, b, h, q, k, n: s * n[k], ("SK",))):
            self.assertEqual(chosen(score, n, D=64), ([192, 128], True))
            self.assertEqual(chosen(score, n, D=128), ([128, 128], True))
            self.assertEqual(chosen(score, n, D=256)[1], False)
        for score in (lambda s, b, h, q, k, n: s * n[q], lambda s, b, h, q, k, n: s * n[k // 2], lambda s, b, h, q, k, n: s * n[0]):
            self.assertEqual(chosen(score, ("SK",), D=64), ([256, 64], False))
        T.Variant(score=gate, mask=masks.causal, n=("B", "H", "SK")).gradients_program(learned=("n",), D=64)

    def test_references(self):
        """What exponents refer to where scores add what depends on the key, and which block comes first: by the mask and the type."""

        def chosen(mask, element="bf16", **functions):
            found = T.Variant(mask=mask, **functions).program(T=element).parameters
            return found["REFERENCE"], found["BACKWARD"]

        def packed(b, h, q, k):
            starts = _views.View(_trace.current(), "starts", ("SK",), "i32")
            return (starts[q] <= k) & (k <= q)

        def ends(b, h, q, k):
            return k < _views.View(_trace.current(), "ends", ("SQ",), "i32")[q]

        alibi = lambda s, b, h, q, k: s - abs(q - k)  # noqa: E731
        following = (masks.causal, masks.window(64, 0), packed, lambda b, h, q, k: (k <= q) | (k < 7), lambda b, h, q, k: 2 * k <= q,
                     lambda b, h, q, k: q // 8 == k // 8)  # fmt: skip
        for mask in following:
            self.assertEqual(chosen(mask, score=alibi), ("unbiased", True))
            self.assertEqual(chosen(mask, "f16", score=alibi, visits="interval"), ("first", True))
            self.assertEqual(chosen(mask, "f8E4M3FN", score=alibi), ("first", True))
            self.assertEqual(chosen(mask, "f16", score=alibi, visits="list"), ("first", False))
            self.assertEqual(chosen(mask), ("unbiased", False))
            self.assertEqual(chosen(mask, "f16"), ("first", False))
            self.assertEqual(chosen(mask, score=lambda s, b, h, q, k: 3.0 * s), ("first", False))
        others = (None, ends, lambda b, h, q, k: k < 7 * h, lambda b, h, q, k: k >= q, lambda b, h, q, k: q < 9)
        for mask in others:
            self.assertEqual(chosen(mask, score=alibi), ("unbiased", False))
            self.assertEqual(chosen(mask, "f16", score=alibi), ("unbiased", False))
            self.assertEqual(chosen(mask, "f8E4M3FN", score=alibi), ("first", False))

    def test_adds_by_key(self):
        """What a score adds by the place of a key may favour near ones; what it multiplies with does not."""

        def adds(score, **arguments):
            return T.Variant(score=score, **arguments).program().parameters["REFERENCE"] == "unbiased"

        gates = {"g": ("B", "H", "SK")}
        self.assertTrue(adds(lambda s, b, h, q, k, g: s + g[b, h, q] - g[b, h, k], **gates))
        self.assertTrue(adds(lambda s, b, h, q, k: T.where(q - k < 9, s + 1.0, s)))
        self.assertTrue(adds(lambda s, b, h, q, k: T.maximum(s, -1.0 * (q - k))))
        self.assertFalse(adds(lambda s, b, h, q, k, g: s * g[b, h, q] * g[b, h, k] / 3.0, **gates))
        self.assertFalse(adds(lambda s, b, h, q, k, g: -s * g[b, h, k] + T.tanh(s), **gates))
        self.assertFalse(adds(lambda s, b, h, q, k: T.where(q - k < 9, s, s * 2.0)))
        self.assertFalse(adds(lambda s, b, h, q, k, g: s + g[b, h, q], **gates))
        self.assertFalse(adds(lambda s, b, h, q, k, cap: cap * T.tanh(s / cap), cap=float))

    def test_given(self):
        self.assertEqual(self.form(masks.causal, visits="list"), "one")
        self.assertEqual(self.form(lambda b, h, q, k: q % 8 == k % 8, visits="interval"), "interval")
        with self.assertRaisesRegex(ValueError, "visits is 'lists'; it is 'interval', 'list' or None"):
            T.Variant(mask=masks.causal, visits="lists")


class RefusalTest(unittest.TestCase):
    def refuse(self, text, score=None, mask=None, error=T.TraceError, **arguments):
        with self.assertRaises(error) as caught:
            T.Variant(score=score, mask=mask, **arguments)
        self.assertIn(text, str(caught.exception))
        if error is T.TraceError:
            self.assertIn("variants.py:", str(caught.exception))

    def test_conditions_and_loops(self):
        self.refuse("a condition on a traced value", lambda s, b, h, q, k: s if q > k else 0)
        self.refuse("a condition on a traced value", mask=lambda b, h, q, k: q > k and q < 9)
        self.refuse("a traced value as a Python integer", lambda s, b, h, q, k: s + sum(i for i in range(q)))
        self.refuse("a traced value as a Python integer", lambda s, b, h, q, k: s + [1, 2][h])
        self.refuse("a loop over a traced value", lambda s, b, h, q, k: s + sum(x for x in q))

    def test_values(self):
        self.refuse("an index on a traced value", lambda s, b, h, q, k: s[0])
        self.refuse("a traced value as a Python float", lambda s, b, h, q, k: math.tanh(s))
        self.refuse("a traced value has no 'gamma'", lambda s, b, h, q, k: s.gamma())
        self.refuse("a list meets a traced value", lambda s, b, h, q, k: s + [1])
        self.refuse("the score says something else each time", lambda s, b, h, q, k: s + random.random())
        self.refuse("the mask says something else each time", mask=lambda b, h, q, k, n=itertools.count(): q > next(n))
        self.refuse("does not fit in 32 bits", lambda s, b, h, q, k: s + (q + 2**31))
        self.refuse("//, %, << and >> take integers", lambda s, b, h, q, k: s // 2)
        self.refuse("&, | and ^ combine conditions", lambda s, b, h, q, k: s & q)
        self.refuse("gives an i32; a mask is a condition", mask=lambda b, h, q, k: q - k)

    def test_runs(self):
        """A traced value belongs to one run of one function; each run says the same."""
        kept, signs = [], itertools.cycle([1, -1])

        @functools.lru_cache(maxsize=None)
        def ahead():
            return T.length("SK") - T.length("SQ")

        def keep(s, b, h, q, k):
            kept.append(T.exp(s))
            return s

        def nested(s, b, h, q, k):
            return s + len(T.Variant(lambda s, b, h, q, k: s * 2).learnable) + T.length("SK")

        another = "a traced value of another run"
        for _ in range(2):
            self.refuse(another, lambda s, b, h, q, k: s + ahead())
        self.refuse(another, lambda s, b, h, q, k: s - (abs((q - k) * (q - k) * 3) + ahead()) * 0.001)
        self.refuse(another, mask=lambda b, h, q, k: k <= q + ahead())
        T.Variant(keep)
        self.refuse(another, lambda s, b, h, q, k: kept[0])
        self.refuse(another, lambda s, b, h, q, k: T.tanh(kept[0]))
        self.refuse(another, lambda s, b, h, q, k: T.where(q > k, s, kept[0]))
        with self.assertRaisesRegex(T.TraceError, f"variants.py:[0-9]+: {another}"):
            kept[0] + 1
        self.refuse("the score says something else each time", lambda s, b, h, q, k: s * next(signs))
        T.Variant(nested)

    def test_exceptions(self):
        """What Python refuses has the line too."""
        self.refuse("@ of traced values, which are numbers", lambda s, b, h, q, k: s + q @ k)
        self.refuse("a NoneType meets a traced value", lambda s, b, h, q, k: None + s)
        self.refuse("TypeError: unsupported operand type(s) for divmod()", lambda s, b, h, q, k: divmod(s, 2)[0])
        self.refuse("IndexError: list index out of range", lambda s, b, h, q, k: s + [1][q is not None])
        self.refuse("KeyError: 'a'", lambda s, b, h, q, k: s + {}["a"])

    def test_arguments(self):
        self.refuse("is used without an index", lambda s, b, h, q, k, x: s + x, x=("H",))
        self.refuse("has 1 dimensions (H), got 2 indices", lambda s, b, h, q, k, x: x[h, q], x=("H",))
        self.refuse("an index is an integer, got f32", lambda s, b, h, q, k, x: x[s], x=("H",))
        self.refuse("it is float, int, or the dimensions", lambda s, b, h, q, k, x: s, error=TypeError, x="H")
        self.refuse("a score, a mask or a sink", error=ValueError)
        with self.assertRaises(ValueError):
            T.Mask(lambda b, h, q, k, n: k < n, n=int) & T.Mask(lambda b, h, q, k, n: k < n, n=float)

    def test_what_the_compiler_refuses(self):
        variant = T.Variant(score=lambda s, b, h, q, k, x: s + x[h, 7], x=("H", 4))
        with self.assertRaisesRegex(T.CompileError, "has the index 7 in dimension 1"):
            variant.program()


class SmallerTilesTest(unittest.TestCase):
    """Which tiles functions take that need more registers than the usual ones leave."""

    TILES = {
        64: ((192, 96), (128, 96)), 96: ((192, 80), (128, 96)), 128: ((192, 64), (128, 80)), 192: ((128, 64),), 256: ((128, 48),),
    }  # fmt: skip

    def test_each_in_order(self):
        for size, tiles in self.TILES.items():
            for source in (T.Variant(mask=masks.causal).source, T.Variant(mask=lambda b, h, q, k: q % 8 == k % 8).source):
                found = T.resolve(source, D=size)["instead"]
                self.assertEqual([(int(values["BM"]), int(values["BN"])) for values in found], [*tiles])
                self.assertNotIn("instead", T.resolve(source, D=size, BM=128))

    def test_others(self):
        """The derivative of a score waits where it is known anyway; gradients in a fixed order take fewer keys a step."""
        variant = T.Variant(score=lambda s, b, h, q, k, n: T.tanh(s) + n[h], n=("H",))
        for learned, waits in (((), ["products"]), (("n",), ["weights", "products"])):
            found = T.resolve(variant.write_gradients(learned=learned), D=128)
            self.assertEqual([values["WAITS"] for values in found["instead"]], waits)
            self.assertEqual(found["parameters"]["WAITS"]["value"], "derivatives" if learned else "weights")
        for size, keys, queries in ((64, "32", []), (128, "32", [{"GM": "48"}, {"GM": "48", "GQN": "32"}]), (192, "16", [])):
            found = T.resolve(variant.write_gradients(fixed=True), D=size)["instead"]
            self.assertEqual(found, [{"GQN": keys}, *queries, {"GM": "32", "GQN": keys}, {"GM": "16", "GQN": "16"}])


unittest.main()
