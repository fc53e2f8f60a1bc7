# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Attention over caches of 8 bits under queries of 16, on the interpreter: compared with f64 of what the elements stand for."""

import unittest

import problems
import torch
from caches import ShortCache
from problems import band, exact

from tessera.torch import flash_attn_varlen_func, flash_attn_with_kvcache, kv_append


class Meaning(problems.Interpreted):
    def test_lengths_and_pages(self):
        for paged, rows, queries, heads, options in (
            (False, 160, 1, 4, {}), (True, 64, 1, 3, {}), (True, 128, 2, 3, {"causal": True}), (True, 64, 70, 3, {"causal": True}),
            (True, 64, 1, 3, {"num_splits": 2}), (True, 16, 1, 3, {"num_splits": 2}), (True, 24, 70, 3, {"causal": True}),
        ):  # fmt: skip
            with self.subTest(f"{paged} {rows} {queries} {options}"):
                cache = ShortCache([130, 5, 0, 128], rows, paged, 1)
                q = torch.randn(4, queries, heads, 64, generator=torch.Generator().manual_seed(1)).bfloat16()
                out, lse = flash_attn_with_kvcache(q, cache.k, cache.v, return_softmax_lse=True, **cache.named, **options)
                want, want_lse = cache.expect(q, right=0 if options.get("causal") else None)
                problems.assert_close(self, out, want, options)
                self.assertTrue(torch.allclose(lse.double(), want_lse, atol=2e-3), options)

    def test_several_queries(self):
        """Rows as columns of the products, up to 32 of them, and a tile of 64 rows where a group's heads are no power of 2."""
        for d, paged, rows, queries, heads, kv_heads in (
            (64, False, 160, 4, 8, 2), (128, True, 64, 8, 8, 2), (192, True, 64, 2, 16, 2), (256, False, 160, 4, 4, 2),
            (64, True, 64, 4, 14, 2), (64, True, 16, 4, 8, 2), (128, False, 160, 16, 8, 2),
        ):  # fmt: skip
            cache = ShortCache([130, 5, 0, 128], rows, paged, kv_heads, d)
            q = torch.randn(4, queries, heads, d, generator=torch.Generator().manual_seed(1)).bfloat16()
            for options in ({}, {"num_splits": 2}):
                out, lse = flash_attn_with_kvcache(q, cache.k, cache.v, causal=True, return_softmax_lse=True, **cache.named, **options)
                want, want_lse = cache.expect(q, right=0)
                problems.assert_close(self, out, want, (d, rows, queries, heads))
                self.assertTrue(torch.allclose(lse.double(), want_lse, atol=2e-3), (d, rows, queries, heads))

    def test_masks_and_scores(self):
        """Windows, soft caps, slopes, chunks, flags of sequences and prefixes."""
        slopes, lengths = torch.tensor([0.5, 0.1]), [130, 5, 70]
        flags, prefixes = (torch.tensor(x, dtype=torch.int32) for x in ([0, 1, 0], [40, 2, 0]))
        for rows, queries in ((16, 1), (64, 3)):
            cache = ShortCache(lengths, rows, True, 1)
            q = torch.randn(3, queries, 2, 64, generator=torch.Generator().manual_seed(4)).bfloat16()
            for options, visible, scores in (
                ({"causal": True, "window_size": (50, -1)}, lambda b, q, k: (k <= q) & (k >= q - 50), {}),
                ({"softcap": 3.0}, None, {"softcap": 3.0}),
                ({"alibi_slopes": slopes}, None, {"slopes": slopes}),
                ({"causal": True, "attention_chunk": 32}, lambda b, q, k: (k <= q) & (k // 32 == q // 32), {}),
                ({"causal": flags}, lambda b, q, k: (k <= q) | (flags[b] == 0), {}),
                (
                    {"causal": True, "window_size": (20, 0), "prefix_lens": prefixes},
                    lambda b, q, k: (k <= q) & ((k >= q - 20) | (k < prefixes[b])), {},
                ),
            ):  # fmt: skip
                out = flash_attn_with_kvcache(q, cache.k, cache.v, **cache.named, **options)
                for b, length in enumerate(lengths):
                    own, k, v = (x[b].transpose(0, 1)[None] for x in (q, cache.keys, cache.values))
                    places = torch.arange(length - queries, length)[:, None], torch.arange(length)
                    want = exact(own, k, v, None if visible is None else visible(b, *places), **scores)[0][0].transpose(0, 1)
                    problems.assert_close(self, out[b], want, (rows, queries, options))

    def test_packed_queries(self):
        cache, counts = ShortCache([130, 5, 70], 64, True, 2, dtype=torch.float16), [3, 1, 65]
        starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
        q = torch.randn(sum(counts), 4, 64, generator=torch.Generator().manual_seed(2)).half()
        out = flash_attn_varlen_func(
            q, cache.k, cache.v, starts, None, max(counts), 0, causal=True, block_table=cache.table, seqused_k=cache.seqlens,
            **cache.descales,
        )  # fmt: skip
        for b, count in enumerate(counts):
            own, k, v = (x.transpose(0, 1)[None] for x in (q[starts[b] : starts[b + 1]], cache.keys[b], cache.values[b]))
            want = exact(own, k, v, band(count, k.shape[2], right=0))[0][0].transpose(0, 1)
            problems.assert_close(self, out[starts[b] : starts[b + 1]], want, b)

    def test_packed_keys(self):
        """Keys of 8 bits one behind the other, whose sequences each have numbers of their own."""
        cache, counts = ShortCache([130, 5, 70], 64, True, 2), [3, 5, 70]
        starts, starts_k = (torch.tensor([0, *own]).cumsum(0).to(torch.int32) for own in (counts, cache.lengths))
        q = torch.randn(sum(counts), 4, 64, generator=torch.Generator().manual_seed(5)).bfloat16()
        k, v = (
            torch.cat([(own[b].float() / scales[b][:, None]).to(torch.float8_e4m3fn) for b in range(3)])
            for own, scales in zip((cache.keys, cache.values), cache.descales.values())
        )  # fmt: skip
        for options in ({}, {"window_size": (40, -1)}, {"invariant": True}):
            out = flash_attn_varlen_func(q, k, v, starts, starts_k, 70, 130, causal=True, **cache.descales, **options)
            for b, count in enumerate(counts):
                own, keys, values = (x.transpose(0, 1)[None] for x in (q[starts[b] : starts[b + 1]], cache.keys[b], cache.values[b]))
                visible = band(count, keys.shape[2], options.get("window_size", (None,))[0], 0)
                want = exact(own, keys, values, visible)[0][0].transpose(0, 1)
                problems.assert_close(self, out[starts[b] : starts[b + 1]], want, (b, options))

    def test_rounded_by_append(self):
        """What kv_append stores by a scale stands for what was appended. Scales of a layer are one number for all heads."""
        generator = torch.Generator().manual_seed(3)
        k, v = (torch.randn(70, 2, 64, generator=generator).bfloat16() for _ in "kv")
        caches = [torch.full((3, 64, 2, 64), torch.nan).to(torch.float8_e4m3fn) for _ in "kv"]
        scales = {"k_scale": torch.tensor([0.02]), "v_scale": torch.tensor([0.01])}
        table = torch.tensor([[2, 1]], dtype=torch.int32)
        slots = torch.tensor([int(table[0, i // 64]) * 64 + i % 64 for i in range(70)])
        kv_append(k, v, *caches, slots, **scales)
        q = torch.randn(1, 1, 4, 64, generator=generator).bfloat16()
        out = flash_attn_with_kvcache(
            q, *caches, cache_seqlens=torch.tensor([70], dtype=torch.int32), page_table=table,
            k_descale=scales["k_scale"].expand(1, 2), v_descale=scales["v_scale"].expand(1, 2),
        )  # fmt: skip
        rounded = [(x.float() / s).to(torch.float8_e4m3fn).double() * s.double() for x, s in zip((k, v), scales.values())]
        want = exact(*(x.transpose(0, 1)[None] for x in (q[0], *rounded)))[0].transpose(1, 2)
        problems.assert_close(self, out, want)

    def test_refusals(self):
        cache, q = ShortCache([70], 64, True, 2), torch.randn(1, 1, 4, 64).bfloat16()

        def refused(error, text, k=cache.k, v=cache.v, table=cache.table, **options):
            named = {**cache.named, "page_table": table, **options}
            with self.assertRaisesRegex(error, text):
                flash_attn_with_kvcache(q, k, v, **named)

        refused(TypeError, "argument 'v_cache' has type torch.bfloat16; .* or float8_e4m3fn", v=cache.v.bfloat16())
        refused(TypeError, "argument 'k_cache' has type torch.float8_e5m2", *(x.to(torch.float8_e5m2) for x in (cache.k, cache.v)))
        refused(ValueError, r"argument 'k_descale' .* it is float32, \[1, 2\]", k_descale=cache.descales["k_descale"].half())
        refused(ValueError, r"argument 'v_descale' .* it is float32, \[1, 2\]", v_descale=cache.descales["v_descale"][:, :1])
        refused(TypeError, "v_descale", v_descale=1.0)
        with self.assertRaisesRegex(NotImplementedError, "argument 'k' is given; a cache of 8 bits"):
            new = torch.randn(1, 1, 2, 64).bfloat16()
            flash_attn_with_kvcache(q, cache.k, cache.v, new, new, **cache.named)
        with self.assertRaisesRegex(NotImplementedError, "argument 'k_descale' is given; caches of 16 bits"):
            flash_attn_with_kvcache(q, cache.k.bfloat16(), cache.v.bfloat16(), **cache.named)


if __name__ == "__main__":
    unittest.main()
