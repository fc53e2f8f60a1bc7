"""Checks attention over caches on the GPU, as engines call it, against f64: pages of any rows and none, of 16 bits and 8, groups of heads,
masks and scores, divided keys, packed queries, and the bits of queries whose prompt is cut. What no length reaches holds NaN, and
calls are made 1000 times, with equal bits. Graphs are replayed with other lengths, tables and queries.

    serving_check.py [--device cpu] [CHECK...]     cpu: by the interpreter, smaller, without graphs
"""

import itertools
import os
import sys
import unittest

import checks
import kernels  # noqa: F401 (finds the package)
import torch

import tessera.torch
from tessera.torch import flash_attn_varlen_func, flash_attn_with_kvcache

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Torch"))
import problems  # noqa: E402
from caches import Cache, ShortCache  # noqa: E402

NAMES, DEVICE = checks.read_options(__doc__)
IS_GPU = DEVICE == "cuda"
LENGTHS = [0, 1, 63, 64, 65, 700, 3001] if IS_GPU else [0, 1, 130]
KINDS = Cache, ShortCache
TEST = unittest.TestCase()


def call_again(call):
    return checks.call_again(call, 1000 if IS_GPU else 1)


def name_tensors(cache, **more):
    named = {"cache_seqlens": cache.seqlens, **cache.places, **cache.descales, **more}
    return {name: x.to(DEVICE) if isinstance(x, torch.Tensor) else x for name, x in named.items()}


def draw_queries(cache, *shape):
    return torch.randn(*shape, cache.k.shape[3], generator=torch.Generator().manual_seed(1)).bfloat16()


def check(cache, heads, queries, expected=(), **options):
    q = draw_queries(cache, len(cache.lengths), queries, heads)
    given, named = [x.to(DEVICE) for x in (q, cache.k, cache.v)], name_tensors(cache, **options)
    out, lse = call_again(lambda: flash_attn_with_kvcache(*given, causal=True, return_softmax_lse=True, **named))
    want, want_lse = cache.expect(q, **{"right": 0, **dict(expected)})
    what = type(cache).__name__, cache.k.shape, heads, queries, options
    problems.assert_close(TEST, out, want, what)
    TEST.assertTrue(torch.allclose(lse.double(), want_lse, atol=2e-3), what)


def pages():
    for kind, rows, queries in itertools.product(KINDS, (0, 8, 16, 24, 32, 64, 128, 256), (1, 3, 70) if IS_GPU else (1, 70)):
        if IS_GPU or rows in (0, 16, 24, 64):
            check(kind(LENGTHS, rows or max(LENGTHS) + 5, rows > 0, 2), 8, queries)


