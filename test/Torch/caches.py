"""Caches for the tests, and what attention over them is. All that no length reaches is NaN, and entries of tables behind the last page are
no pages."""

import math

import torch
from problems import band, exact

NAN = math.nan


class Cache:
    """Keys and values of sequences of some lengths, in pages or with one place for each."""

    #: What elements of each sequence and head are multiplied by, by name.
    descales = {}

    def __init__(self, lengths, rows, paged, kv_heads, d=64, dv=None, dtype=torch.bfloat16):
        self.lengths, self.paged, batch = lengths, paged, len(lengths)
        most = max(1, -(-max(lengths) // rows)) if paged else 1
        count, generator = batch * most + 2, torch.Generator().manual_seed(sum(lengths))
        self.k, self.v = (torch.full((count, rows, kv_heads, width), NAN, dtype=dtype) for width in (d, dv or d))
        self.table = torch.full((batch, most), -777777, dtype=torch.int32)
        numbers = torch.randperm(count, generator=generator).tolist()
        self.keys, self.values = [], []
        for b, length in enumerate(lengths):
            for cache, own in ((self.k, self.keys), (self.v, self.values)):
                own.append(torch.randn(length, kv_heads, cache.shape[3], generator=generator).to(dtype))
            for j in range(-(-length // rows) if paged else 1):
                self.table[b, j] = numbers.pop()
            self.store(b)

    def store(self, b):
        """Stores the keys and values of sequence b in its places."""
        rows = self.k.shape[1]
        for cache, own in ((self.k, self.keys[b]), (self.v, self.values[b])):
            for j, part in enumerate(own.split(rows) if len(own) else ()):
                cache[self.table[b, j], : len(part)] = part

    def take(self, other, b):
        """Stores the elements that sequence b of another cache in pages has, as those of the own sequence b."""
        for own, theirs in ((self.k, other.k), (self.v, other.v)):
            own, rows = own.view(torch.uint8), theirs.view(torch.uint8)[other.table[b]].flatten(0, 1)[: self.lengths[b]]
            for j, part in enumerate(rows.split(own.shape[1])):
                own[self.table[b, j], : len(part)] = part

    @property
    def places(self):
        return {"page_table": self.table} if self.paged else {"cache_batch_idx": self.table[:, 0].contiguous()}

    @property
    def seqlens(self):
        return torch.tensor(self.lengths, dtype=torch.int32)

    def expect(self, q, left=None, right=None, **options):
        """(output [B, SQ, H, DV], LSE) in f64."""
        outs, lses = [], []
        for own, k, v in zip(q, self.keys, self.values):
            own, k, v = (x.transpose(0, 1)[None] for x in (own, k, v))
            visible = band(own.shape[2], k.shape[2], left, right)
            out, lse = exact(own, k, v, visible, **options)
            outs.append(out[0].transpose(0, 1)), lses.append(lse[0])
        return torch.stack(outs), torch.stack(lses)


class ShortCache(Cache):
    """A cache of which elements, and what each sequence and head multiplies them by, say what keys and values are."""

    def __init__(self, lengths, rows, paged, kv_heads, d=64, dv=None, dtype=torch.bfloat16):
        super().__init__(lengths, rows, paged, kv_heads, d, dv, dtype)
        shape = len(lengths), kv_heads
        scales = torch.arange(1, 1 + shape[0] * shape[1]).view(shape) / 8
        self.descales = {"k_descale": scales, "v_descale": scales.flip(0) + 0.3}
        self.k, self.v = self.k.to(torch.float8_e4m3fn), self.v.to(torch.float8_e4m3fn)
        for own, scales in zip((self.keys, self.values), self.descales.values()):
            for b, x in enumerate(own):
                own[b] = x.to(torch.float8_e4m3fn).double() * scales[b][:, None]

    @property
    def named(self):
        return {"cache_seqlens": self.seqlens, **self.descales, **self.places}
