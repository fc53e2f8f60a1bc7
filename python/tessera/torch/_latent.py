"""Latent attention (DeepSeek-V2) over a cache in pages, as FlashMLA has it."""

from __future__ import annotations

import torch

from .._attention import _latent
from .._attention._latent import ROWS, STEP, VALUE
from .._core import _library
from . import _checks, _kernels, _op, _states
from ._append import has_rows
from ._shares import Shares

# Element types of the parts of rows of bytes.
_TYPES = {element.name: getattr(torch, element.torch) for element in _library.ELEMENTS}


def get_mla_metadata(
    cache_seqlens: torch.Tensor, num_q_tokens_per_head_k: int, num_heads_k: int = 1, num_heads_q: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """flash_mla.get_mla_metadata: how `mla_with_kvcache` divides the keys of sequences, made once for all layers of a step.

    cache_seqlens: int32, [B]: the keys of each sequence.
    num_q_tokens_per_head_k: the queries of a sequence times its heads. `num_heads_q` changes nothing.

    Returns `tile_scheduler_metadata`, int32, [3, shares], and `num_splits`, int32, [B + 1]. Nothing waits for the device. Those of other
    lengths of as many sequences give right results too, in more time. Raises TypeError and ValueError.
    """
    _latent.check_counts(num_q_tokens_per_head_k, num_heads_k)
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
    return _latent.count_shares(rows, _kernels.count_multiprocessors(device))


def _balance(lengths, rows):
    return Shares.balance(lengths, STEP, count_shares(rows, lengths.device), _kernels.find_numbers(lengths.device)["LEAST_STEPS"])


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
                   key alone. Where rows are no multiple of 16, they are loaded one by one.
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
    _latent.check_options(k_cache, head_dim_v, is_fp8_kvcache, causal, indices, topk_length)
    if torch.compiler.is_compiling():
        return torch.ops.tessera.latent_attention(
            q, k_cache, block_table, cache_seqlens, tile_scheduler_metadata, num_splits, softmax_scale, causal, indices, attn_sink,
            topk_length, keys_per_part,
        )  # fmt: skip
    if indices is not None:
        return _attend_listed(q, k_cache, indices, topk_length, softmax_scale, attn_sink, keys_per_part)
    _check_rows(q, k_cache)
    _latent.check_pages(q, k_cache)
    _checks.check_numbers("block_table", block_table, (len(q), None), q)
    _checks.check_numbers("cache_seqlens", cache_seqlens, (len(q),), q)
    batch, rows, heads, _ = q.shape
    out = q.new_empty((batch, rows, heads, VALUE))
    lse = q.new_empty((batch, heads, rows), dtype=torch.float32)
    most = block_table.shape[1] * k_cache.shape[1]
    if 0 in (batch, rows, heads, most):
        return out.zero_(), lse.fill_(float("-inf"))
    if attn_sink is not None:
        _check_sinks(attn_sink, q)
    described = _latent.describe_pages(q, k_cache, causal)
    call = Call("mla_decode", described, q, k_cache, (block_table, cache_seqlens), softmax_scale, attn_sink)
    given = _read_metadata(tile_scheduler_metadata, num_splits, q)
    extents = ("TILES", batch * call.groups), ("STEPS", most // STEP)
    if keys_per_part is None and _kernels.find_numbers(q.device, *extents)["BALANCED"]:
        shares = given or _balance(cache_seqlens, call.groups * ROWS)
        parts = q.new_empty((shares.slots, rows, heads, VALUE), dtype=torch.float32)
        logs = q.new_empty((shares.slots, heads, rows), dtype=torch.float32)
        call.launch(out, lse, shares.starts, *shares.shares, parts.transpose(1, 2), logs, BALANCED=True)
        shares.merge(parts, logs, out, lse, attn_sink)
    else:
        call.attend_parts(most, _latent.count_steps(most) * STEP if keys_per_part is None else keys_per_part, out, lse)
    return out, lse


def _attend_listed(q, k_cache, indices, lengths, scale, sinks, keys_per_part):
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
        lengths = lengths if count == 1 else lengths.repeat_interleave(count)
    out, _, lse = attend_rows(q.flatten(0, 1), k_cache.flatten(0, 1), indices.flatten(0, 1), lengths, scale, sinks, keys_per_part)
    return out.unflatten(0, (batch, count)), lse.unflatten(0, (batch, count)).transpose(1, 2)


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
    _latent.check_values("d_v", d_v)
    if torch.compiler.is_compiling():
        return torch.ops.tessera.latent_rows(q, kv, indices, sm_scale, attn_sink, topk_length, keys_per_part)
    _op.check_types({"q": q, "kv": kv, "indices": indices})
    _latent.check_tokens(q, kv)
    _check_rows(q.unsqueeze(1), kv.unsqueeze(1), "kv")
    _checks.check_numbers("indices", indices, (len(q), 1, None), q)
    if topk_length is not None:
        _checks.check_numbers("topk_length", topk_length, (len(q),), q)
    return attend_rows(q, kv, indices.flatten(0, 1), topk_length, sm_scale, attn_sink, keys_per_part)


def attend_rows(q, kv, lists, lengths, scale, sinks, keys_per_part):
    """Output [N, H, 512], largest scores and LSE [N, H] of queries [N, H, 576] over rows [ROWS, 1, 576], or of bytes, that lists
    [N, topk] name."""
    count, heads, _ = q.shape
    out = q.new_empty((count, heads, VALUE))
    largest, lse = (q.new_empty((count, heads), dtype=torch.float32) for _ in range(2))
    most = lists.shape[1]
    if 0 in (count, heads, most, len(kv)):
        return out.zero_(), largest.fill_(float("-inf")), lse.fill_(float("-inf"))
    if sinks is not None:
        _check_sinks(sinks, q)
    given = (lists,) if lengths is None else (lists, lengths)
    q, kv = q.unsqueeze(1), kv.unsqueeze(1)
    call = Call("mla_sparse", _latent.describe_lists(q, kv, lengths), q, kv, given, scale, sinks)
    if keys_per_part is None:
        least = _kernels.find_numbers(q.device)["LEAST_STEPS"]
        keys_per_part = _latent.find_keys_per_part(most, count * call.groups, _kernels.count_multiprocessors(q.device), least)
    call.attend_parts(most, keys_per_part, out.unsqueeze(1), lse.unsqueeze(2), largest.unsqueeze(2))
    return out, largest, lse


class Call:
    """Latent attention of queries [B, SQ, H, 576] over pages [PAGES, ROWS, 1, 576], or of bytes, by the kernels of a source. `given` are
    the table and, where there are, the lengths of sequences."""

    def __init__(self, source, described, q, cache, given, scale, sinks):
        self.groups, self.parameters = described
        rows = _split_rows(cache) if _latent.has_bytes(cache) else (cache,)
        self.arguments = q.transpose(1, 2), *(part.transpose(1, 2) for part in rows), *given
        self.scale, self.sinks = _checks.read_scale(scale, q), sinks
        self.source = q.device.type == "cpu", _library.find_source(source)

    def launch(self, out, lse, *more, **parameters):
        """Of whole sequences, to out [B, SQ, H, 512] and lse [B, H, SQ], and what goes to `more`, or of parts, without sinks."""
        sinks = () if self.sinks is None or "OUT" in parameters else (self.sinks,)
        kernel = _kernels.find(*self.source, **self.parameters, **parameters, **({"SINK": True} if sinks else {}))
        kernel(*self.arguments, out.transpose(1, 2), lse, self.scale, *sinks, *more)

    def attend_parts(self, most, keys_per_part, out, lse, largest=None):
        """Up to `most` keys of each sequence in parts, which are joined in their order. `largest` is for the largest scores."""
        count = _latent.count_parts(most, keys_per_part)
        if count == 1:
            self.launch(out, lse, keys_per_part, *(() if largest is None else (largest,)))
            return
        parts = out.new_empty((count, *out.shape), dtype=torch.float32)
        logs, *scores = (lse.new_empty((count, *lse.shape)) for _ in range(1 if largest is None else 2))
        self.launch(parts.flatten(0, 1), logs.flatten(0, 1), keys_per_part, *(own.flatten(0, 1) for own in scores), OUT="f32")
        _states.merge(parts, logs, out, lse, sinks=self.sinks)
        for own in scores:
            torch.amax(own, 0, out=largest)


def _split_rows(cache):
    """The parts of rows of bytes."""
    rows = cache.view(torch.uint8)
    parts = ((_TYPES[element], begin, count) for element, begin, count in _latent.PARTS)
    return [rows[..., begin : begin + count * dtype.itemsize].view(dtype) for dtype, begin, count in parts]


def _check_sinks(sinks, q):
    _op.check_types({"attn_sink": sinks})
    _latent.check_sinks(sinks, q.shape[-2])
    problem = _op.find_other_device("attn_sink", sinks, q)
    if problem is not None:
        raise problem
    if not sinks.is_contiguous():
        raise ValueError(f"argument 'attn_sink' has stride {sinks.stride(0)}; it must be 1: pass attn_sink.contiguous()")


def _read_metadata(metadata, splits, q):
    """The shares that `get_mla_metadata` made, or None."""
    given = _latent.list_metadata(metadata, splits, len(q))
    for name, value, shape in given:
        _checks.check_numbers(name, value, shape, q)
    return Shares(splits, metadata) if given else None


def _check_rows(q, cache, name="k_cache"):
    """Refuses queries [B, SQ, H, 576], and pages [PAGES, ROWS, 1, 576], or of bytes, that the argument `name` has, that kernels do not
    take."""
    _op.check_types({"q": q, name: cache})
    _latent.check_rows(q, cache, name)
    for own, tensor in (("q", q), (name, cache)):
        if torch.is_grad_enabled() and tensor.requires_grad:
            raise NotImplementedError(f"argument '{own}' requires a gradient, and attention over a cache has none: detach it")
        if not has_rows(tensor):
            raise ValueError(
                f"argument '{own}' has strides {tuple(tensor.stride())}; its rows must be dense and begin at multiples of 16 bytes: "
                f"pass {own}.contiguous()"
            )
    problem = _op.find_other_device(name, cache, q) or _op.find_device_problem("q", q.device)
    if problem is not None:
        raise problem
