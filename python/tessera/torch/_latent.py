"""Latent attention (DeepSeek-V2) over a cache in pages, as FlashMLA has it."""

from __future__ import annotations

import torch

from .._attention import _latent
from .._attention._latent import VALUE
from . import _checks, _latent_recipes, _op, _prepared, _share_recipes
from ._append import has_rows

_OTHER_BYTES = torch.uint8, torch.int8


def get_mla_metadata(
    cache_seqlens: torch.Tensor, num_q_tokens_per_head_k: int, num_heads_k: int = 1, num_heads_q: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """flash_mla.get_mla_metadata: how `mla_with_kvcache` divides the keys of sequences, made once for all layers of a step.

    cache_seqlens: int32, [B]: the keys of each sequence.
    num_q_tokens_per_head_k: the queries of a sequence times its heads. `num_heads_q` changes nothing.

    Returns `tile_scheduler_metadata`, int32, [3, shares], and `num_splits`, int32, [B + 1]. Nothing waits for the device. Those of other
    lengths of as many sequences give right results too, in more time. Raises TypeError and ValueError.
    """
    given = (cache_seqlens,)
    key, results = _prepared.recall(given, "get_mla_metadata", num_q_tokens_per_head_k, num_heads_k)
    if results is not None:
        return results
    _latent.check_counts(num_q_tokens_per_head_k, num_heads_k)
    if torch.compiler.is_compiling():
        return torch.ops.tessera.latent_shares(cache_seqlens, num_q_tokens_per_head_k)
    _op.check_types({"cache_seqlens": cache_seqlens})
    _checks.check_numbers("cache_seqlens", cache_seqlens, (None,), cache_seqlens)
    _op.raise_problem(_op.find_device_problem("cache_seqlens", cache_seqlens.device))
    device = cache_seqlens.device
    count = _latent_recipes.count_shares(num_q_tokens_per_head_k, device)
    if not len(cache_seqlens):
        return tuple(cache_seqlens.new_zeros(layout.shape) for layout in _share_recipes.list_layouts(0, count))
    text = _share_recipes.write(count, device)
    return _prepared.compute(key, given, text, given)


def mla_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    block_table: torch.Tensor | None,
    cache_seqlens: torch.Tensor | None,
    head_dim_v: int = VALUE,
    tile_scheduler_metadata: torch.Tensor | None = None,
    num_splits: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    is_fp8_kvcache: bool | None = None,
    indices: torch.Tensor | None = None,
    attn_sink: torch.Tensor | None = None,
    *,
    topk_length: torch.Tensor | None = None,
    keys_per_part: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """flash_mla.flash_mla_with_kvcache: latent attention of the last queries of sequences, whose heads share a row for each token.

    q:             [B, SQ, H, 576], or 512 where a row is key and value in all of its numbers, float16 or bfloat16; up to 64 queries.
    k_cache:       [pages, rows, 1, 576], or 512, of the type of q, with up to 1024 rows: 512 numbers that are key and value, and 64 of the
                   key alone. Where rows are no multiple of 8, they are loaded one by one.
                   Also [pages, rows, 1, 656] of bytes (float8_e4m3fn, uint8 or int8) beside q of bfloat16: 512 numbers of e4m3, four of
                   float32 by which each 128 of these are multiplied, and the 64 of the key alone in bfloat16.
    block_table:   int32, [B, entries]: key j of a sequence is row j % rows of page block_table[b, j // rows].
    cache_seqlens: int32, [B]: the keys of each sequence.
    causal:        query r of SQ sees the keys up to number cache_seqlens - SQ + r.
    indices:       int32, [B, SQ, topk]: the rows that each query sees, page times rows plus the row in it, in place of block_table,
                   cache_seqlens and metadata. They may come in any order, each as often as it counts. Of what is no row, as -1, nothing
                   is read. A page follows the one before.
    topk_length:   int32, [B]: how many entries of each list count; all of them when not given.
    attn_sink:     float32, [H]: a score more that every row of a head has, with the weight of a key and no value. The LSE is without it.
    tile_scheduler_metadata, num_splits: what `get_mla_metadata` gave for as many sequences; without them each call makes its own.
    keys_per_part: keys are divided into parts of so many, a multiple of 64, that are joined in their order; then the bits of a sequence
                   depend on its own queries and keys alone. By default the keys of all sequences are cut into as many equal shares as
                   fill the GPU, whatever the lengths are.

    Returns the output [B, SQ, H, 512] and the LSE [B, H, SQ] in float32, natural logarithms. Nothing waits for the device. Entries of
    the table and rows of the cache that no length reaches may hold anything. Raises TypeError, ValueError and NotImplementedError.
    """
    given = q, _read_bytes(k_cache), block_table, cache_seqlens, indices, topk_length, attn_sink, tile_scheduler_metadata, num_splits
    bytes_asked = is_fp8_kvcache, None if is_fp8_kvcache is None else getattr(k_cache, "dtype", None)
    key, results = _prepared.recall(given, "mla_with_kvcache", head_dim_v, softmax_scale, causal, *bytes_asked, keys_per_part)
    if results is not None:
        return results
    _latent.check_options(k_cache, head_dim_v, is_fp8_kvcache, causal, indices, topk_length)
    if torch.compiler.is_compiling():
        return torch.ops.tessera.latent_attention(
            q, k_cache, block_table, cache_seqlens, tile_scheduler_metadata, num_splits, softmax_scale, causal, indices, attn_sink,
            topk_length, keys_per_part,
        )  # fmt: skip
    if indices is not None:
        return _attend_listed(q, given[1], indices, topk_length, softmax_scale, attn_sink, keys_per_part, (key, given))
    _check_rows(q, k_cache)
    _latent.check_pages(q, k_cache)
    _checks.check_numbers("block_table", block_table, (len(q), None), q)
    _checks.check_numbers("cache_seqlens", cache_seqlens, (len(q),), q)
    batch, rows, heads, _ = q.shape
    if 0 in (batch, rows, heads, block_table.shape[1], len(k_cache)):
        return _see_nothing(q, (batch, heads, rows))
    _check_part(attn_sink, keys_per_part, q)
    shares, starts = _read_metadata(tile_scheduler_metadata, num_splits, q)
    # In the order of what is given.
    views = {"pages": block_table, "lengths": cache_seqlens, "sinks": attn_sink, "shares": shares, "starts": starts}
    return _compute((key, given), q, given[1], views, softmax_scale, bool(causal), keys_per_part)


def _attend_listed(q, k_cache, indices, lengths, scale, sinks, keys_per_part, known):
    """mla_with_kvcache over the rows of lists."""
    _check_rows(q, k_cache)
    batch, count, heads, _ = q.shape
    pages, rows = k_cache.shape[:2]
    _checks.check_numbers("indices", indices, (batch, count, None), q)
    if pages > 1 and k_cache.stride(0) != rows * k_cache.stride(1):
        raise ValueError(
            f"argument 'k_cache' has strides {tuple(k_cache.stride())}; with 'indices' a page follows the one before: pass "
            "k_cache.contiguous()"
        )
    if lengths is not None:
        _checks.check_numbers("topk_length", lengths, (batch,), q)
    if 0 in (batch, count, heads, indices.shape[2], pages, rows):
        return _see_nothing(q, (batch, heads, count))
    _check_part(sinks, keys_per_part, q)
    return _compute(known, q, k_cache, {"indices": indices, "lengths": lengths, "sinks": sinks}, scale, False, keys_per_part)


def _see_nothing(q, *shapes):
    """The results of queries that see no key, with numbers of these shapes."""
    numbers = (torch.full(shape, float("-inf"), dtype=torch.float32, device=q.device) for shape in shapes)
    return q.new_zeros((*q.shape[:-1], VALUE)), *numbers


def _check_part(sinks, keys_per_part, q):
    if sinks is not None:
        _check_sinks(sinks, q)
    if keys_per_part is not None:
        _latent.count_parts(0, keys_per_part)


def _compute(known, q, cache, views, scale, causal, share):
    """The results of a recipe. `known` are what further calls are known by and given."""
    views = {name: x for name, x in views.items() if x is not None}
    text = _latent_recipes.write(views, device=str(q.device), causal=causal, share=share)
    return _prepared.compute(*known, text, (q, cache, *views.values()), (_checks.read_scale(scale),), "s")


def _read_bytes(cache):
    """Rows of bytes as kernels take them: torch has several names for bytes."""
    return cache.view(torch.float8_e4m3fn) if getattr(cache, "dtype", None) in _OTHER_BYTES else cache


def mla_sparse(
    q: torch.Tensor,
    kv: torch.Tensor,
    indices: torch.Tensor,
    sm_scale: float,
    d_v: int = VALUE,
    attn_sink: torch.Tensor | None = None,
    topk_length: torch.Tensor | None = None,
    *,
    keys_per_part: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """flash_mla.flash_mla_sparse_fwd: latent attention of tokens, each over rows that a list names.

    q:           [tokens, H, 576], or 512 where a row is key and value in all of its numbers, float16 or bfloat16.
    kv:          [rows, 1, 576], or 512, of the type of q: 512 numbers that are key and value, and 64 of the key alone. Or
                 [rows, 1, 656] of bytes, as for `mla_with_kvcache`.
    indices:     int32, [tokens, 1, topk]: the rows that each query sees, in any order, each as often as it counts. Of what is no row, as
                 -1, nothing is read.
    attn_sink:   float32, [H]: a score more that every row of a head has, with the weight of a key and no value. The LSE is without it.
    topk_length: int32, [tokens]: how many entries of each list count; all of them when not given.
    keys_per_part: as for `mla_with_kvcache`. By default lists are divided where that fills the GPU.

    Returns the output [tokens, H, 512], and the largest scores and the LSE [tokens, H] in float32, natural logarithms. Nothing waits for
    the device. Rows that no list names may hold anything. Raises TypeError, ValueError and NotImplementedError.
    """
    given = q, _read_bytes(kv), indices, topk_length, attn_sink
    key, results = _prepared.recall(given, "mla_sparse", sm_scale, d_v, keys_per_part)
    if results is not None:
        return results
    _latent.check_values("d_v", d_v)
    if torch.compiler.is_compiling():
        return torch.ops.tessera.latent_rows(q, kv, indices, sm_scale, attn_sink, topk_length, keys_per_part)
    _op.check_types({"q": q, "kv": kv, "indices": indices})
    _latent.check_tokens(q, kv)
    _check_rows(q.unsqueeze(1), kv.unsqueeze(1), "kv")
    _checks.check_numbers("indices", indices, (len(q), 1, None), q)
    if topk_length is not None:
        _checks.check_numbers("topk_length", topk_length, (len(q),), q)
    if 0 in (*q.shape[:2], len(kv), indices.shape[2]):
        return _see_nothing(q, q.shape[:2], q.shape[:2])
    _check_part(attn_sink, keys_per_part, q)
    views = {"indices": indices, "lengths": topk_length, "sinks": attn_sink}
    return _compute((key, given), q, given[1], views, _checks.read_scale(sm_scale, "sm_scale"), False, keys_per_part)


def _check_sinks(sinks, q):
    _op.check_types({"attn_sink": sinks})
    _op.check_derivatives("attention over a cache", {"attn_sink": sinks})
    _latent.check_sinks(sinks, q.shape[-2])
    _op.raise_problem(_op.find_other_device("attn_sink", sinks, q))
    if not sinks.is_contiguous():
        raise ValueError(f"argument 'attn_sink' has stride {sinks.stride(0)}; it must be 1: pass attn_sink.contiguous()")


def _read_metadata(metadata, splits, q):
    """The shares that `get_mla_metadata` made, and their starts; None where it was not asked."""
    given = _latent.list_metadata(metadata, splits, len(q))
    for name, value, shape in given:
        _checks.check_numbers(name, value, shape, q)
    return metadata, splits


def _check_rows(q, cache, name="k_cache"):
    """Refuses queries [B, SQ, H, 576], and pages [PAGES, ROWS, 1, 576], or of bytes, that the argument `name` has, that kernels do not
    take."""
    _op.check_types({"q": q, name: cache})
    _latent.check_rows(q, cache, name)
    _op.check_derivatives("attention over a cache", {"q": q, name: cache})
    for own, tensor in (("q", q), (name, cache)):
        if not has_rows(tensor):
            raise ValueError(
                f"argument '{own}' has strides {tuple(tensor.stride())}; its rows must be dense and begin at multiples of 16 bytes: "
                f"pass {own}.contiguous()"
            )
    _op.raise_problem(_op.find_other_device(name, cache, q) or _op.find_device_problem("q", q.device))
