"""What the ops of _serving_ops.py do: each runs its function."""

from __future__ import annotations

import torch

from .._attention._latent import VALUE
from . import _op, _serving_ops, _share_recipes  # noqa: F401
from ._append import kv_append
from ._latent import get_mla_metadata, mla_sparse, mla_with_kvcache
from ._latent_recipes import count_shares
from ._serving import flash_attn_with_kvcache
from ._states import merge_states
from ._varlen import flash_attn_varlen_func


def _run_cache(
    q, k_cache, v_cache, lengths, length, slots, table, scale, causal, flags, window, softcap, count, slopes, sinks, share, chunk, prefixes,
    k_descale, v_descale, **new,
):  # fmt: skip
    return flash_attn_with_kvcache(
        q, k_cache, v_cache, cache_seqlens=length if lengths is None else lengths, cache_batch_idx=slots, page_table=table,
        softmax_scale=scale, causal=causal if flags is None else flags, window_size=tuple(window), softcap=softcap, num_splits=count,
        alibi_slopes=slopes, sinks=sinks, keys_per_part=share, attention_chunk=chunk, prefix_lens=prefixes, k_descale=k_descale,
        v_descale=v_descale, return_softmax_lse=True, **new,
    )  # fmt: skip


def _run_cache_update(q, k_cache, v_cache, k, v, cos, sin, interleaved, *others):
    new = {"k": k, "v": v, "rotary_cos": cos, "rotary_sin": sin, "rotary_interleaved": interleaved}
    return _run_cache(q, k_cache, v_cache, *others, **new)


def _run_varlen(
    q, k, v, starts, starts_k, most, scale, causal, flags, window, softcap, slopes, table, used, sinks, chunk, prefixes, k_descale,
    v_descale, invariant,
):  # fmt: skip
    out, lse, _ = flash_attn_varlen_func(
        q, k, v, starts, starts_k, most, 0, softmax_scale=scale, causal=causal if flags is None else flags, window_size=tuple(window),
        softcap=softcap, alibi_slopes=slopes, block_table=table, seqused_k=used, sinks=sinks, attention_chunk=chunk,
        prefix_lens=prefixes, return_attn_probs=True, k_descale=k_descale, v_descale=v_descale, invariant=invariant,
    )  # fmt: skip
    return out, lse.contiguous()


def _run_latent(q, cache, table, lengths, metadata, splits, scale, causal, indices, sinks, topk, share):
    return mla_with_kvcache(
        q, cache, table, lengths, VALUE, metadata, splits, scale, causal, None, indices, sinks, topk_length=topk, keys_per_part=share
    )


def _run_rows(q, kv, indices, scale, sinks, topk, share):
    return mla_sparse(q, kv, indices, scale, VALUE, sinks, topk, keys_per_part=share)


def _run_shares(lengths, rows):
    return get_mla_metadata(lengths, rows)


def _run_merge(parts, lses, dtype):
    return merge_states(parts, lses, dtype=dtype)


def _run_append(k, v, k_cache, v_cache, slots, cos, sin, positions, interleaved, k_scale, v_scale, q=None):
    return kv_append(
        k, v, k_cache, v_cache, slots, q=q, cos=cos, sin=sin, positions=positions, interleaved=interleaved, k_scale=k_scale, v_scale=v_scale
    )


def _fake_cache(q, k_cache, v_cache, *_):
    batch, rows, heads, _ = q.shape
    return q.new_empty((batch, rows, heads, v_cache.shape[3])), q.new_empty((batch, heads, rows), dtype=torch.float32)


def _fake_varlen(q, k, v, *_):
    return q.new_empty((*q.shape[:2], v.shape[-1])), q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32)


def _fake_latent(q, cache, table, lengths, metadata, splits, scale, causal, indices, *_):
    batch, rows, heads, _ = q.shape
    # Those of lists are of a query each.
    lse = q.new_empty((batch, heads, rows), dtype=torch.float32) if indices is None else q.new_empty(q.shape[:3], dtype=torch.float32)
    return q.new_empty((*q.shape[:3], VALUE)), lse if indices is None else lse.transpose(1, 2)


def _fake_rows(q, *_):
    numbers = [q.new_empty(q.shape[:2], dtype=torch.float32) for _ in range(2)]
    return q.new_empty((*q.shape[:2], VALUE)), *numbers


def _fake_shares(lengths, rows):
    return tuple(lengths.new_empty(x.shape) for x in _share_recipes.list_layouts(lengths.shape[0], count_shares(rows, lengths.device)))


def _fake_merge(parts, lses, dtype):
    return parts.new_empty(parts.shape[1:], dtype=dtype or parts.dtype), lses.new_empty(lses.shape[1:])


def _fake_append(*arguments):
    return torch.empty_like(arguments[-1], memory_format=torch.contiguous_format)


_RUNS = {
    "cache_attention": (_run_cache, _fake_cache),
    "cache_update_attention": (_run_cache_update, _fake_cache),
    "varlen_attention": (_run_varlen, _fake_varlen),
    "latent_attention": (_run_latent, _fake_latent),
    "latent_rows": (_run_rows, _fake_rows),
    "latent_shares": (_run_shares, _fake_shares),
    "merge_states": (_run_merge, _fake_merge),
    "kv_append": (_run_append, lambda *_: None),
    "kv_append_rotated": (_run_append, _fake_append),
}
for _name, (_run, _fake) in _RUNS.items():
    _op._library.impl(_name, _run, "CUDA")
    _op._library.impl(_name, _run, "CPU")
    torch.library.register_fake(f"tessera::{_name}", _fake, lib=_op._library)
