# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Attention of sequences that lie one behind the other, on the interpreter: compared with f64."""

import contextlib
import itertools
import random
import unittest
import unittest.mock

import problems
import torch
from caches import NAN, Cache

from tessera.torch import _cache_recipes, flash_attn_varlen_func


class Stopped(Exception):
    """Of calls that are described, and not run."""


class Seen:
    """The tiles of a call."""

    def __init__(self, call, parameters, lse):
        self.is_uneven, self.is_upwards, packed = "UNEVEN" in parameters, "UPWARDS" in parameters, parameters.get("HEADS", 1)
        self.queries, self.heads = parameters["BM"] // packed, call.heads // packed
        rows, *_, of_sequence = call.places.views[lse[1]][1].shape
        tiles = -(-int(rows) // self.queries) if self.is_uneven else int(rows) * -(-int(of_sequence) // self.queries)
        self.tiles = tiles * self.heads


@contextlib.contextmanager
def watch(is_run=True):
    """A list of the tiles of each call of packed queries that is described."""
    found, own = [], _cache_recipes._Call._bind

    def bind(call, kernel, lse, extras):
        found.append(Seen(call, parameters[0], lse))
        if not is_run:
            raise Stopped
        return own(call, kernel, lse, extras)

    def bind_tokens(call, source, extras, own_parameters):
        parameters[:] = [own_parameters]
        return own_tokens(call, source, extras, own_parameters)

    parameters, own_tokens = [], _cache_recipes._Call._bind_tokens
    with (
        unittest.mock.patch.object(_cache_recipes._Call, "_bind", bind),
        unittest.mock.patch.object(_cache_recipes._Call, "_bind_tokens", bind_tokens),
    ):
        yield found


class Tokens(problems.Interpreted):
    """Queries of all sequences one behind the other, over keys that lie so too, and over pages."""

    def check(self, counts, cache, heads, packed_keys, expected=(), with_out=False, before=0, behind=5, **options):
        """With `before` tokens of no sequence in front, and some behind."""
        d = cache.k.shape[3]
        queries = [torch.randn(n, heads, d, generator=torch.Generator().manual_seed(n)).to(cache.k.dtype) for n in counts]
        starts = torch.tensor([before, *counts]).cumsum(0).to(torch.int32)
        padding = (torch.full((rows, heads, d), NAN).to(cache.k.dtype) for rows in (before, behind))
        q = torch.cat([next(padding), *queries, next(padding)])
        starts_k = torch.tensor([0, *cache.lengths]).cumsum(0).to(torch.int32)
        if packed_keys:
            k, v, more = torch.cat(cache.keys), torch.cat(cache.values), {}
        else:
            k, v, more = cache.k, cache.v, {"block_table": cache.table}
        if with_out:
            options["out"] = torch.empty_like(q)
        out, lse, _ = flash_attn_varlen_func(
            q, k, v, starts, starts_k, max(counts), max(cache.lengths), return_attn_probs=True, **more, **options
        )  # fmt: skip
        if with_out:
            self.assertIs(out, options["out"])
        expected = dict(expected)
        if options.get("causal"):
            expected.setdefault("right", 0)
        for b, own in ((b, own) for b, own in enumerate(queries) if len(own)):
            tokens = slice(int(starts[b]), int(starts[b + 1]))
            one = Cache.__new__(Cache)
            one.keys, one.values = [cache.keys[b]], [cache.values[b]]
            want, want_lse = one.expect(own[None], **expected)
            problems.assert_close(self, out[tokens], want[0], options)
            self.assertTrue(torch.allclose(lse[:, tokens].double(), want_lse[0], atol=2e-3), options)

    def test_prompts_and_tokens(self):
        counts, lengths = [70, 1, 0, 130, 1, 3], [70, 129, 50, 200, 1, 3]
        for heads, kv_heads in ((2, 2), (4, 1)):
            cache = Cache(lengths, 64, True, kv_heads)
            for causal in (False, True):
                for packed_keys in (False, True):
                    with self.subTest(f"{heads} {causal} {packed_keys}"):
                        self.check(counts, cache, heads, packed_keys, causal=causal)
            self.check(counts, cache, heads, False, {"left": 30, "right": 0}, causal=True, window_size=(30, 0))

    def test_few_queries(self):
        """Several heads are in a tile."""
        for rows, heads in itertools.product((64, 16), (8, 6, 14)):
            for invariant in (False, True):
                cache = Cache([100, 5, 3, 64], rows, True, 2, 72)
                self.check([1, 0, 3, 2], cache, heads, False, with_out=True, before=2, causal=True, invariant=invariant)

    def test_single_queries(self):
        """Sequences without a query stand between the others, and behind them."""
        for counts in ([1, 1, 1, 1], [1, 0, 1, 1, 0, 0]):
            for heads, rows in ((7, 64), (4, 16)):
                cache = Cache([300, 5, 100, 1, 7, 0][: len(counts)], rows, True, 1)
                self.check(counts, cache, heads, False, with_out=True, causal=True)
                self.check(counts, cache, heads, False, {"left": 50, "right": 0}, causal=True, window_size=(50, -1))

    def test_uneven(self):
        """A long sequence among short ones, in random order, of which some have no query, or no key."""
        drawn = random.Random(3)
        cases = (8, 2, 64, 0), (3, 3, 16, 70), (4, 1, 24, 3), (6, 2, 64, 3), (2, 2, 64, 0)
        for case, (heads, kv_heads, rows, before) in enumerate(cases):
            counts = [drawn.choice((0, 1, 5, 40)) for _ in range(drawn.randrange(2, 7))] + [drawn.randrange(130, 260)]
            drawn.shuffle(counts)
            lengths = [count + drawn.choice((0, 0, 90)) for count in counts]
            cache = Cache(lengths, rows, True, kv_heads)
            with self.subTest(f"{counts} {lengths} {heads}"), watch() as found:
                self.check(counts, cache, heads, case % 2, causal=case < 3, before=before)
                self.check(counts, cache, heads, False, {"left": 30, "right": 0}, causal=True, window_size=(30, 0), before=before)
                self.check(counts, cache, heads, False, causal=True, before=before, invariant=True)
                self.assertEqual([each.is_uneven for each in found], [True, True, True])

    def test_equal(self):
        """As many tokens as if each sequence were as long as the longest one, and sequences that are shorter, as a graph may meet them."""
        for counts in ([192, 192, 192], [192, 70, 1], [0, 192, 5]):
            cache = Cache([count + 20 for count in counts], 16, True, 2)
            for packed_keys in (False, True):
                with self.subTest(f"{counts} {packed_keys}"), watch() as found:
                    self.check(counts, cache, 8, packed_keys, causal=True, behind=3 * 192 - sum(counts))
                    self.assertEqual((found[0].is_uneven, found[0].is_upwards), (False, True))

    def test_uneven_scores(self):
        """Scores and masks of several heads in a tile give what they give of each sequence alone."""
        counts, heads = [40, 256, 5], 8
        starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
        cache = Cache([70, 256, 30], 64, True, 2)
        q = torch.randn(sum(counts), heads, 64).bfloat16()
        causal, prefixes = (torch.tensor(numbers, dtype=torch.int32) for numbers in ([1, 0, 1], [9, 30, 2]))
        for options in (
            {"causal": True, "alibi_slopes": torch.arange(1, 9) / 16}, {"causal": True, "softcap": 3.0},
            {"causal": True, "attention_chunk": 96}, {"window_size": (30, 0), "sinks": torch.arange(8) / 4},
            {"causal": causal}, {"prefix_lens": prefixes, "window_size": (16, 0)},
        ):  # fmt: skip
            with self.subTest(str(options)), watch() as found:
                for b in (None, 0, 1, 2):
                    chosen = slice(b, None if b is None else b + 1)
                    own = slice(int(starts[b or 0]), int(starts[-1 if b is None else b + 1]))
                    own_starts = starts if b is None else starts[b : b + 2] - starts[b]
                    named = {
                        each: x[chosen] if isinstance(x, torch.Tensor) and len(x) == 3 else x for each, x in options.items()
                    }  # fmt: skip
                    out, lse, _ = flash_attn_varlen_func(
                        q[own], cache.k, cache.v, own_starts, None, max(counts[chosen]), 256, block_table=cache.table[chosen],
                        seqused_k=cache.seqlens[chosen], return_attn_probs=True, **named,
                    )  # fmt: skip
                    if b is None:
                        all_out, all_lse = out, lse
                        continue
                    problems.assert_close(self, all_out[own], out.double(), options)
                    self.assertTrue(torch.allclose(all_lse[:, own], lse, atol=2e-3))
                self.assertEqual([each.is_uneven for each in found], [True, False, False, False])

    def test_queries_of_none(self):
        """Tokens, and none of a sequence, of which there is none."""
        cache = Cache([3, 0, 70], 64, True, 2)
        q, starts = torch.full((9, 4, 64), NAN).bfloat16(), torch.tensor([4, 4, 4, 4], dtype=torch.int32)
        out = torch.ones_like(q)
        with watch() as found:
            flash_attn_varlen_func(
                q, cache.k, cache.v, starts, None, 200, 70, block_table=cache.table, seqused_k=cache.seqlens, causal=True, out=out
            )  # fmt: skip
        self.assertTrue(found[0].is_uneven and out.eq(1).all())
        empty = cache.table[:0], cache.seqlens[:0]
        out = flash_attn_varlen_func(q, cache.k, cache.v, starts[:1], None, 200, 70, block_table=empty[0], seqused_k=empty[1])
        self.assertTrue(out.eq(0).all())

    def test_many_sequences(self):
        """More than a step of the search for the sequence of a tile tells apart."""
        counts = 1100 * [0]
        counts[0], counts[70], counts[1055], counts[1098] = 1, 3, 140, 2
        starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
        q, k, v = (torch.randn(sum(counts), 1, 64).bfloat16() for _ in range(3))
        with watch() as found:
            out = flash_attn_varlen_func(q, k, v, starts, starts, 140, 140)
        self.assertTrue(found[0].is_uneven)
        for begin, end in zip(starts.tolist(), starts.tolist()[1:]):
            if begin < end:
                want, _ = problems.exact(*(x[begin:end].transpose(0, 1)[None] for x in (q, k, v)))
                problems.assert_close(self, out[begin:end], want[0].transpose(0, 1), f"{begin}")

    def test_large_tiles(self):
        """Four heads with 64 queries each in a tile."""
        counts, generator = [260, 1, 0, 70], torch.Generator().manual_seed(3)
        starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
        q, k, v = (torch.randn(sum(counts), heads, 64, generator=generator).bfloat16() for heads in (4, 1, 1))
        with watch() as found:
            out = flash_attn_varlen_func(q, k, v, starts, starts, 260, 260, causal=True)
        self.assertEqual(found[0].queries, 64)
        for begin, end in zip(starts.tolist(), starts.tolist()[1:]):
            if begin < end:
                visible = torch.ones(end - begin, end - begin).tril().bool()
                want, _ = problems.exact(*(x[begin:end].transpose(0, 1)[None] for x in (q, k, v)), visible)
                problems.assert_close(self, out[begin:end], want[0].transpose(0, 1), f"{begin}")

    def test_tiles(self):
        """Tiles are as many as queries fill and one for each sequence, or as many of each as of the longest one where that is fewer."""
        for counts, heads, kv_heads, is_uneven in (
            ([2048] + 16 * [64], 8, 2, True), (16 * [64] + [2048], 4, 4, True), ([1024] + 63 * [1], 8, 2, True), (8 * [512], 8, 2, False),
            ([100_000], 2, 2, False), (100_000 * [1] + [1000], 1, 1, True), (64 * [40], 8, 2, False),
        ):  # fmt: skip
            starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
            keys = torch.zeros(sum(counts), kv_heads, 64).bfloat16()
            with self.subTest(f"{len(counts)} {max(counts)}"), watch(is_run=False) as found:
                with self.assertRaises(Stopped):
                    q = torch.zeros(sum(counts), heads, 64).bfloat16()
                    flash_attn_varlen_func(q, keys, keys, starts, starts, max(counts), max(counts), causal=True)
                one = found[0]
                self.assertEqual(one.is_uneven, is_uneven)
                self.assertEqual(one.is_upwards, 64 < max(counts) <= 512)
                # Heads of a key share a tile, where a sequence has several, and four of long prompts one of 256 rows.
                rows = 256 if heads == 4 * kv_heads and max(counts) > 256 else 128
                self.assertEqual(one.queries, rows * kv_heads // heads if max(counts) > 64 else 64)
                needed = sum(-(-count // one.queries) for count in counts) * one.heads
                longest = len(counts) * -(-_cache_recipes.round_most(max(counts)) // 128) * heads
                self.assertGreaterEqual(one.tiles, needed)
                self.assertLessEqual(one.tiles, min(needed + len(counts) * one.heads, longest))

    @unittest.mock.patch.object(_cache_recipes, "MOST_SEQUENCES", 1)
    def test_refused(self):
        cache = Cache([3, 4], 64, True, 1)
        q, starts = torch.zeros(5, 2, 64).bfloat16(), torch.tensor([0, 2, 5], dtype=torch.int32)
        k = torch.zeros(7, 1, 64).bfloat16()
        for kind, text, arguments, options in (
            (
                NotImplementedError,
                "'dropout_p' is 0.1; no kernel drops weights",
                (q, k, k, starts, starts, 3, 4),
                {"dropout_p": 0.1},
            ),
            (ValueError, "'q' has 4 dimensions; it has 3", (q[None], k, k, starts, starts, 3, 4), {}),
            (
                ValueError,
                "'k' has 3 dimensions; beside a 'block_table' it has 4",
                (q, k, k, starts, starts, 3, 4),
                {"block_table": cache.table},
            ),
            (ValueError, "'max_seqlen_q' is -1; it is a number of queries", (q, k, k, starts, starts, -1, 4), {}),
            (ValueError, "'cu_seqlens_k' is None; without it", (q, k, k, starts, None, 3, 4), {}),
            (TypeError, "'cu_seqlens_q' has type torch.int64; it is int32", (q, k, k, starts.long(), starts, 3, 4), {}),
            (ValueError, r"'cu_seqlens_k' has shape \(2,\); with this 'q' it is \[3\]", (q, k, k, starts, starts[1:], 3, 4), {}),
            (
                NotImplementedError,
                "'invariant' is True; .* finds one of 1 sequences: 'cu_seqlens_q' has 2",
                (q, k, k, starts, starts, 3, 4),
                {"invariant": True},
            ),
        ):
            with self.assertRaisesRegex(kind, text):
                flash_attn_varlen_func(*arguments, **options)


if __name__ == "__main__":
    unittest.main()
