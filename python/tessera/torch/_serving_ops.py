"""The ops that compiled code calls in place of the functions for engines, which look at strides and addresses. Each runs its function.

What stores new keys is an op of its own, so that compiled code knows what it changes, and that others change nothing.
"""

from __future__ import annotations

import torch

from . import _op

_CACHE = (
    "Tensor? cache_seqlens, SymInt? length, Tensor? cache_batch_idx, Tensor? page_table, float? softmax_scale, bool causal, "
    "Tensor? causal_flags, SymInt[] window_size, float softcap, SymInt num_splits, Tensor? alibi_slopes, Tensor? sinks, "
    "SymInt? keys_per_part, SymInt attention_chunk, Tensor? prefix_lens, Tensor? k_descale, Tensor? v_descale"
)
_SCHEMAS = {
    "cache_attention": f"(Tensor q, Tensor k_cache, Tensor v_cache, {_CACHE}) -> (Tensor, Tensor)",
    "cache_update_attention": "(Tensor q, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v, Tensor? rotary_cos, "
    f"Tensor? rotary_sin, bool rotary_interleaved, {_CACHE}) -> (Tensor, Tensor)",
    "varlen_attention": "(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor? cu_seqlens_k, SymInt max_seqlen_q, "
    "float? softmax_scale, bool causal, Tensor? causal_flags, SymInt[] window_size, float softcap, Tensor? alibi_slopes, "
    "Tensor? block_table, Tensor? seqused_k, Tensor? sinks, SymInt attention_chunk, Tensor? prefix_lens, Tensor? k_descale, "
    "Tensor? v_descale) -> (Tensor, Tensor)",
    "latent_attention": "(Tensor q, Tensor k_cache, Tensor? block_table, Tensor? cache_seqlens, Tensor? tile_scheduler_metadata, "
    "Tensor? num_splits, float? softmax_scale, bool causal, Tensor? indices, Tensor? attn_sink, Tensor? topk_length, "
    "SymInt? keys_per_part) -> (Tensor, Tensor)",
    "latent_rows": "(Tensor q, Tensor kv, Tensor indices, float sm_scale, Tensor? attn_sink, Tensor? topk_length, "
    "SymInt? keys_per_part) -> (Tensor, Tensor, Tensor)",
    "latent_shares": "(Tensor cache_seqlens, SymInt rows) -> (Tensor, Tensor)",
    "merge_states": "(Tensor parts, Tensor lses, ScalarType? dtype) -> (Tensor, Tensor)",
    "kv_append": "(Tensor k, Tensor v, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor slots, Tensor? cos, Tensor? sin, "
    "Tensor? positions, bool interleaved, Tensor? k_scale, Tensor? v_scale) -> ()",
    "kv_append_rotated": "(Tensor k, Tensor v, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor slots, Tensor? cos, Tensor? sin, "
    "Tensor? positions, bool interleaved, Tensor? k_scale, Tensor? v_scale, Tensor q) -> Tensor",
}  # fmt: skip


def _read_window(window):
    """A window as an op has it, without numbers that are none."""
    return [-1 if bound is None else bound for bound in window]


def _read_causal(causal):
    """A flag for all, and those of sequences."""
    return (False, causal) if isinstance(causal, torch.Tensor) else (causal, None)


def attend_cache(q, k_cache, v_cache, k, v, cos, sin, interleaved, lengths, window, *others):
    """flash_attn_with_kvcache in compiled code. `others` are the arguments of an op in its order, but for the lengths and the window."""
    lengths, length = (lengths, None) if isinstance(lengths, torch.Tensor) else (None, lengths)
    slots, table, scale, causal, *rest = others
    shared = lengths, length, slots, table, scale, *_read_causal(causal), _read_window(window), *rest
    if k is None and v is None:
        return torch.ops.tessera.cache_attention(q, k_cache, v_cache, *shared)
    return torch.ops.tessera.cache_update_attention(q, k_cache, v_cache, k, v, cos, sin, interleaved, *shared)


def attend_tokens(q, k, v, starts, starts_k, most, scale, causal, window, *others):
    """flash_attn_varlen_func in compiled code."""
    masks = *_read_causal(causal), _read_window(window)
    return torch.ops.tessera.varlen_attention(q, k, v, starts, starts_k, most, scale, *masks, *others)


