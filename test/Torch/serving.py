# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Attention over caches, as engines call it, on the interpreter: compared with f64."""

import functools
import itertools
import threading
import unittest
import unittest.mock

import problems
import torch
from caches import NAN, Cache
from problems import band, exact

from tessera._attention import _shares
from tessera._compiler import _choices
from tessera.torch import _cache_recipes, _kernels, _serving, attention, flash_attn_varlen_func, flash_attn_with_kvcache


class Meaning(problems.Interpreted):
    def check(self, cache, heads, rows, expected=(), **options):
        q = torch.randn(len(cache.lengths), rows, heads, cache.k.shape[3], generator=torch.Generator().manual_seed(1))
        q = q.to(cache.k.dtype)
        out, lse = flash_attn_with_kvcache(
            q, cache.k, cache.v, cache_seqlens=cache.seqlens, return_softmax_lse=True, **cache.places, **options
        )
        expected = dict(expected)
        if options.get("causal"):
            expected.setdefault("right", 0)
        want, want_lse = cache.expect(q, **expected)
        problems.assert_close(self, out, want, options)
        self.assertTrue(torch.allclose(lse.double(), want_lse, atol=2e-3), options)

    def test_groups_and_lengths(self):
        lengths = [5, 128, 0, 1, 127, 129]
        for paged, rows in ((False, 160), (True, 64), (True, 128)):
            for heads, kv_heads in ((2, 2), (3, 1), (7, 1), (8, 1)):
                with self.subTest(f"{paged} {rows} {heads}/{kv_heads}"):
                    self.check(Cache(lengths, rows, paged, kv_heads), heads, 1)

    def test_short_pages(self):
        for rows in (8, 16, 24):
            for queries in (1, 3):
                with self.subTest(f"{rows} {queries}"):
                    self.check(Cache([17, 100, 0, 1, 16], rows, True, 2), 4, queries, causal=True)

    def test_queries(self):
        """Some sequences have fewer keys than queries, of which the first see none."""
        for paged, queries in ((False, 2), (True, 3), (True, 70)):
            for causal in (False, True):
                self.check(Cache([100, 7, 131, 0], 192 if not paged else 64, paged, 1), 4, queries, causal=causal)

    def test_several_queries_of_any_group(self):
        """A tile has all heads of a key head, so that keys are read once. That of the last one begins with heads of others."""
        find, taken = _kernels.find, []

        def note(*arguments, **parameters):
            taken.append(parameters.get("ALL_HEADS", False))
            return find(*arguments, **parameters)

        with unittest.mock.patch.object(_kernels, "find", note):
            for heads, kv_heads, queries, is_one in (
                (14, 2, 4, True), (9, 3, 3, True), (10, 2, 16, True), (12, 2, 17, False), (3, 1, 2, False), (8, 2, 3, False),
            ):  # fmt: skip
                for paged, rows, options in ((False, 320, {}), (True, 64, {"num_splits": 3}), (True, 16, {"window_size": (50, 0)})):
                    taken.clear()
                    left, _ = options.get("window_size", (None, 0))
                    cache = Cache([301, 99, 0, 1], rows, paged, kv_heads)
                    self.check(cache, heads, queries, {"left": left, "right": 0}, causal=True, **options)
                    self.assertEqual(any(taken), is_one, (heads, kv_heads, queries))
            taken.clear()
            self.check(Cache([301, 99, 0, 1], 64, True, 2), 6, 70, causal=True, keys_per_part=128)
            self.assertEqual(any(taken), True)
        cache, slopes = Cache([300, 100, 7], 128, True, 2), torch.arange(1, 7) / 10
        for scores in ({"softcap": 3.0}, {"slopes": slopes}):
            options = {"alibi_slopes" if name == "slopes" else name: x for name, x in scores.items()}
            self.check(cache, 6, 3, scores, causal=True, **options)

    def test_parts(self):
        for options in ({"num_splits": 2}, {"num_splits": 3}, {"keys_per_part": 128}):
            for paged, rows, queries in ((False, 384, 1), (True, 64, 2), (True, 128, 70), (True, 16, 1)):
                with self.subTest(f"{options} {rows} {queries}"):
                    self.check(Cache([300, 100, 0, 1, 257], rows, paged, 1), 2, queries, causal=True, **options)

    def test_parts_of_short_sequences(self):
        """By its own length a sequence has all parts, of a step's keys at least, however much room there is."""
        for paged, rows, lengths in ((False, 1024, [300, 100, 0, 1, 513]), (True, 64, [300, 100, 0, 1, 513])):
            for splits in (3, 8):
                cache = Cache(lengths, rows, paged, 1)
                if paged:
                    cache.table = torch.nn.functional.pad(cache.table, (0, 7), value=-777777)
                self.check(cache, 2, 1, num_splits=splits)

    def test_parts_of_windows(self):
        """Keys before a window, or a chunk, are in no part."""
        lengths = [700, 100, 0, 1, 513, 640]
        for paged, rows in ((False, 768), (True, 64), (True, 16)):
            for queries in (1, 3):
                for window in ((100, 0), (0, 0), (300, 0), (1000, 0)):
                    self.check(
                        Cache(lengths, rows, paged, 1), 2, queries, {"left": window[0], "right": 0}, causal=True, window_size=window, num_splits=4
                    )

    def test_equal_shares(self):
        """Where rules say so, with lengths on the device alone, and not beside parts that the caller asks for."""
        numbers, find, taken = _kernels.find_numbers, _kernels.find, []

        def note(*arguments, **parameters):
            taken.append(parameters.get("SHARES", 0))
            return find(*arguments, **parameters)

        balanced = unittest.mock.patch.object(_kernels, "find_numbers", lambda *a: {**numbers(*a), "CACHES_BALANCED": True})
        with balanced, unittest.mock.patch.object(_kernels, "find", note):
            for paged, rows, queries, options, shares in (
                (False, 320, 1, {}, 2), (True, 128, 2, {}, 2), (True, 24, 1, {}, 2), (True, 20, 1, {}, 0),
                (False, 320, 2, {"num_splits": 2}, 0), (True, 128, 1, {"keys_per_part": 128}, 0),
            ):  # fmt: skip
                taken.clear()
                self.check(Cache([301, 99, 0, 1], rows, paged, 1), 5, queries, causal=True, **options)
                self.assertEqual(max(taken), shares, options)

    def test_blocks_of_a_cluster(self):
        """Where tiles are about as many as multiprocessors, of 16 heads at most, and not beside parts that the caller asks for. Of
        fewer tiles a long sequence has parts for all multiprocessors."""
        find, taken = _kernels.find, []

        def note(*arguments, **parameters):
            taken.append(parameters.get("CLUSTER", 0))
            return find(*arguments, **parameters)

        few = unittest.mock.patch.object(_kernels, "count_multiprocessors", lambda device: 40)
        with unittest.mock.patch.object(_kernels, "find", note), few:
            for lengths, paged, rows, kv_heads, heads, options, blocks in (
                ([4200, 99, 0, 1, 64, 65, 63, 1025, 700], False, 4224, 4, 16, {}, 2),
                ([4200, 99, 0, 1, 64, 65, 63, 1025, 701], True, 64, 4, 28, {"softcap": 3.0}, 2),
                ([4200, 99, 0, 1, 64, 65, 63, 1025, 702], True, 16, 4, 4, {}, 0),
                ([4200, 99, 0, 1, 64, 65, 63, 1025, 703], False, 4224, 4, 16, {"num_splits": 2}, 0),
                ([4200, 99, 0, 1, 64, 65, 63, 1025, 704], False, 4224, 4, 16, {"window_size": (100, 0)}, 0),
                ([4200, 99, 0, 1, 64, 65, 63, 1025, 705], False, 4224, 4, 68, {}, 0),
                ([4200, 99, 0, 1], False, 4224, 4, 16, {}, 0),
                ([4200, 99, 0, 1, 64, 65], False, 4224, 4, 16, {}, 0),
                ([3000, 99, 0, 1, 64, 65, 63, 1025, 700], False, 3072, 4, 16, {}, 0),
            ):
                taken.clear()
                expected = {"softcap": options["softcap"]} if "softcap" in options else {}
                expected |= {"left": 100} if "window_size" in options else {}
                self.check(Cache(lengths, rows, paged, kv_heads), heads, 1, expected, causal=True, **options)
                self.assertEqual(max(taken), blocks, (lengths, options))

    def test_masks_and_scores(self):
        cache = Cache([300, 100, 7], 128, True, 1)
        for queries in (1, 2):
            self.check(cache, 4, queries, {"left": 50, "right": 0}, causal=True, window_size=(50, -1))
            self.check(cache, 4, queries, {"left": 50, "right": 3}, window_size=(50, 3), num_splits=2)
            self.check(cache, 4, queries, {"softcap": 3.0}, softcap=3.0)
        slopes = torch.tensor([0.5, 0.1, 0.02, 0.3])
        self.check(cache, 4, 1, {"slopes": slopes}, alibi_slopes=slopes)

    def test_sinks(self):
        """Sinks count once, however keys are divided, and where there are none. Several heads are in a tile, or one is."""
        sinks = torch.tensor([0.5, -1.0, 2.0, 1.0, 0.0, -2.0])
        for heads, kv_heads, dtype in ((2, 1, torch.float32), (3, 1, torch.bfloat16), (6, 2, torch.float32)):
            cache = Cache([300, 5, 0, 129], 128, True, kv_heads)
            for queries, options in itertools.product((1, 3), ({}, {"num_splits": 3}, {"softcap": 3.0, "num_splits": 2})):
                q = torch.randn(4, queries, heads, 64, generator=torch.Generator().manual_seed(queries)).bfloat16()
                out, lse = flash_attn_with_kvcache(
                    q, cache.k, cache.v, cache_seqlens=cache.seqlens, causal=True, sinks=sinks[:heads].to(dtype), return_softmax_lse=True,
                    **cache.places, **options,
                )  # fmt: skip
                want, want_lse = cache.expect(q, right=0, softcap=options.get("softcap", 0.0))
                joined = torch.logaddexp(want_lse, sinks[:heads, None].double())
                kept = (want_lse - joined).exp().transpose(1, 2)[..., None]
                problems.assert_close(self, out, want * kept, options)
                self.assertTrue(torch.allclose(lse.double(), joined, atol=2e-3), options)

    def test_given_output(self):
        cache, out = Cache([300, 5], 128, True, 1), torch.full((2, 3, 2, 64), NAN).bfloat16()
        q = torch.randn(2, 1, 2, 64, generator=torch.Generator().manual_seed(4)).bfloat16()
        for parts in (1, 2):
            given = out[:, 1:2]
            options = {**cache.places, "cache_seqlens": cache.seqlens, "num_splits": parts, "out": given}
            self.assertIs(flash_attn_with_kvcache(q, cache.k, cache.v, **options), given)
            problems.assert_close(self, given, cache.expect(q)[0])
        self.assertTrue(out[:, ::2].isnan().all())

    def test_sizes(self):
        for d, dv, dtype in ((72, 40, torch.bfloat16), (128, 128, torch.float16), (256, 256, torch.bfloat16)):
            self.check(Cache([70, 3], 64, True, 1, d, dv, dtype), 2, 1)

    def test_lengths_that_are_no_tensor(self):
        cache = Cache([96, 96], 96, False, 1)
        q = torch.randn(2, 1, 2, 64).bfloat16()
        want = cache.expect(q)[0]
        k, v = (x[cache.table[:, 0].long()] for x in (cache.k, cache.v))
        for lengths in (None, 96):
            problems.assert_close(self, flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths), want)
        # Nothing is made on the device for the kernel to read.
        with unittest.mock.patch.object(_serving._kept, "full", side_effect=AssertionError):
            problems.assert_close(self, flash_attn_with_kvcache(q, k, v), want)
            flash_attn_with_kvcache(q, k, v, cache_seqlens=cache.seqlens)
        out, lse = flash_attn_with_kvcache(q[:, :0], k, v, return_softmax_lse=True)
        self.assertEqual((out.shape, lse.shape), ((2, 0, 2, 64), (2, 2, 0)))

    def test_invariance(self):
        """With parts of so many keys a sequence gives the same bits beside any other, in any pages, and in a longer cache."""
        cache, generator = Cache([300, 100], 128, True, 1), torch.Generator().manual_seed(3)
        q = torch.randn(2, 1, 2, 64, generator=generator).bfloat16()

        def attend(*numbers, **more):
            places = {
                "page_table": cache.table[list(numbers)],
                "cache_seqlens": cache.seqlens[list(numbers)],
                "keys_per_part": 128,
            }
            return flash_attn_with_kvcache(q[list(numbers)], cache.k, cache.v, **{**places, **more})

        both = attend(0, 1)
        for b in (0, 1):
            self.assertTrue(torch.equal(attend(b)[0], both[b]))
        longer = torch.cat([cache.table, torch.full((2, 3), 99, dtype=torch.int32)], 1)
        self.assertTrue(torch.equal(attend(0, 1, page_table=longer), both))


