# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Attention of sequences that lie one behind the other, on the interpreter: compared with f64."""

import unittest

import problems
import torch
from caches import NAN, Cache

from tessera.torch import flash_attn_varlen_func


class Tokens(problems.Interpreted):
    """Queries of all sequences one behind the other, over keys that lie so too, and over pages."""

    def check(self, counts, cache, heads, packed_keys, expected=(), with_out=False, **options):
        d = cache.k.shape[3]
        queries = [torch.randn(n, heads, d, generator=torch.Generator().manual_seed(n)).to(cache.k.dtype) for n in counts]
        starts = torch.tensor([0, *counts]).cumsum(0).to(torch.int32)
        # Behind the last sequence there is padding.
        q = torch.cat([*queries, torch.full((5, heads, d), NAN).to(cache.k.dtype)])
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
        for rows in (64, 16):
            self.check([1, 0, 3, 2], Cache([100, 5, 3, 64], rows, True, 2, 72), 8, False, with_out=True, causal=True)

    def test_single_queries(self):
        """Sequences without a query stand between the others, and behind them."""
        for counts in ([1, 1, 1, 1], [1, 0, 1, 1, 0, 0]):
            for heads, rows in ((7, 64), (4, 16)):
                cache = Cache([300, 5, 100, 1, 7, 0][: len(counts)], rows, True, 1)
                self.check(counts, cache, heads, False, with_out=True, causal=True)
                self.check(counts, cache, heads, False, {"left": 50, "right": 0}, causal=True, window_size=(50, -1))

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
            (ValueError, "'k' has 3 dimensions; it has 4", (q, k, k, starts, starts, 3, 4), {"block_table": cache.table}),
            (ValueError, "'max_seqlen_q' is -1; it is a number of queries", (q, k, k, starts, starts, -1, 4), {}),
            (ValueError, "'cu_seqlens_k' is None; without it", (q, k, k, starts, None, 3, 4), {}),
            (TypeError, "'cu_seqlens_q' has type torch.int64; it is int32", (q, k, k, starts.long(), starts, 3, 4), {}),
            (ValueError, r"'cu_seqlens_k' has shape \(2,\); with this 'q' it is \[3\]", (q, k, k, starts, starts[1:], 3, 4), {}),
        ):
            with self.assertRaisesRegex(kind, text):
                flash_attn_varlen_func(*arguments, **options)


if __name__ == "__main__":
    unittest.main()