def append(k, v, k_cache, v_cache, slots, q, *others):
    """kv_append in compiled code."""
    if q is None:
        torch.ops.tessera.kv_append(k, v, k_cache, v_cache, slots, *others)
        return None
    return torch.ops.tessera.kv_append_rotated(k, v, k_cache, v_cache, slots, *others, q)


def _run_cache(
    q, k_cache, v_cache, lengths, length, slots, table, scale, causal, flags, window, softcap, count, slopes, sinks, share, chunk, prefixes,
    k_descale, v_descale, **new,
):  # fmt: skip
    from ._serving import flash_attn_with_kvcache

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
    v_descale,
):  # fmt: skip
    from ._varlen import flash_attn_varlen_func

    out, lse, _ = flash_attn_varlen_func(
        q, k, v, starts, starts_k, most, 0, softmax_scale=scale, causal=causal if flags is None else flags, window_size=tuple(window),
        softcap=softcap, alibi_slopes=slopes, block_table=table, seqused_k=used, sinks=sinks, attention_chunk=chunk,
        prefix_lens=prefixes, return_attn_probs=True, k_descale=k_descale, v_descale=v_descale,
    )  # fmt: skip
    return out, lse.contiguous()


def _run_latent(q, cache, table, lengths, metadata, splits, scale, causal, indices, sinks, topk, share):
    from ._latent import VALUE, mla_with_kvcache

    return mla_with_kvcache(
        q, cache, table, lengths, VALUE, metadata, splits, scale, causal, None, indices, sinks, topk_length=topk, keys_per_part=share
    )


def _run_rows(q, kv, indices, scale, sinks, topk, share):
    from ._latent import VALUE, mla_sparse

    return mla_sparse(q, kv, indices, scale, VALUE, sinks, topk, keys_per_part=share)


def _run_shares(lengths, rows):
    from ._latent import get_mla_metadata

    return get_mla_metadata(lengths, rows)


def _run_merge(parts, lses, dtype):
    from ._states import merge_states

    return merge_states(parts, lses, dtype=dtype)


def _run_append(k, v, k_cache, v_cache, slots, cos, sin, positions, interleaved, k_scale, v_scale, q=None):
    from ._append import kv_append

    return kv_append(
        k, v, k_cache, v_cache, slots, q=q, cos=cos, sin=sin, positions=positions, interleaved=interleaved, k_scale=k_scale, v_scale=v_scale
    )


def _fake_cache(q, k_cache, v_cache, *_):
    batch, rows, heads, _ = q.shape
    return q.new_empty((batch, rows, heads, v_cache.shape[3])), q.new_empty((batch, heads, rows), dtype=torch.float32)


def _fake_varlen(q, k, v, *_):
    return q.new_empty((*q.shape[:2], v.shape[-1])), q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32)


def _fake_latent(q, cache, table, lengths, metadata, splits, scale, causal, indices, *_):
    from ._latent import VALUE

    batch, rows, heads, _ = q.shape
    # Those of lists are of a query each.
    lse = q.new_empty((batch, heads, rows), dtype=torch.float32) if indices is None else q.new_empty(q.shape[:3], dtype=torch.float32)
    return q.new_empty((*q.shape[:3], VALUE)), lse if indices is None else lse.transpose(1, 2)


def _fake_rows(q, *_):
    from ._latent import VALUE

    numbers = [q.new_empty(q.shape[:2], dtype=torch.float32) for _ in range(2)]
    return q.new_empty((*q.shape[:2], VALUE)), *numbers


def _fake_shares(lengths, rows):
    from ._latent import count_shares
    from ._shares import Shares

    return lengths.new_empty(Shares.shape_of(count_shares(rows, lengths.device))), lengths.new_empty(lengths.shape[0] + 1)


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
    _op._library.define(_name + _SCHEMAS[_name], tags=_op._tags)
    _op._library.impl(_name, _run, "CUDA")
    _op._library.impl(_name, _run, "CPU")
    torch.library.register_fake(f"tessera::{_name}", _fake, lib=_op._library)