def check_sizes(kind, widths):
    for d, rows, queries in itertools.product(widths, (16, 64), (1, 130)):
        if IS_GPU or queries == 1:
            check(kind(LENGTHS, rows, True, 1, d if kind is Cache else -(-d // 16) * 16), 4, queries)


def narrow_sizes():
    check_sizes(Cache, (64, 72, 128) if IS_GPU else (72,))


def wide_sizes():
    check_sizes(Cache, (160, 192, 256) if IS_GPU else (256,))


def narrow_short_sizes():
    check_sizes(ShortCache, (64, 72, 128) if IS_GPU else (72,))


def wide_short_sizes():
    check_sizes(ShortCache, (160, 192, 256) if IS_GPU else (256,))


def groups():
    for kind, heads, queries in itertools.product(KINDS, (1, 3, 5, 6, 7, 8, 16), (1, 2, 16) if IS_GPU else (1,)):
        check(kind(LENGTHS, 64, True, 1), heads, queries)


def parts():
    for kind, rows, queries in itertools.product(KINDS, (16, 24, 64), (1, 5, 70) if IS_GPU else (5,)):
        for options in ({"num_splits": 3}, {"keys_per_part": 128}):
            check(kind(LENGTHS, rows, True, 1), 4, queries, **options)


def masks_and_scores():
    slopes = torch.tensor([0.5, 0.1, 0.02, 0.3])
    for kind, rows, queries in itertools.product(KINDS, (16, 64), (1, 5)):
        cache = kind(LENGTHS, rows, True, 1)
        check(cache, 4, queries, {"left": 50}, window_size=(50, -1))
        check(cache, 4, queries, {"softcap": 3.0}, softcap=3.0)
    check(Cache(LENGTHS, 64, True, 1), 4, 1, {"slopes": slopes}, alibi_slopes=slopes)


def packed():
    """Queries of several sequences one behind the other."""
    counts = [0, 1, 3, 64, 65, 300, 1] if IS_GPU else [0, 1, 70]
    starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
    for kind, rows in itertools.product(KINDS, (8, 16, 64, 128) if IS_GPU else (16, 64)):
        cache = kind(LENGTHS, rows, True, 2)
        q, named = draw_queries(cache, sum(counts), 4), name_tensors(cache)
        named = {"seqused_k": named.pop("cache_seqlens"), "block_table": named.pop("page_table"), **named}
        given = [x.to(DEVICE) for x in (q, cache.k, cache.v, starts)]
        for invariant in (False, True):
            (out,) = call_again(
                lambda: [flash_attn_varlen_func(*given, None, max(counts), 0, causal=True, invariant=invariant, **named)]  # noqa: B023
            )
            for b, count in ((b, count) for b, count in enumerate(counts) if count):
                own, k, v = (x.transpose(0, 1)[None] for x in (q[starts[b] : starts[b + 1]], cache.keys[b], cache.values[b]))
                want = problems.exact(own, k, v, problems.band(count, k.shape[2], right=0))[0][0].transpose(0, 1)
                problems.assert_close(TEST, out[starts[b] : starts[b + 1]], want, (kind, rows, invariant, b))


def cuts():
    """A prompt in pieces, over pages of other numbers of rows, has the bits of the whole."""
    length, share = (3001, 1024) if IS_GPU else (150, 128)
    for kind in KINDS:
        cache = kind([length], 64, True, 1, 128)
        q = draw_queries(cache, 1, length, 4)

        def attend(cache, first, past):
            named = name_tensors(cache, cache_seqlens=torch.tensor([past], dtype=torch.int32), keys_per_part=share)
            given = [x.to(DEVICE) for x in (q[:, first:past], cache.k, cache.v)]  # noqa: B023
            return flash_attn_with_kvcache(*given, causal=True, **named)

        whole = attend(cache, 0, length)
        for rows, first, past in ((64, 0, 1), (16, length - 1, length), (24, 64, length), (128, 1, 130), (32, length // 2, length)):
            other = kind([length], rows, True, 1, 128)
            other.take(cache, 0)
            TEST.assertTrue(torch.equal(attend(other, first, past), whole[:, first:past]), (kind, rows, first, past))


def graphs():
    for kind, rows, queries in itertools.product(KINDS, (16, 64), (1, 40)):
        caches = [kind(lengths, rows, True, 1) for lengths in (LENGTHS, LENGTHS[::-1], [0] * len(LENGTHS))]
        count = max(len(cache.k) for cache in caches)
        static = {"q": draw_queries(caches[0], len(LENGTHS), queries, 4).to(DEVICE), **name_tensors(caches[0])}
        for name in "kv":
            static[f"{name}_cache"] = getattr(caches[0], name).new_zeros(count, rows, 1, 64).to(DEVICE)
        width = max(cache.table.shape[1] for cache in caches)
        static["page_table"] = torch.zeros(len(LENGTHS), width, dtype=torch.int32, device=DEVICE)
        flash_attn_with_kvcache(**static, causal=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = flash_attn_with_kvcache(**static, causal=True)
        for seed, cache in enumerate(caches):
            static["q"].normal_(generator=torch.Generator(DEVICE).manual_seed(seed))
            for name, x in (("k_cache", cache.k), ("v_cache", cache.v), ("cache_seqlens", cache.seqlens), *cache.descales.items()):
                static[name][: len(x)] = x.to(DEVICE)
            static["page_table"][:, : cache.table.shape[1]] = cache.table.to(DEVICE)
            graph.replay()
            TEST.assertTrue(torch.equal(captured, flash_attn_with_kvcache(**static, causal=True)), (kind, rows, queries, seed))


if not IS_GPU:
    tessera.torch.use_interpreter()
SIZES = narrow_sizes, wide_sizes, narrow_short_sizes, wide_short_sizes
ALL = pages, *SIZES, groups, parts, masks_and_scores, packed, cuts, *((graphs,) if IS_GPU else ())
checks.run(ALL, names=NAMES)
