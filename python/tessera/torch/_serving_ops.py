"""The ops that compiled code calls in place of the functions for engines, which look at strides and
addresses. _engine_ops.py says what they do.

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
    "Tensor? v_descale, bool invariant) -> (Tensor, Tensor)",
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


for _name, _schema in _SCHEMAS.items():
    _op._library.define(_name + _schema, tags=_op._tags)
