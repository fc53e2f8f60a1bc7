# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Attention in parts of a fixed number of keys, and of packed queries, on the interpreter: what gives a query the same bits."""

import unittest

import problems
import torch
from caches import NAN, Cache, ShortCache

from tessera.torch import flash_attn_varlen_func, flash_attn_with_kvcache

KEYS, PART = 150, 128


class Invariance(problems.Interpreted):
    kind = Cache

    def setUp(self):
        super().setUp()
        self.cache = self.kind([KEYS, 70, 0], 64, True, 1)
        self.q = torch.randn(1, KEYS, 2, 64, generator=torch.Generator().manual_seed(3)).bfloat16()
        # Queries whose scores do not have the range of the others.
        self.q[:, 60:64] *= 200

    def attend(self, first, past, cache=None, places=None, **options):
        """Output and LSE of queries of the first sequence, of which the keys up to the last one are there."""
        cache = self.cache if cache is None else cache
        places = {name: number[:1] for name, number in cache.places.items()} if places is None else places
        descales = {name: number[:1] for name, number in self.cache.descales.items()}
        lengths = torch.tensor([past], dtype=torch.int32)
        out, lse = flash_attn_with_kvcache(
            self.q[:, first:past], cache.k, cache.v, cache_seqlens=lengths, causal=True, keys_per_part=PART, return_softmax_lse=True,
            **places, **descales, **options,
        )  # fmt: skip
        return torch.cat([out, lse.transpose(1, 2)[..., None]], 3)

    def check(self, whole, ends, cache=None, **options):
        """That pieces of the prompt, up to each of `ends`, have the bits of the whole."""
        for first, past in zip((0, *ends), ends):
            self.assertTrue(torch.equal(self.attend(first, past, cache, **options), whole[:, first:past]), (first, past, options))

    def test_cuts(self):
        for options in ({}, {"window_size": (50, -1)}, {"softcap": 3.0}, {"sinks": torch.tensor([0.5, -1.0])}):
            whole = self.attend(0, KEYS, **options)
            for ends in ((KEYS,), (1, KEYS), (KEYS - 1, KEYS), (KEYS // 2, KEYS), (64, 65, 128, 130, KEYS)):
                self.check(whole, ends, **options)

    def test_pages(self):
        """Pages of any number of rows, a cache without pages, and a table that has room for more parts."""
        whole = self.attend(0, KEYS)
        for rows, paged in ((16, True), (24, True), (128, True), (KEYS, False), (320, False)):
            cache = self.kind([KEYS], rows, paged, 1)
            cache.take(self.cache, 0)
            self.check(whole, (KEYS - 1, KEYS), cache)
        table = self.cache.places["page_table"][:1]
        for pages in (1, 20):
            longer = torch.cat([table, torch.full((1, pages), 99, dtype=torch.int32)], 1)
            self.check(whole, (KEYS,), places={"page_table": longer})

    def test_batches(self):
        """Beside any other sequences, at any place among them."""
        whole, cache = self.attend(0, KEYS), self.cache
        for count in (1, 40):
            q = torch.randn(3, count, 2, 64, generator=torch.Generator().manual_seed(4)).bfloat16()
            q[0] = self.q[0, KEYS - count :]
            for order in ([0, 1, 2], [2, 1, 0], [1, 0, 0]):
                out = flash_attn_with_kvcache(
                    q[order], cache.k, cache.v, cache_seqlens=cache.seqlens[order], causal=True, keys_per_part=PART,
                    page_table=cache.table[order], **{name: number[order] for name, number in cache.descales.items()},
                )  # fmt: skip
                self.assertTrue(torch.equal(out[order.index(0)], whole[0, KEYS - count :, :, :64]), (count, order))

    def attend_packed(self, q, counts, most, k=None, v=None, keys=None, **pages):
        starts, starts_k = (None if own is None else torch.tensor([0, *own]).cumsum(0).to(torch.int32) for own in (counts, keys))
        return flash_attn_varlen_func(q, k, v, starts, starts_k, most, 0, causal=True, invariant=True, **pages)

    def test_packed_queries(self):
        """Over pages."""
        cache, other, attend = self.cache, torch.ones(3, 2, 64).bfloat16(), self.attend_packed

        def find_descales(order):
            return {name: number[order] for name, number in cache.descales.items()}

        pages = {"seqused_k": cache.seqlens[:1], "block_table": cache.table[:1], **find_descales([0])}
        whole = attend(self.q[0], [KEYS], KEYS, cache.k, cache.v, **pages)
        for first, past in ((0, 1), (1, KEYS), (KEYS - 1, KEYS), (0, 64), (64, 130)):
            q, lengths = torch.cat([other, self.q[0, first:past]]), torch.tensor([70, past], dtype=torch.int32)
            pages = {"seqused_k": lengths, "block_table": cache.table[[1, 0]], **find_descales([1, 0])}
            out = attend(q, [3, past - first], max(3, past - first), cache.k, cache.v, **pages)
            self.assertTrue(torch.equal(out[3:], whole[first:past]), (first, past))
            # Between a sequence without queries and a long one.
            q, lengths = torch.cat([self.q[0, first:past], self.q[0]]), torch.tensor([9, past, KEYS], dtype=torch.int32)
            pages = {"seqused_k": lengths, "block_table": cache.table[[1, 0, 0]], **find_descales([1, 0, 0])}
            out = attend(q, [0, past - first, KEYS], KEYS, cache.k, cache.v, **pages)
            self.assertTrue(torch.equal(out, torch.cat([whole[first:past], whole])), (first, past))

    def test_packed_keys(self):
        """Beside other sequences, and where a prompt is cut."""
        cache, other = self.cache, torch.ones(3, 2, 64).bfloat16()
        rows = (own.view(torch.uint8)[cache.table[0]].flatten(0, 1)[:40].view(own.dtype) for own in (cache.k, cache.v))
        k, v = (torch.cat([torch.ones(3, 1, 64).to(own.dtype), own]) for own in rows)

        def attend(order, *given):
            return self.attend_packed(*given, **{name: number[order] for name, number in cache.descales.items()})

        alone = attend([0], self.q[0, :40], [40], 40, k[3:], v[3:], [40])
        both = attend([1, 0], torch.cat([other, self.q[0, :40]]), [3, 40], 200, k, v, [3, 40])
        self.assertTrue(torch.equal(both[3:], alone))
        for first, past in ((0, 1), (1, 40), (39, 40)):
            keys, values = (torch.cat([x[: 3 + past], torch.full((1, 1, 64), NAN).to(x.dtype)]) for x in (k, v))
            q = torch.cat([other, self.q[0, first:past]])
            out = attend([1, 0], q, [3, past - first], 40, keys, values, [3, past])
            self.assertTrue(torch.equal(out[3:], alone[first:past]), (first, past))


class Short(Invariance):
    """Of caches of 8 bits."""

    kind = ShortCache


if __name__ == "__main__":
    unittest.main()