class Masks(problems.Interpreted):
    """Masks that have a source of their own, dense and over caches, of one query, of several, with divided keys, and packed."""

    LENGTHS = [150, 5, 0, 129]

    def setUp(self):
        super().setUp()
        self.cache = Cache(self.LENGTHS, 64, True, 1)

    def expect(self, q, b, see):
        """Output of queries [SQ, H, D] of sequence b in f64, by a function of places of queries and keys."""
        rows, keys = len(q), self.LENGTHS[b]
        own, key = torch.arange(rows)[:, None] + keys - rows, torch.arange(keys)
        q, k, v = (x.transpose(0, 1)[None] for x in (q, self.cache.keys[b], self.cache.values[b]))
        return exact(q, k, v, see(b, own, key) & (own >= 0))[0][0].transpose(0, 1)

    def check(self, see, run, rows=(1, 3), parts=(1, 2)):
        """`run(q, parts)` gives the output of [B, SQ, H, D]."""
        for count, divisions in itertools.product(rows, parts):
            q = torch.randn(4, count, 2, 64, generator=torch.Generator().manual_seed(count)).bfloat16()
            out = run(q, divisions)
            for b in range(4):
                problems.assert_close(self, out[b], self.expect(q[b], b, see), (count, divisions, b))

    def check_all(self, see, **options):
        cache = self.cache
        named = {"cache_seqlens": cache.seqlens, "page_table": cache.table}
        self.check(see, lambda q, parts: flash_attn_with_kvcache(q, cache.k, cache.v, num_splits=parts, **named, **options))
        named = {"seqused_k": cache.seqlens, "block_table": cache.table, **options}
        self.check_packed(see, lambda q, starts: flash_attn_varlen_func(q, cache.k, cache.v, starts, None, 70, 0, **named))

    def check_packed(self, see, run, counts=(70, 5, 0, 1)):
        """`run(q, starts)` gives the output of [tokens, H, D]."""
        starts, generator = torch.tensor([0, *counts]).cumsum(0).to(torch.int32), torch.Generator().manual_seed(9)
        q = torch.randn(sum(counts), 2, 64, generator=generator).bfloat16()
        out = run(q, starts)
        for b in (0, 1, 3):
            own = slice(starts[b], starts[b + 1])
            problems.assert_close(self, out[own], self.expect(q[own], b, see), b)

    def check_places(self, see, variant, rows=(1, 3), counts=(70, 5, 0, 1)):
        """The source of a variant over dense tensors, caches in pages and without, and of packed queries."""
        paged, cache = self.cache, Cache(self.LENGTHS, 192, False, 1)
        cache.keys, cache.values = paged.keys, paged.values
        for b, length in enumerate(self.LENGTHS):
            if length:
                cache.store(b)
        for places in (paged, cache):
            self.check(see, lambda q, parts, places=places: self.call(variant, q, places).run(64**-0.5, (None, None), count=parts)[0], rows)

        def run_packed(q, starts):
            return self.call(variant, q[None], paged, starts=starts, rows=max(counts)).run_tokens(64**-0.5, (None, None), 0.0)[0]

        self.check_packed(see, run_packed, counts)
        name, given, parameters = variant
        source = f'$import "variants/{name}.tile"\n'
        kernel = _kernels.find(True, source, "attention", T="bf16", D=64, BM=64, BN=64, **parameters)
        for b, count in itertools.product((0, 1, 3), rows):
            q = torch.randn(1, 2, count, 64, generator=torch.Generator().manual_seed(b)).bfloat16()
            k, v = (x[b].transpose(0, 1)[None].contiguous() for x in (paged.keys, paged.values))
            out, lse = torch.empty_like(q), torch.empty(1, 2, count)
            own = {name: number[b : b + 1] if isinstance(number, torch.Tensor) else number for name, number in given.items()}
            kernel(q, k, v, out, lse, 64**-0.5, *(own[name] for name in kernel.names[6:]))
            problems.assert_close(self, out[0].transpose(0, 1), self.expect(q[0].transpose(0, 1), b, see), (name, b, count))

    @staticmethod
    def call(variant, q, cache, **packed):
        table, slots = (cache.table, None) if cache.paged else (None, cache.places["cache_batch_idx"].clamp(min=0))
        call = _serving.Call(q, cache.k, cache.v, cache.seqlens, slots, table, **packed)
        call.variant = variant
        return call

    def test_chunks(self):
        see = lambda b, q, k: (q // 48 == k // 48) & (k <= q)  # noqa: E731
        self.check_all(see, causal=True, attention_chunk=48)
        self.check_places(see, ("chunks", {}, {"CHUNK_KEYS": 48}))

    def test_flags(self):
        flags = torch.tensor([0, 1, 1, 3], dtype=torch.int32)
        see = lambda b, q, k: (k <= q) | (flags[b] == 0)  # noqa: E731
        self.check_all(see, causal=flags)
        self.check_places(see, ("causal_flags", {"causal": flags}, {}))

    def test_prefixes(self):
        prefixes = torch.tensor([70, 2, 0, 0], dtype=torch.int32)
        see = lambda b, q, k: (k <= q) & ((k >= q - 20) | (k < prefixes[b]))  # noqa: E731
        self.check_all(see, causal=True, window_size=(20, 0), prefix_lens=prefixes)
        self.check_places(see, ("prefix_window", {"left": 20, "prefixes": prefixes}, {}))

    def test_trees(self):
        tree = torch.tensor([[1, 3, 5], [1, 2, 6], [1, 3, 7], [1, 3, 4]], dtype=torch.int32)

        def see(b, q, k):
            draft = k - q[0]
            return (draft < 0) | ((tree[b, : len(q), None] >> draft.clamp(min=0)) & 1).bool()

        self.check_places(see, ("draft_tree", {"tree": tree}, {}), rows=(3,), counts=(3, 2, 0, 1))

    def test_images(self):
        ends = torch.zeros(4, 192, dtype=torch.int32)
        ends[0, 100:149], ends[3, 120:128], ends[3, 128:129] = 149, 128, 129

        def see(b, q, k):
            return (k <= q) | (k < ends[b, q.clamp(min=0)])

        self.check_places(see, ("image_ranges", {"ends": ends}, {}), rows=(1, 3, 40))


class FewQueries(problems.Interpreted):
    """`attention` takes these kernels where they gain."""

    def attend(self, taken, tensors, visible=None, softcap=0.0, **options):
        options = {**options, "softcap": softcap} if softcap else options
        with unittest.mock.patch.object(_serving.Call, "run", autospec=True, side_effect=_serving.Call.run) as run:
            out, lse = attention(*tensors, return_lse=True, **options)
        self.assertEqual(run.called, taken, options)
        layout = options.get("layout", "BHSD")
        q, k, v = (x.transpose(1, 2) for x in tensors) if layout == "BSHD" else tensors
        want, want_lse = exact(q, k, v, visible, softcap)
        problems.assert_close(self, out.transpose(1, 2) if layout == "BSHD" else out, want, options)
        self.assertTrue(torch.allclose(lse.double(), want_lse, atol=2e-3))
        self.assertTrue(torch.equal(attention(*tensors, **options), out))

    def test_taken(self):
        for heads, kv_heads, rows, keys in ((4, 4, 1, 600), (7, 1, 1, 1000), (8, 2, 5, 520), (6, 2, 16, 512)):
            tensors = problems.make(heads=heads, kv_heads=kv_heads, rows=rows, keys=keys)
            self.attend(True, tensors)
            self.attend(True, tensors, band(rows, keys, right=0), causal=True)
        for rows in (1, 3):
            tensors = problems.make(heads=4, kv_heads=2, rows=rows, keys=700)
            self.attend(True, tensors, band(rows, 700, 99, 0), causal=True, window=(99, 0))
            self.attend(True, tensors, band(rows, 700, 99, 5), window=(99, 5), softcap=20.0)
        tensors = problems.make(heads=4, kv_heads=2, rows=2, keys=600, layout="BSHD")
        self.attend(True, tensors, layout="BSHD")

    def test_compiled_aside(self):
        """What is not there yet is compiled beside the program."""
        made, may_end = [], threading.Event()

        def find(*asked, **parameters):
            may_end.wait(60)
            made.append((asked, parameters))
            if parameters["D"] == 256:
                raise ValueError("no room")
            return "kernel"

        with unittest.mock.patch.object(_kernels, "find", find), unittest.mock.patch.dict(_cache_recipes._begun, clear=True):
            for _ in range(2):
                self.assertRaises(_cache_recipes.NotReady, _cache_recipes.find_ready, False, "source", "attention", D=64)
            may_end.set()
            _cache_recipes._variants.finish_aside()
            self.assertEqual(_cache_recipes.find_ready(False, "source", "attention", D=64), "kernel")
            self.assertEqual(made, [((False, "source", "attention"), {"D": 64})])
            self.assertRaises(_cache_recipes.NotReady, _cache_recipes.find_ready, False, "source", "attention", D=256)
            _cache_recipes._variants.finish_aside()
            with self.assertWarnsRegex(RuntimeWarning, "go on with kernels for others: no room"):
                self.assertRaises(_cache_recipes.NotReady, _cache_recipes.find_ready, False, "source", "attention", D=256)

    def test_left_to_others(self):
        self.attend(False, problems.make(heads=2, kv_heads=2, rows=17, keys=520))
        self.attend(False, problems.make(heads=2, kv_heads=2, rows=1, keys=500))
        slopes = torch.tensor([0.1, 0.2])
        with unittest.mock.patch.object(_serving.Call, "run") as run:
            attention(*problems.make(heads=2, rows=1, keys=520), alibi=slopes)
        self.assertFalse(run.called)
        q, k, v = problems.make(heads=2, kv_heads=2, rows=1, keys=520)
        self.attend(False, (q.requires_grad_(), k, v))
        with unittest.mock.patch.object(_choices, "INTERPRETED", 4):
            _kernels.count_multiprocessors.cache_clear()
            self.attend(False, problems.make(heads=2, kv_heads=2, rows=1, keys=520))
        _kernels.count_multiprocessors.cache_clear()


class Divisions(unittest.TestCase):
    def test_parts_fill_the_gpu(self):
        for tiles, keys, blocks, least, want in (
            (200, 4096, 1, 256, 1),
            (110, 4096, 1, 256, 1),
            (110, 4096, 2, 256, 7),
            (8, 8192, 1, 256, 16),
            (8, 8192, 1, 2048, 4),
            (8, 131072, 1, 256, 16),
            (8, 131072, 2, 2048, 32),
            (1, 1024, 1, 256, 4),
            (64, 4096, 1, 256, 2),
            (8, 200, 1, 256, 1),
        ):
            with self.subTest(tiles=tiles, keys=keys, blocks=blocks, least=least):
                self.assertEqual(_cache_recipes.count_parts(tiles, keys, torch.device("cpu"), blocks, least), want)

    def test_parts_of_unequal_sequences(self):
        """One sequence has parts for each multiprocessor once, many have more, which end at different times."""
        for sequences, rows, want in ((1, 64, 1), (2, 64, 2), (8, 128, 4), (64, 64, 4), (1, 16, 2), (64, 16, 2)):
            extents = ("SEQUENCES", sequences), ("ROWS", rows)
            self.assertEqual(_kernels.find_numbers(torch.device("cpu"), *extents)["BLOCKS_FILLED"], want, extents)


class Joins(unittest.TestCase):
    def test_parts(self):
        """What joins parts follows from how many there are, but where bits depend on no batch."""
        choose = functools.partial(_kernels.choose, torch.device("cpu"))
        kernels = set()
        for heads, columns, ragged in itertools.product((1, 6, 16), (128, 512), (False, True)):
            joins = [_shares.choose_merge(choose, (3, 2, heads, columns), count, ragged) for count in (None, 3, 8, 20)]
            self.assertEqual(joins[0], joins[2])
            self.assertNotEqual(joins[0], joins[1])
            kernels.add(joins[3][0])
        self.assertEqual(kernels, {"merge_shares", "merge_parts"})


class Refused(problems.Interpreted):
    def setUp(self):
        super().setUp()
        self.cache = Cache([70, 3], 64, True, 1)
        self.q = torch.randn(2, 1, 2, 64).bfloat16()

    def refuse(self, kind, text, q=None, k=None, v=None, **options):
        given = {"page_table": self.cache.table, "cache_seqlens": self.cache.seqlens, **options}
        with self.assertRaisesRegex(kind, text):
            flash_attn_with_kvcache(
                self.q if q is None else q, self.cache.k if k is None else k, self.cache.v if v is None else v, **given
            )

    def test_attention(self):
        cache, q = self.cache, self.q
        for name in (
            "qv",
            "cache_leftpad",
            "cu_seqlens_q",
            "cu_seqlens_k_new",
            "rotary_seqlens",
            "q_descale",
            "k_descale",
            "v_descale",
        ):
            self.refuse(NotImplementedError, f"argument '{name}' is given; .*leave it out", **{name: cache.seqlens})
        self.refuse(NotImplementedError, "'attention_chunk' is 64; chunks are causal and have no window", attention_chunk=64)
        self.refuse(ValueError, "'attention_chunk' is -1; it is a number of keys", attention_chunk=-1)
        self.refuse(NotImplementedError, "'causal' is a tensor; no kernel has flags beside", causal=cache.seqlens, attention_chunk=64)
        self.refuse(TypeError, "'causal' has type torch.bool; it is int32", causal=cache.seqlens > 0)
        self.refuse(NotImplementedError, "'prefix_lens' is given; it is for a causal window", prefix_lens=cache.seqlens, causal=True)
        self.refuse(ValueError, "'page_table' and 'block_table' are both given", block_table=cache.table)
        self.refuse(ValueError, "'cache_batch_idx' and 'page_table' are both given", cache_batch_idx=cache.seqlens)
        self.refuse(ValueError, "'k_cache' has 6 batches and 'q' 2; pass cache_batch_idx", page_table=None)
        self.refuse(TypeError, "'cache_seqlens' has type torch.int64; it is int32", cache_seqlens=cache.seqlens.long())
        self.refuse(ValueError, r"'cache_seqlens' has shape \(1,\); with this 'q' it is \[2\]", cache_seqlens=cache.seqlens[:1])
        self.refuse(ValueError, "'cache_seqlens' is 129; it is a tensor, or a number of keys up to 128", cache_seqlens=129)
        self.refuse(TypeError, "'page_table' has type torch.int64; it is int32", page_table=cache.table.long())
        self.refuse(ValueError, r"'page_table' has shape \(1, 2\); with this 'q' it is \[2, any\]", page_table=cache.table[:1])
        self.refuse(ValueError, "'page_table' has stride 2 in its last dimension", page_table=cache.table.t().contiguous().t())
        self.refuse(ValueError, "'num_splits' is -1", num_splits=-1)
        self.refuse(ValueError, "'keys_per_part' is 100; it is a multiple of 128", keys_per_part=100)
        self.refuse(ValueError, "'rotary_cos' is given without new keys", rotary_cos=torch.ones(4, 8))
        self.refuse(TypeError, "'q' has type torch.float32; attention takes float16 and bfloat16", q=q.float())
        self.refuse(TypeError, "'k_cache' has type torch.float16; with a 'q' of torch.bfloat16", k=cache.k.half())
        self.refuse(
            ValueError,
            "'q' has 3 heads and 'k_cache' 2",
            q=q.expand(2, 1, 2, 64)[:, :, [0, 1, 1]],
            k=cache.k.expand(-1, -1, 2, -1).contiguous(),
            v=cache.v.expand(-1, -1, 2, -1).contiguous(),
        )
        self.refuse(ValueError, "'k_cache' has head dimension 32 and 'q' 64", k=cache.k[..., :32].contiguous())
        self.refuse(
            ValueError, "'k_cache' has strides .*; its rows must be dense", k=cache.k.transpose(1, 3).contiguous().transpose(1, 3)
        )
        self.refuse(ValueError, "'v_cache' have shapes .*; all but their last dimensions are equal", v=cache.v[:, :32])
        for out in (q[:, :, :1], q.half(), q.new_zeros(2, 1, 2, 65)[..., 1:]):
            self.refuse(ValueError, r"'out' has shape .*; it is \(2, 1, 2, 64\) of torch.bfloat16 on cpu, with dense rows", out=out)
        self.refuse(ValueError, "'sinks' is torch.float32 of shape", sinks=torch.ones(3))
        slopes = torch.ones(2)
        self.refuse(NotImplementedError, "'alibi_slopes' is of type torch.float16", alibi_slopes=slopes.half())
        self.refuse(
            NotImplementedError, "'softcap' is 2.0; no kernel over a cache has slopes too", alibi_slopes=slopes, softcap=2.0
        )
        for name in ("q", "k", "v", "alibi_slopes", "sinks"):
            tensor = {"q": q, "k": cache.k, "v": cache.v}.get(name, slopes)
            given = f"'{name}_cache'" if name in "kv" else f"'{name}'"
            self.refuse(NotImplementedError, f"{given} requires a gradient", **{name: tensor.clone().requires_grad_()})
            with torch.autograd.forward_ad.dual_level():
                dual = torch.autograd.forward_ad.make_dual(tensor, torch.ones_like(tensor))
                self.refuse(NotImplementedError, f"{given} has a tangent", **{name: dual})
        with self.assertRaisesRegex(
            ValueError, r"'k' has shape \(2, 1, 1, 32\); with these 'q' and caches it is \[2, 1, 1, 64\]"
        ):
            flash_attn_with_kvcache(
                q, cache.k, cache.v, torch.randn(2, 1, 1, 32), torch.randn(2, 1, 1, 64), page_table=cache.table
            )


if __name__ == "__main__":
    unittest.main()
