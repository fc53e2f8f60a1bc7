# RUN: env TESSERA_LIBRARY=%build/lib %jax-python %s
"""Latent attention for JAX, on the interpreter: compared with f64. All that no length reaches and no list names is NaN, and entries of
tables behind the last page are no pages."""

import functools
import unittest

import jax
import jax.numpy as jnp
import numpy as np

import tessera.jax
from tessera.jax import get_mla_metadata, mla_sparse, mla_with_kvcache


def make(lengths, page, dtype=jnp.float16, width=576):
    """(cache, table, lengths, rows of each sequence)"""
    random = np.random.default_rng(sum(lengths))
    most = max(1, -(-max(lengths) // page))
    cache = np.full((len(lengths) * most + 1, page, 1, width), np.nan, np.float32)
    table = np.full((len(lengths), most), -777777, np.int32)
    numbers, sequences = list(random.permutation(len(cache))), []
    for b, length in enumerate(lengths):
        sequences.append(np.float32(jnp.asarray(random.standard_normal((length, width)), dtype)))
        for j in range(-(-length // page)):
            table[b, j] = number = numbers.pop()
            part = sequences[b][j * page : (j + 1) * page]
            cache[number, : len(part), 0] = part
    return jnp.asarray(cache, dtype), jnp.asarray(table), jnp.asarray(lengths, jnp.int32), sequences


def pack(kv):
    """Rows of bytes, and what they stand for, in float32."""
    values, rotary = np.split(np.float32(kv), [512], -1)
    parts = values.reshape(*values.shape[:-1], 4, 128)
    units = abs(parts).max(-1) / 448
    numbers = jnp.asarray(parts / units[..., None], jnp.float8_e4m3fn)
    rotary = jnp.asarray(rotary, jnp.bfloat16)
    meant = (np.float32(numbers) * units[..., None]).reshape(values.shape)
    rows = [np.ascontiguousarray(x).view(np.uint8) for x in (numbers.reshape(values.shape), units, rotary)]
    return np.concatenate(rows, -1), np.float32(jnp.asarray(np.concatenate([meant, np.float32(rotary)], -1), jnp.bfloat16))


def attend(q, rows, scale, seen=None, sinks=None, dtype=np.float64):
    """(output [SQ, H, 512], largest scores [H, SQ], LSE [H, SQ]) of the queries of a sequence, in a type."""
    q, rows = np.asarray(q, dtype), np.asarray(rows, dtype)
    scores = dtype(scale) * np.einsum("qhd,kd->hqk", q, rows)
    scores = scores if seen is None else np.where(seen, scores, -np.inf)
    most = scores.max(-1, initial=-np.inf)
    weights = np.exp(scores - np.maximum(most, -1e30)[..., None])
    sums = weights.sum(-1)
    with np.errstate(divide="ignore"):
        lse = np.log(sums) + np.maximum(most, -1e30)
    all_sums = sums if sinks is None else sums + np.exp(np.minimum(np.asarray(sinks, dtype)[:, None] - most, 80))
    weights = weights / np.where(sums == 0, 1, all_sums)[..., None]
    return np.einsum("hqk,kd->qhd", weights, rows[:, :512]), most, np.where(sums == 0, -np.inf, lse)


class Cases(unittest.TestCase):
    def setUp(self):
        self.addCleanup(tessera.jax.use_interpreter, tessera.jax.use_interpreter())

    def draw(self, *shape, dtype=jnp.float16):
        return jnp.asarray(np.random.default_rng(1).standard_normal(shape), dtype)

    def compare(self, out, numbers, q, rows, scale, seen=None, sinks=None):
        """An output [SQ, H, 512], and pairs of largest scores and LSE [H, SQ], None for those that are not there."""
        exact, *exact_numbers = attend(q, rows, scale, seen, sinks)
        rounded = jnp.asarray(attend(q, rows, scale, seen, sinks, np.float32)[0], out.dtype)
        allowed = 2 * abs(np.asarray(rounded, np.float64) - exact).max(initial=0) + 1e-6
        self.assertLessEqual(abs(np.asarray(out, np.float64) - exact).max(initial=0), allowed)
        for own, expected in zip(numbers, exact_numbers):
            if own is not None:
                np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-5)


class Pages(Cases):
    def check(self, lengths, heads, rows, page=64, dtype=jnp.float16, causal=True, width=576, packs=False, **options):
        cache, table, seqlens, sequences = make(lengths, page, dtype, width)
        if packs:
            cache, sequences = jnp.asarray(pack(cache)[0]), [pack(own)[1] for own in sequences]
        q = self.draw(len(lengths), rows, heads, width, dtype=dtype)
        run = jax.jit(functools.partial(mla_with_kvcache, softmax_scale=0.04, causal=causal, **options))
        out, lse = run(q, cache, table, seqlens)
        self.assertEqual((out.shape, out.dtype, lse.shape), ((len(lengths), rows, heads, 512), dtype, (len(lengths), heads, rows)))
        for b, own in enumerate(sequences):
            seen = np.arange(len(own)) <= np.arange(rows)[:, None] + len(own) - rows if causal else None
            self.compare(out[b], (None, lse[b]), q[b], own, 0.04, seen, options.get("attn_sink"))

    def test_one_query(self):
        self.check([0, 1, 64, 130], 16, 1)
        self.check([100], 3, 1, dtype=jnp.bfloat16)

    def test_several_queries(self):
        self.check([3, 131], 4, 3, page=128)
        self.check([5, 70], 4, 3, causal=False)

    def test_short_pages(self):
        for page in (1, 16, 40):
            self.check([0, 1, page, 90], 8, 1, page=page)

    def test_bytes(self):
        for page in (16, 64):
            self.check([0, 1, page, 90], 8, 1, page=page, dtype=jnp.bfloat16, packs=True)

    def test_value_alone(self):
        self.check([1, 90], 8, 2, width=512)

    def test_shares(self):
        """Parts that are joined by sequences, and by heads, with sinks."""
        sinks = jnp.linspace(-3, 6, 16, dtype=jnp.float32)
        self.check([700, 10, 0], 16, 1, attn_sink=sinks)
        self.check([600] + [70] * 17, 8, 1, attn_sink=sinks[:8])

    def test_parts(self):
        self.check([0, 64, 200], 16, 2, keys_per_part=128, attn_sink=jnp.linspace(-3, 6, 16, dtype=jnp.float32))
        self.check([200], 16, 1, keys_per_part=512)

    def test_contiguous(self):
        """A cache of rows behind each other is one of pages in their order."""
        rows = self.draw(2, 128, 1, 576)
        table = jnp.arange(4, dtype=jnp.int32).reshape(2, 2)
        q = self.draw(2, 1, 16, 576)
        out, lse = mla_with_kvcache(q, rows.reshape(4, 64, 1, 576), table, jnp.asarray([100, 7], jnp.int32), softmax_scale=0.04)
        for b, length in enumerate((100, 7)):
            self.compare(out[b], (None, lse[b]), q[b], rows[b, :length, 0], 0.04)

    def test_vmap(self):
        """One call after the other, here of lengths over one cache."""
        cache, table, _, sequences = make([90, 70], 64, jnp.float16)
        q, lengths = self.draw(2, 1, 4, 576), jnp.asarray([[90, 70], [5, 64]], jnp.int32)
        out, lse = jax.vmap(lambda own: mla_with_kvcache(q, cache, table, own, softmax_scale=0.04))(lengths)
        for i, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
            self.compare(out[i, b], (None, lse[i, b]), q[b], sequences[b][: lengths[i, b]], 0.04)

    def test_metadata(self):
        cache, table, seqlens, _ = make([900, 0, 130], 64)
        q = self.draw(3, 1, 16, 576)
        run = jax.jit(lambda *numbers: mla_with_kvcache(q, cache, table, seqlens, 512, *numbers))
        own, other = run(), run(*jax.jit(lambda x: get_mla_metadata(x, 16))(seqlens))
        for one, both in zip(own, other):
            np.testing.assert_array_equal(one, both)
        # Those of other lengths leave no key out.
        for lengths in ([1, 900, 130], [0, 0, 0]):
            out, lse = run(*get_mla_metadata(jnp.asarray(lengths, jnp.int32), 16))
            np.testing.assert_allclose(out, own[0], rtol=0, atol=2e-3)
            np.testing.assert_allclose(lse, own[1], rtol=1e-5)

    def test_nothing(self):
        cache, table, seqlens, _ = make([1], 64)
        out, lse = mla_with_kvcache(jnp.zeros((0, 1, 4, 576), jnp.float16), cache, table[:0], seqlens[:0])
        self.assertEqual((out.shape, lse.shape), ((0, 1, 4, 512), (0, 4, 1)))


class Lists(Cases):
    def make(self, count, topk, rows=500, dtype=jnp.float16):
        """(rows, lists), some of whose entries are no rows"""
        random = np.random.default_rng(topk)
        named = random.permutation(rows)[: rows // 2]
        lists = np.int32(named[random.integers(len(named), size=(count, topk))])
        lists[:, 3::7] = np.resize([-1, rows, 2**31 - 1, -(2**31)], lists[:, 3::7].shape)
        kv = np.full((rows, 1, 576), np.nan, np.float32)
        kv[named, 0] = np.float32(jnp.asarray(random.standard_normal((len(named), 576)), dtype))
        return kv, lists

    def compare_lists(self, out, largest, lse, q, kv, lists, lengths=None, sinks=None):
        for n, own in enumerate(lists):
            own = own if lengths is None else own[: lengths[n]]
            own = own[(own >= 0) & (own < len(kv))]
            numbers = None if largest is None else largest[n][:, None], lse[n][:, None]
            self.compare(out[n][None], numbers, q[n][None], kv[own, 0], 0.04, sinks=sinks)

    def check(self, count, heads, topk, keys_per_part=None, **options):
        kv, lists = self.make(count, topk)
        q = self.draw(count, heads, 576)
        run = jax.jit(functools.partial(mla_sparse, sm_scale=0.04, keys_per_part=keys_per_part))
        found = run(q, jnp.asarray(kv, jnp.float16), lists[:, None], **options)
        self.compare_lists(*found, q, kv, lists, options.get("topk_length"), options.get("attn_sink"))

    def test_tokens(self):
        self.check(2, 64, 100)
        self.check(3, 24, 70, topk_length=jnp.asarray([0, 66, 1000], jnp.int32), attn_sink=jnp.linspace(-2, 2, 24, dtype=jnp.float32))
        self.check(2, 16, 200, keys_per_part=128, attn_sink=jnp.linspace(-2, 2, 16, dtype=jnp.float32))

    def test_bytes(self):
        kv, lists = self.make(6, 90, rows=512, dtype=jnp.bfloat16)
        rows, meant = pack(kv)
        q = self.draw(6, 16, 576, dtype=jnp.bfloat16)
        for dtype in (np.uint8, np.int8, jnp.float8_e4m3fn):
            found = jax.jit(functools.partial(mla_sparse, sm_scale=0.04))(q, rows.view(dtype), lists[:, None])
            self.compare_lists(*found, q, meant, lists)
        cache, lengths = jnp.asarray(rows).reshape(8, 64, 1, 656), jnp.asarray([0, 70], jnp.int32)
        run = jax.jit(functools.partial(mla_with_kvcache, softmax_scale=0.04, is_fp8_kvcache=True))
        out, lse = run(q.reshape(2, 3, 16, 576), cache, None, None, indices=lists.reshape(2, 3, 90), topk_length=lengths)
        self.assertEqual((out.shape, lse.shape), ((2, 3, 16, 512), (2, 16, 3)))
        lse = lse.swapaxes(1, 2).reshape(6, 16)
        self.compare_lists(out.reshape(6, 16, 512), None, lse, q, meant, lists, np.repeat(lengths, 3))

    def test_nothing(self):
        kv, lists = self.make(2, 10)
        q = self.draw(2, 4, 576)
        for some in (q, kv, lists[:, None, :0]), (q, kv[:0], lists[:, None]), (q, kv, np.full((2, 1, 10), -1, np.int32)):
            out, largest, lse = mla_sparse(some[0], jnp.asarray(some[1], jnp.float16), some[2], 1.0)
            self.assertTrue((out == 0).all() and (largest == -np.inf).all() and (lse == -np.inf).all())


class Refusals(unittest.TestCase):
    """Those of shapes and types are the ones of tessera.torch (test/Torch/latent.py), from one place."""

    def refuse(self, error, text, function, given):
        with self.subTest(text), self.assertRaisesRegex(error, text):
            function(**given)

    def test_pages(self):
        cache, table, seqlens, _ = make([100], 64)
        q, bytes_ = jnp.zeros((1, 1, 16, 576), jnp.float16), jnp.zeros((2, 64, 1, 656), jnp.uint8)
        given = {"q": q, "k_cache": cache, "block_table": table, "cache_seqlens": seqlens}
        for error, text, changed in (
            (ValueError, "argument 'topk_length' is given without 'indices'", {"topk_length": seqlens}),
            (TypeError, "argument 'block_table' is None; it is an array", {"block_table": None}),
            (TypeError, "argument 'cache_seqlens' is of type int; it is an array", {"cache_seqlens": 100}),
            (TypeError, "argument 'indices' has type float32; it is int32", {"indices": jnp.zeros((1, 1, 4), jnp.float32)}),
            (ValueError, r"argument 'indices' has shape \(1, 2\); with this 'q' it is \[1, 1, any\]", {"indices": table}),
            (NotImplementedError, "argument 'causal' is True; the rows of a list", {"indices": table[None], "causal": True}),
            (ValueError, r"argument 'attn_sink' has shape \(8,\)", {"attn_sink": jnp.zeros(8, jnp.float32)}),
            (ValueError, "argument 'attn_sink' has .* type float16", {"attn_sink": jnp.zeros(16, jnp.float16)}),
            (ValueError, "argument 'is_fp8_kvcache' is True, and 'k_cache' has type float16", {"is_fp8_kvcache": True}),
            (TypeError, "argument 'q' has type float16; beside rows of bytes", {"k_cache": bytes_, "indices": table[None]}),
            (NotImplementedError, "argument 'head_dim_v' is 256; values are the first 512", {"head_dim_v": 256}),
            (TypeError, "argument 'k_cache' has type bfloat16; q and k_cache are float16", {"k_cache": cache.astype(jnp.bfloat16)}),
            (ValueError, r"argument 'q' has shape \(1, 1, 16, 320\)", {"q": q[..., :320]}),
            (ValueError, "argument 'q' has 65 queries", {"q": jnp.zeros((1, 65, 16, 576), jnp.float16)}),
            (ValueError, "argument 'k_cache' has 2 heads", {"k_cache": jnp.repeat(cache, 2, 2)}),
            (ValueError, "argument 'k_cache' has pages of 1088 rows", {"k_cache": jnp.zeros((2, 1088, 1, 576), jnp.float16)}),
            (ValueError, r"argument 'cache_seqlens' has shape \(2,\)", {"cache_seqlens": jnp.zeros(2, jnp.int32)}),
            (ValueError, "argument 'keys_per_part' is 100; it is a multiple of 64", {"keys_per_part": 100}),
            (ValueError, "argument 'num_splits' is None", {"tile_scheduler_metadata": jnp.zeros((3, 4), jnp.int32)}),
            (ValueError, r"argument 'num_splits' has shape \(3,\)",
             {"tile_scheduler_metadata": jnp.zeros((3, 4), jnp.int32), "num_splits": jnp.zeros(3, jnp.int32)}),
            (ValueError, "argument 'softmax_scale'", {"softmax_scale": 0.0}),
        ):  # fmt: skip
            self.refuse(error, text, mla_with_kvcache, {**given, **changed})
        self.refuse(ValueError, "argument 'num_q_tokens_per_head_k' is 0", functools.partial(get_mla_metadata, seqlens, 0), {})

    def test_lists(self):
        q, kv, lists = jnp.zeros((1, 16, 576), jnp.float16), jnp.zeros((9, 1, 576), jnp.float16), jnp.zeros((1, 1, 4), jnp.int32)
        given = {"q": q, "kv": kv, "indices": lists, "sm_scale": 0.1}
        for error, text, changed in (
            (NotImplementedError, "argument 'd_v' is 256", {"d_v": 256}),
            (ValueError, r"argument 'q' has shape \(1, 1, 16, 576\); it is \[tokens, heads, 576 or 512\]", {"q": q[None]}),
            (ValueError, r"argument 'kv' has shape .*; it is \[rows, 1, 576\]", {"kv": kv[None]}),
            (TypeError, "argument 'kv' has type bfloat16; q and kv are float16", {"kv": kv.astype(jnp.bfloat16)}),
            (ValueError, r"argument 'topk_length' has shape \(2,\)", {"topk_length": jnp.zeros(2, jnp.int32)}),
            (ValueError, "argument 'keys_per_part' is 100", {"keys_per_part": 100}),
            (ValueError, "argument 'sm_scale' is 0.0; kernels take a number above", {"sm_scale": 0.0}),
        ):  # fmt: skip
            self.refuse(error, text, mla_sparse, {**given, **changed})

    def test_nothing_to_see(self):
        """A cache without pages has no key, and metadata may be of no sequence."""
        table, nobody = jnp.zeros((2, 3), jnp.int32), jnp.zeros(0, jnp.int32)
        cache = jnp.zeros((0, 64, 1, 576), jnp.float16)
        out, lse = mla_with_kvcache(jnp.ones((2, 1, 16, 576), jnp.float16), cache, table, jnp.array([5, 0], jnp.int32))
        self.assertTrue(not out.any() and jnp.isneginf(lse).all())
        shares, starts = get_mla_metadata(nobody, 16)
        self.assertEqual((shares.shape[0], starts.tolist()), (3, [0]))

    def test_what_jax_traces(self):
        q, kv, lists = jnp.zeros((1, 16, 576), jnp.float16), jnp.zeros((9, 1, 576), jnp.float16), jnp.zeros((1, 1, 4), jnp.int32)
        with self.assertRaisesRegex(TypeError, "argument 'sm_scale' is traced by JAX, and numbers are constants"):
            jax.jit(lambda scale: mla_sparse(q, kv, lists, scale))(0.1)
        with self.assertRaisesRegex(NotImplementedError, "attention over a cache has no gradient: take jax.lax.stop_gradient"):
            jax.grad(lambda q: mla_sparse(q, kv, lists, 0.1)[0].astype(jnp.float32).sum())(q)
        # Where nothing asks for it there is none.
        tessera.jax.use_interpreter()
        self.addCleanup(tessera.jax.use_interpreter, False)
        jax.grad(lambda q: mla_sparse(jax.lax.stop_gradient(q), kv, lists, 0.1)[2].sum() + q.astype(jnp.float32).sum())(q)


if __name__ == "__main__":
    unittest.main()
