"""Attention of sequences that lie one behind the other, over keys that lie so too and over caches in pages."""

from __future__ import annotations

from typing import Any

import torch

from .._attention import _variants
from . import _cache_recipes, _checks, _op, _prepared, _serving_ops
from ._serving import Call


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor | None,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool | torch.Tensor = False,
    window_size: tuple[int | None, int | None] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
    *,
    seqused_k: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    attention_chunk: int = 0,
    prefix_lens: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    k_descale: torch.Tensor | None = None,
    v_descale: torch.Tensor | None = None,
    invariant: bool = False,
) -> torch.Tensor | Any:
    """flash_attn.flash_attn_varlen_func: attention of sequences that lie one behind the other.

    q:            [tokens, H, D], float16 or bfloat16. What lies behind the last sequence has no output.
    k, v:         [tokens, HK, D] and [..., DV], or with a `block_table` of int32, [B, pages of a sequence], pages [pages, rows, HK, D].
                  Of the type of q, or float8_e4m3fn.
    cu_seqlens_q, cu_seqlens_k: int32, [B + 1], where the sequences begin and end. None is less than the one before: what pads a batch
                  repeats the last one.
    seqused_k:    int32, [B], how many keys each sequence has, in place of what `cu_seqlens_k` says.
    max_seqlen_q: the most queries of a sequence. `max_seqlen_k` changes nothing.
    sinks:        [H], a number for each head: the score of a key more that every query sees, with the value 0.
    causal, attention_chunk, prefix_lens, k_descale, v_descale: as flash_attn_with_kvcache has them.
    out:          [tokens, H, DV], of the type of q, where the output is stored.
    invariant:    the bits of a query depend on it and its keys alone. Keys are not divided then.

    Masks are aligned at the last query and the last key. With `return_attn_probs` returns (output, LSE [H, tokens], None). Has no
    gradient.
    """
    flags, is_causal = (causal, None) if isinstance(causal, torch.Tensor) else (None, causal)
    given = (
        q, k, v, seqused_k, block_table, alibi_slopes, sinks, k_descale, v_descale, cu_seqlens_q, cu_seqlens_k, flags, prefix_lens, out,
    )  # fmt: skip
    key, is_known = None, type(window_size) in (tuple, list) and type(max_seqlen_q) is int and max_seqlen_q > 0
    if is_known and not torch.compiler.is_compiling():
        # Elements of a cache of 8 bits are multiplied by 1 where nothing else is given.
        short = None if k_descale is not None and v_descale is not None else getattr(k, "dtype", None)
        most = _cache_recipes.round_most(max_seqlen_q)
        options = dropout_p, softmax_scale, is_causal, softcap, attention_chunk, invariant, most, short
        key, results = _prepared.recall(given, "flash_attn_varlen_func", *options, *window_size)
        if results is not None:
            found, lse = results if out is None else (out, results)
            return (found, lse, None) if return_attn_probs else found
    if dropout_p:
        _checks.refuse("dropout_p", dropout_p, "no kernel drops weights: pass 0")
    if torch.compiler.is_compiling():
        found, lse = _serving_ops.attend_tokens(
            q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, softmax_scale, causal, window_size, softcap, alibi_slopes, block_table,
            seqused_k, sinks, attention_chunk, prefix_lens, k_descale, v_descale, invariant,
        )  # fmt: skip
        out = found if out is None else out.copy_(found)
        return (out, lse, None) if return_attn_probs else out
    _op.check_types(
        {"q": q, "k": k, "v": v, "cu_seqlens_q": cu_seqlens_q},
        {"cu_seqlens_k": cu_seqlens_k, "seqused_k": seqused_k, "block_table": block_table},
    )
    of_keys, beside = (3, "") if block_table is None else (4, "beside a 'block_table' ")
    for name, tensor, rank, when in (("q", q, 3, ""), ("k", k, of_keys, beside), ("v", v, of_keys, beside)):
        if tensor.dim() != rank:
            raise ValueError(f"argument '{name}' has {tensor.dim()} dimensions; {when}it has {rank}")
    if type(max_seqlen_q) is not int or max_seqlen_q < 0:
        raise ValueError(f"argument 'max_seqlen_q' is {max_seqlen_q!r}; it is a number of queries")
    if cu_seqlens_k is None and (seqused_k is None or block_table is None):
        raise ValueError("argument 'cu_seqlens_k' is None; without it a block_table and seqused_k say where keys are")
    _checks.check_numbers("cu_seqlens_q", cu_seqlens_q, (None,), q)
    if not len(cu_seqlens_q):
        raise ValueError("argument 'cu_seqlens_q' has no numbers; it has one more than there are sequences")
    if cu_seqlens_k is not None:
        _checks.check_numbers("cu_seqlens_k", cu_seqlens_k, (len(cu_seqlens_q),), q)
    call = Call(
        q[None], *((k[None], v[None]) if block_table is None else (k, v)), seqused_k, cu_seqlens_k, block_table, alibi_slopes, sinks,
        cu_seqlens_q, max_seqlen_q, (k_descale, v_descale), ("k", "v", "seqused_k", "block_table"),
    )  # fmt: skip
    call.key, call.given, call.own = key, given, (q, k, v)
    if out is not None:
        _checks.check_output(out, q, v)
    masks = call.read_masks(causal, window_size, attention_chunk, prefix_lens), _checks.read_softcap(softcap)
    call.is_invariant = bool(invariant)
    out, lse = call.run_tokens(_checks.read_scale(softmax_scale), *masks, out=out)
    return (out, lse, None) if return_attn_probs else out
