# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Latent attention over caches in pages, on the interpreter: compared with f64. All that no length reaches is NaN, and entries of
tables behind the last page are no pages."""

import math
import unittest

import problems
import torch
from latent_rows import pack

from tessera.torch import get_mla_metadata, mla_sparse, mla_with_kvcache


def make(lengths, page, dtype=torch.float16):
    """(cache, table, lengths, rows of each sequence)"""
    generator = torch.Generator().manual_seed(sum(lengths))
    most = max(1, -(-max(lengths) // page))
    cache = torch.full((len(lengths) * most + 1, page, 1, 576), math.nan, dtype=dtype)
    table = torch.full((len(lengths), most), -777777, dtype=torch.int32)
    numbers, sequences = torch.randperm(len(cache), generator=generator).tolist(), []
    for b, length in enumerate(lengths):
        sequences.append(torch.randn(length, 576, generator=generator).to(dtype))
        for j in range(-(-length // page)):
            table[b, j] = number = numbers.pop()
            part = sequences[b][j * page : (j + 1) * page]
            cache[number, : len(part), 0] = part
    return cache, table, torch.tensor(lengths, dtype=torch.int32), sequences


def expect(q, sequences, causal, scale, precision=torch.float64):
    """Output and LSE, computed in a precision; in float32 with weights of the type of q, as products take them."""
    outs, lses = [], []
    for own, rows in zip(q.to(precision), sequences):
        rows, count = rows.to(precision), own.shape[0]
        scores = scale * torch.einsum("qhd,kd->hqk", own, rows)
        if causal:
            seen = torch.arange(len(rows))[None] <= torch.arange(count)[:, None] + len(rows) - count
            scores = scores.masked_fill(~seen, -math.inf)
        lses.append(scores.logsumexp(-1))
        weights = (scores - scores.amax(-1, keepdim=True)).exp().nan_to_num(0) if len(rows) else scores
        products = weights if precision == torch.float64 else weights.to(q.dtype).to(precision)
        sums = weights.sum(-1).masked_fill(~weights.any(-1), 1)
        outs.append(torch.einsum("hqk,kd->qhd", products / sums[..., None], rows[:, :512]))
    return torch.stack(outs), torch.stack(lses)


class Meaning(problems.Interpreted):
    def check(self, lengths, heads, rows, page=64, dtype=torch.float16, causal=True, packs=False, **options):
        cache, table, seqlens, sequences = make(lengths, page, dtype)
        if packs:
            cache, sequences = pack(cache)[0], [pack(own)[1] for own in sequences]
        q = torch.randn(len(lengths), rows, heads, 576, generator=torch.Generator().manual_seed(1)).to(dtype)
        scale = options.get("softmax_scale", 576**-0.5)
        out, lse = mla_with_kvcache(q, cache, table, seqlens, causal=causal, **options)
        exact, exact_lse = expect(q, sequences, causal, scale)
        rounded, _ = expect(q, sequences, causal, scale, torch.float32)
        if "attn_sink" in options:
            # The sink takes its part of all weights.
            kept = torch.sigmoid(exact_lse - options["attn_sink"].double()[:, None]).nan_to_num(0).transpose(1, 2)[..., None]
            exact, rounded = exact * kept, rounded * kept.float()
        allowed = 2 * (rounded.to(dtype) - exact).abs().max().item() + 1e-6
        self.assertLessEqual((out - exact).abs().max().item(), allowed)
        torch.testing.assert_close(lse, exact_lse.float(), rtol=1e-5, atol=1e-5)

    def test_lengths(self):
        self.check([0, 1, 63, 64, 65, 130], 16, 1)

    def test_several_queries(self):
        self.check([2, 3, 66, 131], 4, 3, page=128)
        self.check([5, 70], 4, 3, causal=False)
        self.check([200], 2, 40)

    def test_heads(self):
        for heads in (1, 3, 24, 128):
            with self.subTest(heads=heads):
                self.check([100], heads, 1, dtype=torch.bfloat16)

    def test_parts(self):
        self.check([0, 64, 200, 333], 16, 1, page=64, keys_per_part=128)
        self.check([700], 16, 2, page=192)

    def test_shares(self):
        # Equal shares of two steps, some of which have parts of two sequences or the middle of one.
        self.check([700, 10, 0, 1200, 65], 16, 1)
        self.check([128] * 5, 24, 2, page=128)
        # Many sequences of few parts, which are joined by heads.
        self.check([600] + [70] * 17, 8, 2, dtype=torch.bfloat16)

    def test_few_sequences(self):
        """More parts of a sequence than a step of joining has, or as many as are loaded together."""
        self.check([5000], 64, 1, dtype=torch.bfloat16)
        self.check([1700, 3], 8, 2, page=128, attn_sink=torch.linspace(-2, 2, 8))
        self.check([900, 1200], 6, 1)

    def test_sinks(self):
        sinks = torch.tensor([-math.inf, -3.0, 0.5, 9.0] * 4)
        self.check([0, 1, 64, 300], 16, 1, attn_sink=sinks)
        self.check([5, 700], 16, 3, attn_sink=sinks)
        self.check([300, 70], 16, 2, attn_sink=sinks, keys_per_part=128)
        self.check([300, 70], 16, 1, attn_sink=sinks, keys_per_part=512)
        self.check([600] + [70] * 17, 8, 1, attn_sink=sinks[:8])

    def test_many_short(self):
        self.check([30, 0, 64] * 25, 1, 1)

    def test_short_pages(self):
        for page in (1, 8, 16, 32, 40):
            with self.subTest(page=page):
                self.check([0, 1, page, 130], 16, 1, page=page)
        self.check([700, 10, 0, 65], 16, 3, page=16)
        self.check([300, 70], 8, 1, page=8, attn_sink=torch.linspace(-2, 2, 8), keys_per_part=128)

    def test_bytes(self):
        """Pages of rows of 8 bits, by shares of the keys and by parts."""
        for page in (16, 32, 64, 24):
            with self.subTest(page=page):
                self.check([0, 1, page, 130], 16, 1, page=page, dtype=torch.bfloat16, packs=True)
        self.check([300, 70], 8, 3, page=16, dtype=torch.bfloat16, packs=True, attn_sink=torch.linspace(-2, 2, 8), keys_per_part=128)

    def test_metadata(self):
        cache, table, seqlens, sequences = make([900, 0, 130, 500], 64)
        q = torch.randn(4, 1, 16, 576, generator=torch.Generator().manual_seed(1)).half()
        own, own_lse = mla_with_kvcache(q, cache, table, seqlens)
        metadata = get_mla_metadata(seqlens, 16, 1)
        self.assertTrue(torch.equal(own, mla_with_kvcache(q, cache, table, seqlens, 512, *metadata)[0]))
        # Those of other lengths leave no key out.
        for lengths in ([1, 900, 130, 2000], [0, 0, 0, 0], [5000, 5000, 5000, 5000]):
            metadata = get_mla_metadata(torch.tensor(lengths, dtype=torch.int32), 16)
            out, lse = mla_with_kvcache(q, cache, table, seqlens, 512, *metadata)
            torch.testing.assert_close(out, own, rtol=0, atol=2e-3)
            torch.testing.assert_close(lse, own_lse, rtol=1e-5, atol=1e-5)

    def test_scale(self):
        self.check([90], 16, 1, softmax_scale=0.2)

    def test_value_alone(self):
        """Rows whose 512 numbers are key and value."""
        for page in (64, 16):
            cache, table, seqlens, sequences = make([0, 1, 130], page)
            q = torch.randn(3, 2, 8, 512, generator=torch.Generator().manual_seed(1)).half()
            out, lse = mla_with_kvcache(q, cache[..., :512], table, seqlens, causal=True, softmax_scale=0.05)
            rows = [own[:, :512] for own in sequences]
            exact, exact_lse = expect(q, rows, True, 0.05)
            rounded, _ = expect(q, rows, True, 0.05, torch.float32)
            self.assertLessEqual((out - exact).abs().max().item(), 2 * (rounded.half() - exact).abs().max().item() + 1e-6)
            torch.testing.assert_close(lse, exact_lse.float(), rtol=1e-5, atol=1e-5)

    def test_strided(self):
        cache, table, seqlens, _ = make([100, 70], 64)
        q = torch.randn(2, 1, 16, 600).half()[..., :576]
        wide = torch.zeros(len(cache), 64, 1, 640, dtype=torch.float16)[..., :576]
        wide.copy_(cache)
        out, _ = mla_with_kvcache(q, wide, table, seqlens)
        self.assertTrue(torch.equal(out, mla_with_kvcache(q.contiguous(), cache, table, seqlens)[0]))

    def test_nothing(self):
        cache, table, seqlens, _ = make([1], 64)
        out, lse = mla_with_kvcache(torch.zeros(0, 1, 4, 576).half(), cache, table[:0], seqlens[:0])
        self.assertEqual((tuple(out.shape), tuple(lse.shape)), ((0, 1, 4, 512), (0, 4, 1)))


class Lists(problems.Interpreted):
    """Rows that lists name, in any order, some twice, and no rows: what none names is NaN."""

    def make(self, count, topk, rows=500, dtype=torch.float16):
        """(rows, lists)"""
        generator = torch.Generator().manual_seed(topk)
        named = torch.randperm(rows, generator=generator)[: rows // 2]
        lists = named[torch.randint(len(named), (count, topk), generator=generator)].int()
        lists[:, 3::7] = torch.tensor([-1, rows, 2**31 - 1, -(2**31)], dtype=torch.int32).repeat(topk)[: lists[:, 3::7].shape[1]]
        kv = torch.full((rows, 1, 576), math.nan, dtype=dtype)
        kv[named, 0] = torch.randn(len(named), 576, generator=generator).to(dtype)
        return kv, lists

    def compare(self, out, largest, lse, q, kv, lists, scale, lengths=None, sinks=None):
        """out [N, H, 512], and largest and lse [N, H], with what f64 gives."""
        for n, own in enumerate(lists):
            own = own if lengths is None else own[: lengths[n]]
            own = own[(own >= 0) & (own < len(kv))].long()
            exact, exact_lse = expect(q[n : n + 1, None], [kv[own, 0]], False, scale)
            rounded, _ = expect(q[n : n + 1, None], [kv[own, 0]], False, scale, torch.float32)
            kept = 1 if sinks is None else torch.sigmoid(exact_lse[0] - sinks.double()[:, None]).nan_to_num(0)
            allowed = 2 * (rounded.to(q.dtype) - exact).abs().max().item() + 1e-6
            self.assertLessEqual((out[n] - exact[0, 0] * kept).abs().max().item(), allowed)
            torch.testing.assert_close(lse[n], exact_lse[0, :, 0].float(), rtol=1e-5, atol=1e-5)
            if largest is not None:
                scores = scale * q[n].double() @ kv[own, 0].double().T
                most = scores.amax(1) if len(own) else torch.full((q.shape[1],), -math.inf)
                torch.testing.assert_close(largest[n], most.float(), rtol=1e-5, atol=1e-5)

    def check(self, count, heads, topk, dtype=torch.float16, **options):
        kv, lists = self.make(count, topk, dtype=dtype)
        q = torch.randn(count, heads, 576, generator=torch.Generator().manual_seed(1)).to(dtype)
        results = mla_sparse(q, kv, lists[:, None], 0.04, **options)
        options.pop("keys_per_part", None)
        self.compare(*results, q, kv, lists, 0.04, options.get("topk_length"), options.get("attn_sink"))

    def test_tokens(self):
        self.check(3, 64, 100)
        self.check(2, 128, 64, dtype=torch.bfloat16)
        self.check(2, 24, 1)

    def test_lengths(self):
        self.check(5, 16, 130, topk_length=torch.tensor([0, 1, 64, 130, 77], dtype=torch.int32))
        # More than a list has are all of it.
        kv, lists = self.make(1, 70)
        q = torch.randn(1, 8, 576, generator=torch.Generator().manual_seed(1)).half()
        results = mla_sparse(q, kv, lists[:, None], 0.04, topk_length=torch.tensor([1000], dtype=torch.int32))
        self.compare(*results, q, kv, lists, 0.04)

    def test_parts_and_sinks(self):
        sinks = torch.linspace(-3, 6, 16)
        self.check(2, 16, 600, attn_sink=sinks)
        self.check(2, 16, 200, attn_sink=sinks, keys_per_part=256)
        self.check(2, 16, 200, topk_length=torch.tensor([10, 200], dtype=torch.int32), keys_per_part=64)

    def test_cache(self):
        """indices of mla_with_kvcache: rows of pages, a list for each query."""
        kv, lists = self.make(6, 90, rows=512)
        q = torch.randn(2, 3, 16, 576, generator=torch.Generator().manual_seed(1)).half()
        cache, indices = kv.view(8, 64, 1, 576), lists.view(2, 3, 90)
        for topk in (None, torch.tensor([0, 70], dtype=torch.int32)):
            out, lse = mla_with_kvcache(q, cache, None, None, softmax_scale=0.04, indices=indices, topk_length=topk)
            self.assertEqual((out.shape, lse.shape), ((2, 3, 16, 512), (2, 16, 3)))
            lengths = None if topk is None else topk.repeat_interleave(3)
            self.compare(out.flatten(0, 1), None, lse.transpose(1, 2).flatten(0, 1), q.flatten(0, 1), kv, lists, 0.04, lengths)

    def test_value_alone(self):
        kv, lists = self.make(3, 100)
        q = torch.randn(3, 64, 512, generator=torch.Generator().manual_seed(1)).half()
        results = mla_sparse(q, kv[..., :512], lists[:, None], 0.05)
        self.compare(*results, q, kv[..., :512], lists, 0.05)

    def test_bytes(self):
        for count, heads, topk, options in (
            (3, 64, 100, {}),
            (2, 24, 70, {"topk_length": torch.tensor([0, 66], dtype=torch.int32), "attn_sink": torch.linspace(-2, 2, 24)}),
            (2, 16, 300, {"keys_per_part": 128}),
        ):
            kv, lists = self.make(count, topk, dtype=torch.bfloat16)
            rows, meant = pack(kv)
            q = torch.randn(count, heads, 576, generator=torch.Generator().manual_seed(1)).bfloat16()
            results = mla_sparse(q, rows, lists[:, None], 0.04, **options)
            self.compare(*results, q, meant, lists, 0.04, options.get("topk_length"), options.get("attn_sink"))
        kv, lists = self.make(6, 90, rows=512, dtype=torch.bfloat16)
        rows, meant = pack(kv)
        q = torch.randn(2, 3, 16, 576, generator=torch.Generator().manual_seed(1)).bfloat16()
        wide = torch.zeros(8, 64, 1, 672, dtype=torch.uint8)
        wide[..., :656] = rows.view(8, 64, 1, 656)
        for cache in (rows.view(torch.float8_e4m3fn).view(8, 64, 1, 656), wide[..., :656]):
            out, lse = mla_with_kvcache(q, cache, None, None, softmax_scale=0.04, is_fp8_kvcache=True, indices=lists.view(2, 3, 90))
            self.compare(out.flatten(0, 1), None, lse.transpose(1, 2).flatten(0, 1), q.flatten(0, 1), meant, lists, 0.04)

    def test_nothing(self):
        kv, lists = self.make(2, 10)
        q = torch.zeros(2, 4, 576).half()
        for some in (q, kv, lists[:, None, :0]), (q, kv[:0], lists[:, None]), (q, kv, torch.full((2, 1, 10), -1, dtype=torch.int32)):
            out, largest, lse = mla_sparse(*some, 1.0)
            self.assertTrue((out == 0).all() and (largest == -math.inf).all() and (lse == -math.inf).all())


class Compiled(problems.Interpreted):
    """In compiled code each function is one op, and the graph has no break."""

    def test_compiled(self):
        cache, table, seqlens, _ = make([300, 0, 65], 64)
        q, sinks = torch.randn(3, 1, 8, 576, generator=torch.Generator().manual_seed(1)).half(), torch.zeros(8)

        def attend(q, cache, table, lengths):
            metadata = get_mla_metadata(lengths, 8)
            out, lse = mla_with_kvcache(q, cache, table, lengths, 512, *metadata, attn_sink=sinks)
            return (*metadata, out + 1, lse, mla_with_kvcache(q, cache, table, lengths, causal=True, keys_per_part=128)[0])

        want = attend(q, cache, table, seqlens)
        got = torch.compile(attend, fullgraph=True, backend="aot_eager")(q, cache, table, seqlens)
        self.compare(want, got)

    def test_lists(self):
        cache = make([300], 64)[0].nan_to_num(0)
        q = torch.randn(2, 3, 8, 576, generator=torch.Generator().manual_seed(1)).half()
        indices, lengths = torch.arange(60, dtype=torch.int32).view(2, 3, 10), torch.tensor([4, 10], dtype=torch.int32)

        def attend(q, cache, indices, lengths):
            out, lse = mla_with_kvcache(q, cache, None, None, indices=indices, topk_length=lengths)
            return out + 1, lse, *mla_sparse(q[:, 0], cache.flatten(0, 1), indices[:, :1], 0.1)

        want = attend(q, cache, indices, lengths)
        self.compare(want, torch.compile(attend, fullgraph=True, backend="aot_eager")(q, cache, indices, lengths))

    def compare(self, want, got):
        for one, other in zip(want, got):
            self.assertEqual((one.shape, one.stride(), one.dtype), (other.shape, other.stride(), other.dtype))
            self.assertTrue(torch.equal(one, other))


class Refusals(problems.Interpreted):
    def test_refusals(self):
        cache, table, seqlens, _ = make([100], 64)
        q = torch.zeros(1, 1, 16, 576, dtype=torch.float16)
        bytes_ = torch.zeros(2, 64, 1, 656, dtype=torch.uint8)
        given = {"q": q, "k_cache": cache, "block_table": table, "cache_seqlens": seqlens}
        for error, text, changed in (
            (ValueError, "argument 'topk_length' is given without 'indices'", {"topk_length": seqlens}),
            (TypeError, "argument 'indices' has type torch.int64; it is int32", {"indices": table[None].long()}),
            (ValueError, r"argument 'indices' has shape \(1, 2\); with this 'q' it is \[1, 1, any\]", {"indices": table}),
            (NotImplementedError, "argument 'causal' is True; the rows of a list have no order", {"indices": table[None], "causal": True}),
            (ValueError, r"argument 'topk_length' has shape \(2,\)", {"indices": table[None], "topk_length": seqlens.repeat(2)}),
            (ValueError, "argument 'k_cache' has strides .* a page follows the one before", {"indices": table[None], "k_cache": cache[:, :32]}),
            (ValueError, r"argument 'attn_sink' has shape \(8,\) and type torch.float32; with this 'q' it is \[16\]", {"attn_sink": torch.zeros(8)}),
            (ValueError, "argument 'attn_sink' has .* type torch.float16; .* of float32", {"attn_sink": torch.zeros(16).half()}),
            (ValueError, "argument 'is_fp8_kvcache' is True, and 'k_cache' has type torch.float16", {"is_fp8_kvcache": True}),
            (ValueError, "argument 'is_fp8_kvcache' is False, and 'k_cache' has type torch.uint8", {"is_fp8_kvcache": False, "k_cache": bytes_}),
            (TypeError, "argument 'q' has type torch.float16; beside rows of bytes", {"k_cache": bytes_}),
            (ValueError, r"argument 'k_cache' has shape \(2, 64, 1, 640\); it is \[pages, rows, 1, 656\]",
             {"q": q.bfloat16(), "k_cache": bytes_[..., :640], "indices": table[None]}),
            (ValueError, "argument 'k_cache' has strides .* multiples of 16 bytes",
             {"q": q.bfloat16(), "k_cache": torch.zeros(2, 64, 1, 660, dtype=torch.uint8)[..., :656], "indices": table[None]}),
            (NotImplementedError, "argument 'head_dim_v' is 256; values are the first 512", {"head_dim_v": 256}),
            (NotImplementedError, "argument 'q' requires a gradient", {"q": q.clone().requires_grad_()}),
            (NotImplementedError, "argument 'attn_sink' requires a gradient", {"attn_sink": torch.zeros(16, requires_grad=True)}),
            (TypeError, "argument 'k_cache' has type torch.bfloat16", {"k_cache": cache.bfloat16()}),
            (TypeError, "argument 'block_table' has type torch.int64; it is int32", {"block_table": table.long()}),
            (TypeError, "argument 'cache_seqlens' has type torch.int64", {"cache_seqlens": seqlens.long()}),
            (TypeError, "argument 'cache_seqlens'", {"cache_seqlens": 100}),
            (ValueError, r"argument 'q' has shape \(1, 1, 16, 320\); it is \[batch, queries, heads, 576 or 512\]", {"q": q[..., :320]}),
            (ValueError, r"argument 'k_cache' has shape \(3, 64, 1, 576\); it is \[pages, rows, 1, 512\]", {"q": q[..., :512].contiguous()}),
            (ValueError, "argument 'q' has 65 queries; kernels over a cache take up to 64", {"q": q.expand(1, 65, 16, 576).contiguous()}),
            (ValueError, "argument 'k_cache' has 2 heads", {"k_cache": cache.expand(-1, -1, 2, -1).contiguous()}),
            (ValueError, "argument 'k_cache' has pages of 1088 rows; kernels take up to 1024", {"k_cache": torch.zeros(2, 1088, 1, 576).half()}),
            (ValueError, "argument 'k_cache' has strides", {"k_cache": torch.zeros(3, 64, 1, 577).half()[..., 1:]}),
            (ValueError, r"argument 'cache_seqlens' has shape \(2,\)", {"cache_seqlens": seqlens.repeat(2)}),
            (ValueError, "argument 'keys_per_part' is 100; it is a multiple of 64", {"keys_per_part": 100}),
            (ValueError, "argument 'num_splits' is None; get_mla_metadata gives both", {"tile_scheduler_metadata": torch.zeros(3, 2).int()}),
            (ValueError, r"argument 'tile_scheduler_metadata' has shape \(2, 8\); with this 'q' it is \[3, any\]",
             {"tile_scheduler_metadata": torch.zeros(2, 8).int(), "num_splits": torch.zeros(2).int()}),
            (ValueError, r"argument 'num_splits' has shape \(3,\)",
             {"tile_scheduler_metadata": torch.zeros(3, 2).int(), "num_splits": torch.zeros(3).int()}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                mla_with_kvcache(**{**given, **changed})
        tokens = {"q": q[0], "kv": cache.flatten(0, 1), "indices": table[None], "sm_scale": 0.1}
        for error, text, changed in (
            (NotImplementedError, "argument 'd_v' is 256; values are the first 512", {"d_v": 256}),
            (ValueError, r"argument 'q' has shape \(1, 1, 16, 576\); it is \[tokens, heads, 576 or 512\]", {"q": q}),
            (ValueError, r"argument 'kv' has shape .*; it is \[rows, 1, 576\]", {"kv": cache}),
            (ValueError, "argument 'kv' has 2 heads", {"kv": cache.flatten(0, 1).expand(-1, 2, -1).contiguous()}),
            (ValueError, r"argument 'kv' has shape .*; it is \[rows, 1, 656\]", {"q": q[0].bfloat16(), "kv": bytes_}),
            (TypeError, "argument 'kv' has type torch.bfloat16; q and kv are float16", {"kv": cache.flatten(0, 1).bfloat16()}),
            (TypeError, "argument 'indices' has type torch.int64; it is int32", {"indices": table[None].long()}),
            (ValueError, "argument 'indices' has stride 2 in its last dimension", {"indices": torch.zeros(1, 1, 8).int()[..., ::2]}),
            (ValueError, r"argument 'attn_sink' has shape \(8,\)", {"attn_sink": torch.zeros(8)}),
            (ValueError, r"argument 'topk_length' has shape \(2,\)", {"topk_length": seqlens.repeat(2)}),
            (ValueError, "argument 'keys_per_part' is 100; it is a multiple of 64", {"keys_per_part": 100}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                mla_sparse(**{**tokens, **changed})
        for error, text, arguments in (
            (TypeError, "argument 'cache_seqlens' has type torch.int64; it is int32", (seqlens.long(), 16)),
            (ValueError, "argument 'num_q_tokens_per_head_k' is 0; it is a number above 0", (seqlens, 0)),
            (ValueError, "argument 'num_heads_k' is 2; it is 1", (seqlens, 16, 2)),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                get_mla_metadata(*arguments)


if __name__ == "__main__":
    unittest.main()
