# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Arguments that are no tensors, numbers or flags of any use, one at a time in calls that work: each is refused by a text that names the
argument, and no error comes from inside."""

import math
import unittest

import numpy as np
import torch
from problems import Interpreted

import tessera.torch as t

I32 = torch.int32


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape).to(dtype)


def ints(*numbers):
    return torch.tensor(numbers, dtype=I32)


_EMPTY = {"alibi_slopes": None, "sinks": None}
_WALK = {"q": draw(1, 3, 2, 64), "k": draw(1, 3, 2, 64), "v": draw(1, 3, 2, 64), "scale": None, "initial_state": None}
_ATTEND = {"q": draw(1, 8, 2, 64), "k": draw(1, 8, 2, 64), "v": draw(1, 8, 2, 64)}
#: Functions and arguments with which calls of them work.
CALLS = (
    (t.attention, {**_ATTEND, "layout": "BSHD", "scale": 0.1, "window": None, "softcap": 0.0, "alibi": None, "bias": None, "sinks": None}),
    (t.attention_fp8, {**_ATTEND, "layout": "BSHD", "scale": 0.1}),
    (t.scaled_dot_product_attention, {"query": draw(1, 2, 8, 64), "key": draw(1, 2, 8, 64), "value": draw(1, 2, 8, 64), "scale": None}),
    (t.flex_attention, {
        "query": draw(1, 2, 8, 64), "key": draw(1, 2, 8, 64), "value": draw(1, 2, 8, 64), "block_mask": None, "scale": None,
    }),
    (t.flash_attn_func, {**_ATTEND, "softmax_scale": None, "window_size": (-1, -1), "softcap": 0.0, "alibi_slopes": None}),
    (t.flash_attn_with_kvcache, {
        "q": draw(2, 1, 4, 64), "k_cache": draw(5, 16, 2, 64), "v_cache": draw(5, 16, 2, 64), "cache_seqlens": ints(20, 3),
        "page_table": ints(0, 1, 2, 3).view(2, 2), "softmax_scale": 0.1, "window_size": (-1, -1), "softcap": 0.0, "num_splits": 0,
        "keys_per_part": None, "attention_chunk": 0, "prefix_lens": None, "k_descale": None, "out": None, **_EMPTY,
    }),
    (t.flash_attn_with_kvcache, {
        "q": draw(2, 1, 4, 64), "k_cache": draw(2, 64, 2, 64), "v_cache": draw(2, 64, 2, 64), "k": draw(2, 1, 2, 64),
        "v": draw(2, 1, 2, 64), "rotary_cos": draw(80, 16), "rotary_sin": draw(80, 16), "cache_seqlens": ints(20, 3),
        "cache_batch_idx": ints(1, 0),
    }),
    (t.flash_attn_varlen_func, {
        "q": draw(9, 4, 64), "k": draw(12, 2, 64), "v": draw(12, 2, 64), "cu_seqlens_q": ints(0, 4, 9), "cu_seqlens_k": ints(0, 5, 12),
        "max_seqlen_q": 5, "max_seqlen_k": 7, "softmax_scale": None, "softcap": 0.0, "seqused_k": None, "block_table": None,
        "attention_chunk": 0, "out": None, **_EMPTY,
    }),
    (t.kv_append, {
        "k": draw(3, 2, 64), "v": draw(3, 2, 64), "k_cache": draw(5, 16, 2, 64), "v_cache": draw(5, 16, 2, 64), "slots": ints(0, 5, -1),
        "q": draw(3, 4, 64), "cos": draw(80, 16), "sin": draw(80, 16), "positions": ints(0, 5, 7),
    }),
    (t.mla_sparse, {
        "q": draw(1, 16, 576), "kv": draw(7, 1, 576), "indices": ints(0, 1, 2, 3).view(1, 1, 4), "sm_scale": 0.1,
        "attn_sink": torch.zeros(16), "topk_length": ints(1),
    }),
    (t.retention, _WALK),
    (t.gla, {**_WALK, "g": -torch.rand(1, 3, 2, 64)}),
    (t.gated_delta_rule, {**_WALK, "g": -torch.rand(1, 3, 2), "beta": torch.rand(1, 3, 2)}),
    (t.ssd, {
        "x": draw(1, 3, 2, 64), "dt": torch.rand(1, 3, 2), "A": -torch.rand(2), "B": draw(1, 3, 1, 64), "C": draw(1, 3, 1, 64),
        "D": torch.rand(2), "dt_bias": torch.rand(2), "initial_states": None, "z": draw(1, 3, 2, 64), "seq_idx": None,
    }),
)  # fmt: skip
#: What is neither a tensor nor a number, and may be meant as neither.
NOTHING = "x", object(), {1: 2}, lambda *_: 0, np.zeros((2, 2), np.float32)
#: Arguments that change nothing, or that have a test of their own.
_ANY = {"max_seqlen_k", "layout"}
#: Those whose own texts name others, as what these should be.
_ALIASES = {"k_cache": "v_cache", "k": "v", "x": "'[BC]'", "v": "q"}


def list_absurd(name, value):
    """What stands for nothing in the place of an argument."""
    yield from NOTHING
    if value is None or not isinstance(value, torch.Tensor):
        yield torch.zeros(2, 3, 5, dtype=torch.complex64)
        return
    yield from (value.tolist(), 2.5, value.flatten()[0], value[None], value.to(torch.complex64), value.to_sparse())
    if value.is_floating_point():
        yield value.long()


class AbsurdTest(Interpreted):
    def test_each(self):
        for function, given in CALLS:
            function(**{name: x.clone() if isinstance(x, torch.Tensor) else x for name, x in given.items()})
            for name, value in given.items():
                for absurd in () if name in _ANY else list_absurd(name, value):
                    what = absurd if not isinstance(absurd, torch.Tensor) else (absurd.dtype, absurd.shape, absurd.device, absurd.layout)
                    with self.subTest(f"{function.__name__}({name}={what})"):
                        text = f"argument.* '({name}|{_ALIASES.get(name, name)})'"
                        with self.assertRaisesRegex((TypeError, ValueError, NotImplementedError), text):
                            function(**{**given, name: absurd})

    def test_no_pages(self):
        """A cache without pages has no key."""
        q, cache, table = draw(2, 3, 4, 64), draw(0, 16, 2, 64), torch.zeros(2, 3, dtype=I32)
        out, lse = t.flash_attn_with_kvcache(q, cache, cache, page_table=table, cache_seqlens=ints(5, 0), return_softmax_lse=True)
        self.assertTrue(not out.any() and lse.eq(-math.inf).all())
        starts = ints(0, 3, 6)
        out, lse, _ = t.flash_attn_varlen_func(
            q.flatten(0, 1), cache, cache, starts, None, 3, 3, block_table=table, seqused_k=ints(5, 0), return_attn_probs=True
        )  # fmt: skip
        self.assertTrue(not out.any() and lse.eq(-math.inf).all())
        out, lse = t.mla_with_kvcache(draw(2, 1, 16, 576), draw(0, 64, 1, 576), table, ints(5, 0))
        self.assertTrue(not out.any() and lse.eq(-math.inf).all())

    def test_no_sequences(self):
        shares, starts = t.get_mla_metadata(ints(), 16)
        self.assertEqual((shares.shape[0], starts.tolist()), (3, [0]))
        out, lse = t.mla_with_kvcache(draw(0, 1, 16, 576), draw(3, 64, 1, 576), torch.zeros(0, 3, dtype=I32), ints(), 512, shares, starts)
        self.assertEqual((out.shape, lse.shape), ((0, 1, 16, 512), (0, 16, 1)))
        with self.assertRaisesRegex(ValueError, "argument 'cu_seqlens_q' has no numbers; it has one more than there are sequences"):
            t.flash_attn_varlen_func(draw(3, 4, 64), draw(3, 2, 64), draw(3, 2, 64), ints(), ints(), 3, 3)

    def test_forms(self):
        q = draw(1, 2, 8, 64)
        nested = torch.nested.nested_tensor([q[0], q[0]])
        with self.assertRaisesRegex(TypeError, "argument 'q' is nested or sparse; it is a strided tensor"):
            t.attention(nested, q, q)
        with self.assertRaisesRegex(ValueError, "argument 'q' has head dimension 0; attention takes multiples of 8"):
            t.attention(q[..., :0], q, q, window=(3, 0))
        with self.assertRaisesRegex(TypeError, r"argument 'causal' has shape \(2,\); it is True or False for all sequences"):
            t.attention(q, q, q, causal=torch.tensor([True, False]))
        for requires_grad, others in ((True, {}), (False, {"sinks": torch.zeros(2)})):
            with self.assertRaisesRegex(ValueError, r"argument 'alibi' has stride 2; .* pass alibi\.contiguous\(\)"):
                t.attention(q, q, q, alibi=torch.rand(4, requires_grad=requires_grad)[::2], **others)
        for chunk in (-1, 2**31):
            with self.assertRaisesRegex(ValueError, f"argument 'attention_chunk' is {chunk}; it is a number of keys below 2"):
                t.flash_attn_with_kvcache(draw(1, 1, 2, 64), *(draw(1, 8, 2, 64) for _ in "kv"), causal=True, attention_chunk=chunk)

    def test_names(self):
        """Arguments are called as the function calls them."""
        cache = draw(5, 16, 2, 64)
        paged = (draw(9, 4, 64), cache, cache, ints(0, 4, 9), None, 5, 7)
        for name, options in (("block_table", {"block_table": ints(0, 1).view(2, 1).long(), "seqused_k": ints(1, 2)}),
                              ("seqused_k", {"block_table": ints(0, 1).view(2, 1), "seqused_k": ints(1, 2).long()})):  # fmt: skip
            with self.assertRaisesRegex(TypeError, f"argument '{name}' has type torch.int64; it is int32"):
                t.flash_attn_varlen_func(*paged, **options)
        with self.assertRaisesRegex(TypeError, "argument 'block_table' has type torch.int64; it is int32"):
            t.flash_attn_with_kvcache(draw(2, 1, 4, 64), cache, cache, block_table=ints(0, 1).view(2, 1).long())
        new = draw(5, 1, 2, 64)
        with self.assertRaisesRegex(ValueError, "argument 'rotary_sin' is missing; rotary_cos, rotary_sin are given together"):
            t.flash_attn_with_kvcache(draw(5, 1, 4, 64), cache, cache, new, new, rotary_cos=draw(80, 16), cache_seqlens=1)


if __name__ == "__main__":
    unittest.main()
