"""Latent attention (DeepSeek-V2) over a cache in pages, as FlashMLA has it."""

from __future__ import annotations

import torch

from .. import _library
from . import _checks, _kernels, _op, _states
from ._append import has_rows
from ._shares import Shares
from ._types import TYPES

#: Numbers of a row of the cache: those that are key and value, and all.
VALUE, KEY = 512, 576
# Rows of a tile, and keys of a step.
_ROWS, _STEP = 64, 64
# A share has as many steps at least.
_LEAST_STEPS = 4


def get_mla_metadata(
    cache_seqlens: torch.Tensor, num_q_tokens_per_head_k: int, num_heads_k: int = 1, num_heads_q: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """flash_mla.get_mla_metadata: how `mla_with_kvcache` divides the keys of sequences, made once for all layers of a step.

    cache_seqlens: int32, [B]: the keys of each sequence.
    num_q_tokens_per_head_k: the queries of a sequence times its heads. `num_heads_q` changes nothing.

    Returns `tile_scheduler_metadata`, int32, [3, shares], and `num_splits`, int32, [B + 1]. Nothing waits for the device. Those of other
    lengths of as many sequences give right results too, in more time. Raises TypeError and ValueError.
    """
    for name, value, most in (("num_q_tokens_per_head_k", num_q_tokens_per_head_k, None), ("num_heads_k", num_heads_k, 1)):
        if type(value) is not int or value < 1 or value > (most or value):
            raise ValueError(f"argument '{name}' is {value!r}; it is {most or 'a number above 0'}")
    if torch.compiler.is_compiling():
        return torch.ops.tessera.latent_shares(cache_seqlens, num_q_tokens_per_head_k)
    _op.check_types({"cache_seqlens": cache_seqlens})
    _checks.check_numbers("cache_seqlens", cache_seqlens, (None,), cache_seqlens)
    problem = _op.find_device_problem("cache_seqlens", cache_seqlens.device)
    if problem is not None:
        raise problem
    shares = _balance(cache_seqlens, num_q_tokens_per_head_k)
    return shares.shares, shares.starts


def count_shares(rows, device):
    """As many as fill the GPU with tiles of sequences of so many rows."""
    return max(1, _kernels.count_multiprocessors(device) // -(-rows // _ROWS))


def _balance(lengths, rows):
    return Shares.balance(lengths, _STEP, count_shares(rows, lengths.device), _LEAST_STEPS)


def mla_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    block_table: torch.Tensor,
    cache_seqlens: torch.Tensor,
    head_dim_v: int = VALUE,
    tile_scheduler_metadata: torch.Tensor | None = None,
    num_splits: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    is_fp8_kvcache: bool | None = None,
    indices: torch.Tensor | None = None,
    attn_sink: torch.Tensor | None = None,
    *,
    keys_per_part: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """flash_mla.flash_mla_with_kvcache: latent attention of the last queries of sequences, whose heads share a row for each token.

    q:             [B, SQ, H, 576], float16 or bfloat16; up to 64 queries.
    k_cache:       [pages, rows, 1, 576] of the type of q, with a multiple of 64 rows up to 1024: 512 numbers that are key and value,
                   and 64 of the key alone.
    block_table:   int32, [B, entries]: key j of a sequence is row j % rows of page block_table[b, j // rows].
    cache_seqlens: int32, [B]: the keys of each sequence.
    causal:        query r of SQ sees the keys up to number cache_seqlens - SQ + r.
    attn_sink:     float32, [H]: a score more that every row of a head has, with the weight of a key and no value. The LSE is without it.
    tile_scheduler_metadata, num_splits: what `get_mla_metadata` gave for as many sequences; without them each call makes its own.
    keys_per_part: keys are divided into parts of so many, a multiple of 64, that are joined in their order; then the bits of a sequence
                   depend on its own queries and keys alone. By default the keys of all sequences are cut into as many equal shares as
                   fill the GPU, whatever the lengths are.

    Returns the output [B, SQ, H, 512] and the LSE [B, H, SQ] in float32, natural logarithms. Nothing waits for the device. Entries of
    the table and rows of the cache that no length reaches may hold anything. Raises TypeError, ValueError and NotImplementedError.
    """
    if indices is not None:
        _checks.refuse("indices", "given", "no kernel of latent attention takes it: leave it out")
    if is_fp8_kvcache:
        _checks.refuse("is_fp8_kvcache", is_fp8_kvcache, "caches have the type of 'q'")
    if head_dim_v != VALUE:
        _checks.refuse("head_dim_v", head_dim_v, f"values are the first {VALUE} numbers of a row")
    if torch.compiler.is_compiling():
        return torch.ops.tessera.latent_attention(
            q, k_cache, block_table, cache_seqlens, tile_scheduler_metadata, num_splits, softmax_scale, causal, attn_sink, keys_per_part
        )
    page = _check(q, k_cache, block_table, cache_seqlens)
    batch, rows, heads, _ = q.shape
    out = q.new_empty((batch, rows, heads, VALUE))
    lse = q.new_empty((batch, heads, rows), dtype=torch.float32)
    most = block_table.shape[1] * page
    if 0 in (batch, rows, heads, most):
        return out.zero_(), lse.fill_(float("-inf"))
    packed = _count_heads(heads, rows)
    if attn_sink is not None:
        _check_sinks(attn_sink, q)
    sinks = {} if attn_sink is None else {"SINK": True}
    # One query sees all keys.
    parameters = {"T": TYPES[q.dtype], "PAGE": page, "CAUSAL": bool(causal) and rows > 1, "HEADS": packed}
    scale = _checks.read_scale(softmax_scale, q)
    given = _read_metadata(tile_scheduler_metadata, num_splits, q)

    def launch(o, logs, *more, **divided):
        more = (attn_sink, *more) if "SINK" in divided else more
        kernel = _kernels.find(q.device.type == "cpu", _library.find_source("mla_decode"), **parameters, **divided)
        kernel(q.transpose(1, 2), k_cache.transpose(1, 2), block_table, cache_seqlens, o.transpose(1, 2), logs, scale, *more)

    if keys_per_part is None and not _has_short_tiles(batch * heads // packed, most, q.device):
        shares = given or _balance(cache_seqlens, heads // packed * _ROWS)
        parts = q.new_empty((shares.slots, rows, heads, VALUE), dtype=torch.float32)
        logs = q.new_empty((shares.slots, heads, rows), dtype=torch.float32)
        launch(out, lse, shares.starts, *shares.shares, parts.transpose(1, 2), logs, BALANCED=True, **sinks)
        shares.merge(parts, logs, out, lse, attn_sink)
        return out, lse
    keys_per_part = -(-most // _STEP) * _STEP if keys_per_part is None else keys_per_part
    if type(keys_per_part) is not int or keys_per_part < _STEP or keys_per_part % _STEP:
        raise ValueError(f"argument 'keys_per_part' is {keys_per_part!r}; it is a multiple of {_STEP}")
    count = -(-most // keys_per_part)
    if count == 1:
        launch(out, lse, keys_per_part, **sinks)
        return out, lse
    parts = q.new_empty((count, *out.shape), dtype=torch.float32)
    logs = q.new_empty((count, *lse.shape), dtype=torch.float32)
    launch(parts.flatten(0, 1), logs.flatten(0, 1), keys_per_part, OUT="f32")
    _states.merge(parts, logs, out, lse, sinks=attn_sink)
    return out, lse


def _count_heads(heads, rows):
    """How many heads are rows of one tile: a power of 2 that divides them, where all of their queries fit in it."""
    packed = 1
    while heads % (2 * packed) == 0 and 2 * packed * rows <= _ROWS:
        packed *= 2
    return packed


def _has_short_tiles(tiles, most, device):
    """Whether a multiprocessor has so many tiles of so few steps that none is worth cutting: going from sequence to sequence takes a
    thread block longer than taking the next tile."""
    return 4 * tiles * _STEP > most * _kernels.count_multiprocessors(device)


def _check_sinks(sinks, q):
    _op.check_types({"attn_sink": sinks})
    if sinks.dtype != torch.float32 or tuple(sinks.shape) != (q.shape[2],) or not sinks.is_contiguous():
        raise ValueError(
            f"argument 'attn_sink' has shape {tuple(sinks.shape)} and type {sinks.dtype}; with this 'q' it is [{q.shape[2]}], dense, of "
            "float32"
        )
    problem = _op.find_other_device("attn_sink", sinks, q)
    if problem is not None:
        raise problem


def _read_metadata(metadata, splits, q):
    """The shares that `get_mla_metadata` made, or None."""
    if metadata is None and splits is None:
        return None
    for name, value, shape in (("tile_scheduler_metadata", metadata, (3, None)), ("num_splits", splits, (len(q) + 1,))):
        if value is None:
            raise ValueError(f"argument '{name}' is None; get_mla_metadata gives both it and the other one")
        _checks.check_numbers(name, value, shape, q)
    return Shares(splits, metadata)


def _check(q, k_cache, block_table, cache_seqlens):
    """The rows of a page; refuses what kernels do not take."""
    _op.check_types({"q": q, "k_cache": k_cache, "block_table": block_table, "cache_seqlens": cache_seqlens})
    for name, tensor in (("q", q), ("k_cache", k_cache)):
        if tensor.dim() != 4 or tensor.shape[3] != KEY:
            form = "[batch, queries, heads, 576]" if name == "q" else "[pages, rows, 1, 576]"
            raise ValueError(f"argument '{name}' has shape {tuple(tensor.shape)}; it is {form}")
        if tensor.dtype not in TYPES or tensor.dtype != q.dtype:
            raise TypeError(f"argument '{name}' has type {tensor.dtype}; q and k_cache are float16, or both bfloat16")
        if torch.is_grad_enabled() and tensor.requires_grad:
            raise NotImplementedError(f"argument '{name}' requires a gradient, and attention over a cache has none: detach it")
        if not has_rows(tensor):
            raise ValueError(
                f"argument '{name}' has strides {tuple(tensor.stride())}; its rows must be dense and begin at multiples of 16 bytes: "
                f"pass {name}.contiguous()"
            )
    problem = _op.find_other_device("k_cache", k_cache, q) or _op.find_device_problem("q", q.device)
    if problem is not None:
        raise problem
    page, key_heads = k_cache.shape[1:3]
    if key_heads != 1:
        raise ValueError(f"argument 'k_cache' has {key_heads} heads; all heads of 'q' read one row for each token")
    if page % _STEP or not 0 < page <= 1024:
        raise ValueError(f"argument 'k_cache' has pages of {page} rows; kernels take multiples of {_STEP} up to 1024")
    if q.shape[1] > _ROWS:
        raise ValueError(f"argument 'q' has {q.shape[1]} queries; kernels over a cache take up to {_ROWS}: pass them in parts")
    _checks.check_numbers("block_table", block_table, (q.shape[0], None), q)
    _checks.check_numbers("cache_seqlens", cache_seqlens, (q.shape[0],), q)
    return page
