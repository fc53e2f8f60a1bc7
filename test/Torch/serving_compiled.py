# RUN: env TESSERA_LIBRARY=%build/lib %torch-python %s
"""Functions for engines in compiled code, on the interpreter: the same bits as otherwise."""

import unittest

import problems
import torch
import torch._dynamo.testing
from caches import Cache

from tessera.torch import flash_attn_varlen_func, flash_attn_with_kvcache, kv_append, merge_states


class Compiled(problems.Interpreted):
    """In compiled code each function is one op, and the graph has no break."""

    def setUp(self):
        super().setUp()
        self.cache = Cache([70, 3], 64, True, 1)
        self.q = torch.randn(2, 1, 2, 64, generator=torch.Generator().manual_seed(6)).bfloat16()

    def check(self, function, *tensors):
        """What a function gives, and what it leaves in its tensors, compiled and not."""
        given = [tuple(x.clone() for x in tensors) for _ in range(2)]
        want = function(*given[0])
        got = torch.compile(function, fullgraph=True, backend="aot_eager")(*given[1])
        for one, other in zip((*want, *given[0]), (*got, *given[1])):
            self.assertEqual((one.shape, one.stride(), one.dtype), (other.shape, other.stride(), other.dtype))
            self.assertTrue(torch.equal(one.nan_to_num(7), other.nan_to_num(7)))

    def test_caches(self):
        cache, q, sinks = self.cache, self.q, torch.tensor([0.5, -1.0])

        def attend(q, k_cache, v_cache, lengths, table):
            named = {"cache_seqlens": lengths, "page_table": table, "causal": True, "window_size": (50, 0)}
            out = flash_attn_with_kvcache(q * 2, k_cache, v_cache, num_splits=2, sinks=sinks, **named)
            return flash_attn_with_kvcache(q, k_cache, v_cache, return_softmax_lse=True, **named)[1], out + 1

        self.check(attend, q, cache.k, cache.v, cache.seqlens, cache.table)

        # What eager calls are known by is nothing that compiled code asks for.
        compiled = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
        once = torch.compile(lambda *given: flash_attn_with_kvcache(*given, causal=True), fullgraph=True, backend=compiled)
        for softcap in (3.0, 4.0):
            once(q, cache.k, cache.v, None, None, None, None, cache.seqlens, None, None, None, cache.table)
            flash_attn_with_kvcache(q, cache.k, cache.v, cache_seqlens=cache.seqlens, page_table=cache.table, softcap=softcap)
        self.assertEqual(compiled.frame_count, 1)

        def update(q, k_cache, v_cache, k, v, table):
            out = torch.empty_like(q)
            flash_attn_with_kvcache(q, k_cache, v_cache, k, v, cache_seqlens=3, page_table=table, causal=True, out=out)
            return (out,)

        new = torch.randn(2, 1, 1, 64, generator=torch.Generator().manual_seed(7)).bfloat16()
        self.check(update, q, cache.k, cache.v, new, new + 1, cache.table)

    def test_tokens(self):
        cache = self.cache
        starts, starts_k = (torch.tensor(numbers, dtype=torch.int32) for numbers in ([0, 5, 6], [0, 70, 73]))
        q = torch.randn(6, 2, 64, generator=torch.Generator().manual_seed(8)).bfloat16()

        def attend(q, k, v, starts, starts_k):
            out, lse, _ = flash_attn_varlen_func(q, k, v, starts, starts_k, 5, 70, causal=True, return_attn_probs=True)
            return out, lse

        self.check(attend, q, torch.cat(cache.keys), torch.cat(cache.values), starts, starts_k)

        def attend_pages(q, k, v, starts, lengths, table):
            named = {"seqused_k": lengths, "block_table": table}
            out = flash_attn_varlen_func(q, k, v, starts, None, 5, 70, causal=lengths - 3, **named)
            return out, flash_attn_varlen_func(q, k, v, starts, None, 5, 70, causal=True, attention_chunk=32, invariant=True, **named)

        self.check(attend_pages, q, cache.k, cache.v, starts, cache.seqlens, cache.table)

    def test_others(self):
        parts, lses = torch.randn(3, 1, 2, 2, 64), torch.randn(3, 1, 2, 2)
        self.check(lambda *given: merge_states(*given, dtype=torch.bfloat16), parts, lses)
        new, cos, slots = torch.randn(3, 2, 64).bfloat16(), torch.rand(9, 16), torch.tensor([3, -1, 0])
        cache = torch.zeros(2, 4, 2, 64).bfloat16()

        def append(k, v, k_cache, v_cache, slots, cos):
            kv_append(k, v, k_cache, v_cache, slots + 1)
            return (kv_append(k, v, k_cache, v_cache, slots, q=k + v, cos=cos, sin=cos, positions=slots.clamp(min=0)),)

        self.check(append, new, new + 1, cache, cache + 1, slots, cos)

    def test_ops(self):
        """PyTorch's own checks: schemas, fakes and what is changed."""
        cache, q = self.cache, self.q
        clean_k, clean_v = cache.k.nan_to_num(), cache.v.nan_to_num()
        masks, more = (True, None, [-1, -1], 0.0), (1, None, None, None, 0, None, None, None)
        ops, rest = torch.ops.tessera, (cache.seqlens, None, None, cache.table, None, *masks, *more)
        new = torch.ones(2, 1, 1, 64).bfloat16()
        for op, arguments in (
            (ops.cache_attention, (q, clean_k, clean_v, *rest)),
            (ops.cache_update_attention, (q, clean_k, clean_v, new, new, None, None, True, *rest)),
            (ops.merge_states, (torch.randn(3, 1, 2, 2, 64), torch.randn(3, 1, 2, 2), None)),
            (ops.kv_append, (new[:, 0], new[:, 0], clean_k, clean_v, torch.tensor([3, -1]), None, None, None, False, None, None)),
        ):
            torch.library.opcheck(op.default, arguments, test_utils=("test_schema", "test_faketensor"))


if __name__ == "__main__":
    unittest.main()
