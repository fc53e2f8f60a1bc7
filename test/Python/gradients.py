# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %python %s
"""Which kernels compute the gradients of an attention: forms by widths, masks, groups of heads, order of sums and length."""

import itertools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import unittest.mock

import tessera as T
from tessera._attention import _gradient_kernels, _variants
from tessera._compiler import _choices
from tessera._core import _library
from tessera._functions import _places
from tessera._compiler._program import Program


class GradientsTest(unittest.TestCase):
    """What the gradients of groups of heads are."""

    def find(self, mask, d, softcap=0.0, alibi=False, **options):
        text = _variants.name_variant(mask, softcap, alibi)
        source, parameters, _ = _gradient_kernels.describe_gradients(text, "bf16", d, d, **options)
        return Program(source, **parameters).parameters

    def test_groups(self):
        """Chunks of queries under a causal mask, shorter ones in a fixed order, and pairs of blocks at d = 128."""
        for d, chunk, together in ((64, 0, 1), (96, 8, 1), (128, 8, 2), (192, 8, 2), (256, 8, 2)):
            for group in (2, 4, 8):
                found = self.find("causal", d, group=group)
                self.assertEqual((found["CHUNK"], found["TOGETHER"]), (chunk, together), d)
                self.assertEqual(found["GROUP"], 1 if d == 64 else 2, (d, group))
        for d, chunk, together in ((64, 1, 1), (96, 4, 1), (128, 1, 2), (192, 4, 2), (256, 4, 2)):
            found = self.find("causal", d, group=8, fixed=True)
            self.assertEqual((found["CHUNK"], found["TOGETHER"]), (chunk, together), d)

    def test_group(self):
        """How many query heads share a key head: one, two, up to four, and more."""
        for heads, group in ((1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (16, 8)):
            self.assertEqual(_gradient_kernels.find_group(4 * heads, 4), group, heads)
        self.assertEqual(_gradient_kernels.find_group(0, 0), 1)

    def test_few_heads_in_a_fixed_order(self):
        """With 192 columns two query heads a key head have the kernel of single heads, padded ones too, and up to four go with
        each block of queries; others are alike."""
        for d, group, least, chunk in (
            (192, 2, 1, 0), (160, 2, 1, 0), (192, 4, 4, 1), (160, 4, 4, 1), (192, 8, 8, 4), (256, 4, 2, 4), (128, 4, 2, 1),
        ):  # fmt: skip
            found = self.find("causal", d, group=group, fixed=True)
            self.assertEqual((found["GROUP"], found["CHUNK"]), (least, chunk), (d, group))
        for group, least, chunk in ((1, 1, 0), (2, 2, 0), (4, 4, 1), (8, 8, 4)):
            _, parameters, _ = _gradient_kernels.describe_gradients("attention_fwd CAUSAL=true", "bf16", 192, 128, fixed=True, group=group)
            found = Program(_library.find_source("attention_bwd"), **parameters).parameters
            self.assertEqual((found["GROUP"], found["CHUNK"]), (least, chunk), group)

    def test_no_factors_beside_calls(self):
        """A function that is called may ask for what the factor asks for."""
        source = """
func.func @more(%s: f32) -> f32 { func.return %s : f32 }
func.func @score(%s: f32, %b: i32, %h: i32, %q: i32, %k: i32) -> f32 {
  %view = tile.argument "slopes" : !tile.view<[H], f32>
  %at = arith.index_cast %h : i32 to index
  %slope = tile.load %view[%at] : !tile.view<[H], f32> -> f32
  %product = arith.mulf %s, %slope : f32
CALLED  func.return %result : f32
}
"""
        for called, has_factor in (("  %result = arith.negf %product : f32\n", True),
                                   ("  %result = func.call @more(%product) : (f32) -> f32\n", False)):  # fmt: skip
            score = _choices.describe_functions(source.replace("CALLED", called))["score"]
            self.assertEqual(score["result"]["factor"] is not None, has_factor)

    def test_places(self):
        """Where functions look at the batch and the head, and which views have gradients of one order, as the compiler says."""
        for score, views, places, free, exact in (
            (lambda s, b, h, q, k, t: s + t[b, h, q], {"t": ("B", "H", "SQ")}, {"t": ("b", "h", None)}, "", ("t",)),
            (lambda s, b, h, q, k, t: s + t[h + 1], {"t": ("N",)}, {"t": (None,)}, "h", ()),
            (lambda s, b, h, q, k, t: s + t[0, q] + t[1, q], {"t": (2, "SQ")}, {"t": (None, None)}, "", ()),
            (lambda s, b, h, q, k, t: s * T.length("H") + t[b, b], {"t": ("B", "N")}, {"t": (None, None)}, "bh", ()),
        ):
            source = T.Variant(score=score, **views).source
            self.assertEqual(_places.read(source), (places, frozenset(free)))
            self.assertEqual(_places.list_exact(source, "bh"), exact)

    def test_groups_that_are_alike(self):
        """Groups that are taken for one kernel have one schedule in the source."""
        schedule = re.compile(r"schedule #tile\.schedule<[^>]*>")
        for name, options in (("attention_bwd", {"CAUSAL": "true"}), ("attention_bwd", {"CAUSAL": "true", "FIXED": "true"}),
                              ("attention_gradients", {})):  # fmt: skip
            source = _library.find_source(name)
            for d, dv in itertools.product((96, 128, 192), (128, 192, 256)):
                found, sizes = {}, {**options, "D": d, "DV": dv}
                for group in _gradient_kernels.GROUPS:
                    parameters, least = {**sizes, "GROUP": group}, _gradient_kernels._find_least_group(source, sizes, group)
                    command = ["tessera", "compile", source, "--emit", "tile", "-o", "-"]
                    command += [f"-D{name}={value}" for name, value in parameters.items()]
                    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                    found[group] = schedule.findall(text)
                    self.assertEqual(found[group], found[least], (name, parameters))

    def test_groups_of_functions(self):
        """Pairs of blocks under a causal mask at d = 96 and 128; wider ones are pairs anyway."""
        for d, groups, others in ((64, 1, 1), (96, 2, 1), (128, 2, 1), (192, 2, 2), (256, 2, 2)):
            for scores in ({"softcap": 3.0}, {"alibi": True}, {"softcap": 3.0, "alibi": True}):
                self.assertEqual(self.find("causal", d, **scores, group=8)["TOGETHER"], groups, d)
                self.assertEqual(self.find("causal", d, **scores)["TOGETHER"], others, d)

    def test_others(self):
        """One kernel for groups and others where the source does the same."""
        for mask, d, options in (("none", 128, {}), ("causal", 64, {}), ("none", 128, {"fixed": True})):
            self.assertEqual(self.find(mask, d, group=8, **options), self.find(mask, d, **options))
        for mask, options in (("none", {"softcap": 3.0}), ("window", {}), ("window", {"alibi": True}),
                              ("causal", {"softcap": 3.0, "fixed": True})):  # fmt: skip
            self.assertEqual(self.find(mask, 128, group=8, **options), self.find(mask, 128, **options))
        self.assertEqual(self.find("causal", 128)["CHUNK"], 0)
        with self.assertRaisesRegex(ValueError, "there are no gradients of 'gemm'; there are of attention_fwd"):
            _gradient_kernels.describe_gradients("gemm BM=64", "bf16", 64, 64)

    def find_form(self, mask, d, dv, shape, **options):
        text = _variants.name_variant(mask, 0.0, False)
        batch, heads, rows, keys = shape
        extents = _gradient_kernels.find_sizes(batch, heads, rows, d, heads, keys, dv)[-1]
        source = _gradient_kernels.describe_gradients(text, "bf16", d, dv, extents=extents, **options)[0]
        return "seven" if pathlib.Path(source).name == "attention_bwd_deterministic.tile" else "five"

    def test_few_blocks(self):
        """Query heads of a group are in parts where their keys make few blocks: in a fixed order of sums of equal numbers of heads."""
        few, some, many = (71, 2048, 1, 2048), (28, 4096, 4, 4096), (64, 4096, 8, 4096)
        for mask, d, call, options, parts in (
            ("none", 64, few, {}, 8), ("none", 64, some, {}, 1), ("causal", 128, some, {}, 2), ("causal", 64, many, {}, 1),
            ("causal", 64, few, {}, 16), ("causal", 64, few, {"fixed": True}, 1),
            ("causal", 64, (32, 2048, 4, 2048), {"fixed": True}, 4), ("none", 64, (48, 1024, 8, 1024), {"fixed": True}, 2),
            ("causal", 64, (12, 2048, 1, 2048), {"fixed": True}, 4), ("causal", 64, (24, 2048, 1, 2048), {"fixed": True}, 8),
            ("none", 256, few, {}, 1), ("none", 64, (8, 4096, 8, 128), {}, 1), ("none", 64, (16, 897, 8, 1), {}, 2),
            ("none", 64, (16, 896, 8, 1), {}, 1),
            ("none", 64, (0, 1, 0, 1), {}, 1), ("none", 64, (71, 0, 1, 20), {}, 1),
        ):  # fmt: skip
            heads, rows, kv_heads, keys = call
            extents = _gradient_kernels.find_sizes(1, heads, rows, d, kv_heads, keys, d)[-1]
            found = self.find(mask, d, group=8, extents=extents, **options)
            self.assertEqual(found["PARTS"], parts, (mask, d, call, options))

    def test_few_blocks_of_functions(self):
        """The same of functions, of named variants and of sources, but in a fixed order; lists of visited blocks are as causal masks."""
        few = _gradient_kernels.find_sizes(1, 28, 4096, 128, 4, 4096, 128)
        for mask, parts in (("causal", 2), ("window", 1)):
            self.assertEqual(self.find(mask, 128, softcap=3.0, extents=few[-1])["PARTS"], parts, mask)
        few = _gradient_kernels.find_sizes(1, 28, 2048, 128, 4, 2048, 128)
        self.assertEqual(self.find("window", 128, extents=few[-1])["PARTS"], 2)
        distant = T.Variant(score=lambda s, b, h, q, k: s - (q - k) * 0.5)
        causal = T.Variant(score=lambda s, b, h, q, k: s - (q - k) * 0.5, mask=lambda b, h, q, k: q >= k)
        for variant, fixed, parts in ((distant, False, 2), (causal, False, 4), (causal, True, 1)):
            found = dict(_gradient_kernels.choose_of_source(T.compile, variant.source, (), fixed, "bf16", few, False))
            self.assertEqual(found.get("PARTS", 1), parts, variant.source)
        template = _library.find_source("attention_gradients")
        for trend, parts in (("increasing", 4), ("none", 2)):
            listed = _choices.choose_values(template, few[-1], None, (("VISITS", "list"), ("TREND", trend)))
            self.assertEqual(listed["PARTS"], parts, trend)

    def test_short_blocks(self):
        """Of a call with few tokens rules choose the schedule too, but not of a group's pairs."""
        for mask, heads, keys, schedule in (
            ("causal", 16, 512, "persistent = none"), ("causal", 16, 1024, "section = 1, outer_stages = [2, 1]"), ("causal", 16, 2048, None),
            ("causal", 2, 512, None), ("none", 16, 1024, "outer_stages = [2, 1]"), ("none", 16, 2048, None),
        ):  # fmt: skip
            group, extents = 16 // heads, _gradient_kernels.find_sizes(32, 16, keys, 128, heads, keys, 128)[-1]
            text = _variants.name_variant(mask, 0.0, False)
            found = _gradient_kernels.describe_gradients(text, "bf16", 128, 128, group=group, extents=extents)[1]
            self.assertEqual(found.get("schedule"), schedule and f"attention_bwd_gradients:{schedule}", (mask, heads, keys))

    def test_short(self):
        """The form by the length, for (mask, d, dv), up to so many keys: in any order, in a fixed one."""
        for mask, d, dv, seven, seven_of_fixed in (
            ("none", 64, 64, 0, 0), ("causal", 64, 64, 0, 0), ("causal", 96, 96, 0, 512), ("none", 128, 128, 0, 512),
            ("causal", 128, 128, 0, 512), ("none", 192, 128, 256, 512), ("causal", 192, 128, 512, 1024), ("none", 64, 128, 0, None),
            ("none", 256, 256, 256, 1024), ("causal", 256, 256, 512, 2048),
        ):  # fmt: skip
            for fixed, last in ((False, seven), (True, seven_of_fixed)):
                for keys in (1, 256, 512, 1024, 2048, 4096):
                    expected = "seven" if last is None or keys <= last else "five"
                    shape = 1 << 16, 1, keys, keys
                    self.assertEqual(self.find_form(mask, d, dv, shape, fixed=fixed), expected, (mask, d, dv, fixed, keys))

    def test_ranges(self):
        """Extents that compare alike with what rules ask for have one answer, and all answers for a source are in one file."""
        source, parameters = _library.find_source("attention_bwd"), {"D": 96, "CAUSAL": True}
        with tempfile.TemporaryDirectory() as place, unittest.mock.patch.dict(os.environ, {"TESSERA_CACHE_DIR": place}):
            with unittest.mock.patch.object(_choices, "resolve", wraps=_choices.resolve) as resolve:
                for heads, keys in itertools.product((1, 8, 1 << 16), range(64, 4096, 448)):
                    extents = _gradient_kernels.find_sizes(1, heads, keys, 96, heads, keys, 96)[-1]
                    found = _choices.choose(source, parameters, extents)
                    expected = T.resolve(source, shape=dict(extents), **parameters)
                    self.assertEqual({**found, "extents": None}, {**expected, "extents": None}, extents)
            self.assertLess(resolve.call_count, 8)
            self.assertEqual(len([path for path in pathlib.Path(place).rglob("*") if path.is_file()]), 1)

    def test_rules_of_a_user(self):
        """A user's rules choose the form and what is free, and the resolver says where that comes from."""
        rows = [{"source": "attention_bwd.tile", "when": ["D == 64"], "take": {"form": "attention_bwd_deterministic.tile"}},
                {"source": "attention_bwd.tile", "extents": ["SQ > 4096"], "take": {"GN": 64}}]  # fmt: skip
        source = _library.find_source("attention_bwd")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"format": "tessera-rules", "version": 1, "rules": rows}, file)
            file.flush()
            with unittest.mock.patch.dict(os.environ, {"TESSERA_RULES": file.name}):
                for d, form in ((64, "seven"), (128, "five")):
                    self.assertEqual(self.find_form("none", d, d, (1, 8, 4096, 4096)), form)
            shape = {"B": 1, "H": 8, "HK": 8, "SQ": 8192, "SK": 8192}
            chosen = T.resolve(source, rules=file.name, shape=shape)
            self.assertEqual(chosen["parameters"]["GN"], {"value": "64", "origin": f"{file.name}:1", "allowed": ["64", "128", "192", "256"]})
            self.assertNotIn("form", chosen)
            self.assertEqual(T.resolve(source, rules=file.name, D=64)["form"], {"value": rows[0]["take"]["form"], "origin": f"{file.name}:1"})
        chosen = T.resolve(source, D=128, CAUSAL=True, GROUP=2)
        self.assertEqual(chosen["parameters"]["D"], {"value": "128", "origin": "given", "allowed": [*map(str, _variants.WIDTHS)]})
        self.assertEqual(chosen["parameters"]["T"], {"value": "bf16", "origin": "default", "allowed": ["f16", "bf16"]})
        self.assertEqual(chosen["schedules"]["attention_bwd_gradients"]["value"], "cluster = exchange")
        self.assertRegex(chosen["schedules"]["attention_bwd_gradients"]["origin"], r"choices/gradients\.json:\d+$")
        with self.assertRaisesRegex(T.CompileError, "parameter 'D' cannot be 65"):
            T.resolve(source, D=65)

    def test_widths(self):
        """Python knows the head dimensions of the sources, without the compiler."""
        for name, widths in (("attention_fwd", _variants.FORWARD_WIDTHS), ("attention_bwd", _variants.WIDTHS), ("attention_fp8", _variants.WIDTHS)):
            for parameter in ("D", "DV"):
                self.assertEqual(set(_choices.list_allowed(_library.find_source(name), parameter)), set(widths), name)

    def test_few_blocks_and_long_queries(self):
        for shape in ((1, 8, 256, 256), (64, 32, 4096, 256)):
            self.assertEqual(self.find_form("none", 256, 256, shape), "five")

    def test_nothing_may_be_compiled(self):
        """Where there is no kernel of the form for short calls, the other one does; not where it might be compiled."""

        def kind(source, **parameters):
            if pathlib.Path(source).name == "attention_bwd_deterministic.tile":
                raise T.CompileError("it is nowhere", "usage", [])
            return pathlib.Path(source).name

        def find(**environment):
            text, sizes = _variants.name_variant("none", 0.0, False), _gradient_kernels.find_sizes(1 << 16, 1, 256, 256, 1, 256, 256)
            _gradient_kernels.find_gradients.cache_clear()
            _gradient_kernels._make.cache_clear()
            with unittest.mock.patch.dict(os.environ, environment):
                return _gradient_kernels.find_gradients(kind, text, False, "bf16", sizes, False)[0]

        self.assertEqual(find(TESSERA_JIT="0"), "attention_bwd.tile")
        with self.assertRaises(T.CompileError):
            find(TESSERA_JIT="1")


unittest.main()
