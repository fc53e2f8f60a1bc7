"""Latent attention (DeepSeek-V2) over a cache in pages, as FlashMLA has it."""

from __future__ import annotations

import torch

from .._core import _library
from . import _checks, _kernels, _op, _states
from ._append import has_rows
from ._shares import Shares
from ._types import TYPES

#: Numbers of a row of the cache: those that are key and value, and all with those of the key alone.
VALUE, KEY = 512, 576
# Bytes of a row of 8 bits: 512 numbers of e4m3, a float32 for each 128 of these, and the 64 of the key alone in bfloat16.
_BYTES = 656
_BYTE_TYPES = torch.float8_e4m3fn, torch.uint8, torch.int8
# Rows of a tile, and keys of a step.
_ROWS, _STEP = 64, 64


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
    return Shares.balance(lengths, _STEP, count_shares(rows, lengths.device), _kernels.find_numbers(lengths.device)["LEAST_STEPS"])


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
                   With indices also [pages, rows, 1, 656] of bytes (float8_e4m3fn, uint8 or int8) beside q of bfloat16: 512 numbers of
                   e4m3, four of float32 by which each 128 of these are multiplied, and the 64 of the key alone in bfloat16.
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
    if is_fp8_kvcache is not None and is_fp8_kvcache != _has_bytes(k_cache):
        raise ValueError(f"argument 'is_fp8_kvcache' is {is_fp8_kvcache}, and 'k_cache' has type {k_cache.dtype}")
    if head_dim_v != VALUE:
        _checks.refuse("head_dim_v", head_dim_v, f"values are the first {VALUE} numbers of a row")
    if torch.compiler.is_compiling():
        return torch.ops.tessera.latent_attention(
            q, k_cache, block_table, cache_seqlens, tile_scheduler_metadata, num_splits, softmax_scale, causal, indices, attn_sink,
            topk_length, keys_per_part,
        )  # fmt: skip
    if indices is not None:
        return _attend_listed(q, k_cache, indices, topk_length, softmax_scale, causal, attn_sink, keys_per_part)
    if topk_length is not None:
        raise ValueError("argument 'topk_length' is given without 'indices', of which it is the length")
    if _has_bytes(k_cache):
        raise NotImplementedError(f"argument 'k_cache' has type {k_cache.dtype}; rows of 8 bits go with 'indices'")
    page = _check(q, k_cache, block_table, cache_seqlens)
    batch, rows, heads, _ = q.shape
    out = q.new_empty((batch, rows, heads, VALUE))
    lse = q.new_empty((batch, heads, rows), dtype=torch.float32)
    most = block_table.shape[1] * page
    if 0 in (batch, rows, heads, most):
        return out.zero_(), lse.fill_(float("-inf"))
    if attn_sink is not None:
        _check_sinks(attn_sink, q)
    # One query sees all keys.
    masks = {"PAGE": page, "CAUSAL": bool(causal) and rows > 1}
    call = Call("mla_decode", q, k_cache, (block_table, cache_seqlens), softmax_scale, attn_sink, **masks)
    given = _read_metadata(tile_scheduler_metadata, num_splits, q)
    extents = ("TILES", batch * call.groups), ("STEPS", most // _STEP)
    if keys_per_part is None and _kernels.find_numbers(q.device, *extents)["BALANCED"]:
        shares = given or _balance(cache_seqlens, call.groups * _ROWS)
        parts = q.new_empty((shares.slots, rows, heads, VALUE), dtype=torch.float32)
        logs = q.new_empty((shares.slots, heads, rows), dtype=torch.float32)
        call.launch(out, lse, shares.starts, *shares.shares, parts.transpose(1, 2), logs, BALANCED=True)
        shares.merge(parts, logs, out, lse, attn_sink)
    else:
        call.attend_parts(most, _count_steps(most) * _STEP if keys_per_part is None else keys_per_part, out, lse)
    return out, lse


def _attend_listed(q, k_cache, indices, lengths, scale, causal, sinks, keys_per_part):
    """mla_with_kvcache over the rows of lists."""
    _check_rows(q, k_cache)
    if causal:
        _checks.refuse("causal", causal, "the rows of a list have no order: leave out those that a query does not see")
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
    if d_v != VALUE:
        _checks.refuse("d_v", d_v, f"values are the first {VALUE} numbers of a row")
    if torch.compiler.is_compiling():
        return torch.ops.tessera.latent_rows(q, kv, indices, sm_scale, attn_sink, topk_length, keys_per_part)
    _op.check_types({"q": q, "kv": kv, "indices": indices})
    width = _BYTES if _has_bytes(kv) else KEY
    wide = KEY if width == _BYTES else f"{KEY} or {VALUE}"
    for name, tensor, form in (("q", q, f"[tokens, heads, {wide}]"), ("kv", kv, f"[rows, 1, {width}]")):
        if tensor.dim() != 3:
            raise ValueError(f"argument '{name}' has shape {tuple(tensor.shape)}; it is {form}")
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
    call = Call("mla_sparse", q.unsqueeze(1), kv.unsqueeze(1), given, scale, sinks, LENGTHS=lengths is not None, MAXIMA=True)
    if keys_per_part is None:
        parts = max(1, _kernels.count_multiprocessors(q.device) // (count * call.groups))
        keys_per_part = _STEP * max(-(-_count_steps(most) // parts), _kernels.find_numbers(q.device)["LEAST_STEPS"])
    call.attend_parts(most, keys_per_part, out.unsqueeze(1), lse.unsqueeze(2), largest.unsqueeze(2))
    return out, largest, lse


class Call:
    """Latent attention of queries [B, SQ, H, 576] over pages [PAGES, ROWS, 1, 576], or of bytes, by the kernels of a source. `given` are
    the table and, where there are, the lengths of sequences."""

    def __init__(self, source, q, cache, given, scale, sinks, **parameters):
        heads = q.shape[2]
        packed = _count_heads(heads, q.shape[1])
        self.groups = heads // packed
        rows = (cache,)
        if _has_bytes(cache):
            rows = _split_rows(cache)
            parameters["CACHED"] = "f8E4M3FN"
        self.arguments = q.transpose(1, 2), *(part.transpose(1, 2) for part in rows), *given
        self.scale, self.sinks = _checks.read_scale(scale, q), sinks
        self.source = q.device.type == "cpu", _library.find_source(source)
        self.parameters = {"T": TYPES[q.dtype], "HEADS": packed, "KEY": q.shape[3], **parameters}

    def launch(self, out, lse, *more, **parameters):
        """Of whole sequences, to out [B, SQ, H, 512] and lse [B, H, SQ], and what goes to `more`, or of parts, without sinks."""
        sinks = () if self.sinks is None or "OUT" in parameters else (self.sinks,)
        kernel = _kernels.find(*self.source, **self.parameters, **parameters, **({"SINK": True} if sinks else {}))
        kernel(*self.arguments, out.transpose(1, 2), lse, self.scale, *sinks, *more)

    def attend_parts(self, most, keys_per_part, out, lse, largest=None):
        """Up to `most` keys of each sequence in parts, which are joined in their order. `largest` is for the largest scores."""
        if type(keys_per_part) is not int or keys_per_part < _STEP or keys_per_part % _STEP:
            raise ValueError(f"argument 'keys_per_part' is {keys_per_part!r}; it is a multiple of {_STEP}")
        count = -(-most // keys_per_part)
        if count == 1:
            self.launch(out, lse, keys_per_part, *(() if largest is None else (largest,)))
            return
        parts = out.new_empty((count, *out.shape), dtype=torch.float32)
        logs, *scores = (lse.new_empty((count, *lse.shape)) for _ in range(1 if largest is None else 2))
        self.launch(parts.flatten(0, 1), logs.flatten(0, 1), keys_per_part, *(own.flatten(0, 1) for own in scores), OUT="f32")
        _states.merge(parts, logs, out, lse, sinks=self.sinks)
        for own in scores:
            torch.amax(own, 0, out=largest)


def _has_bytes(cache):
    return getattr(cache, "dtype", None) in _BYTE_TYPES


def _split_rows(cache):
    """What rows of bytes have: numbers, what each 128 of them are multiplied by, and those of the key alone."""
    rows = cache.view(torch.uint8)
    ends = VALUE, VALUE + 4 * VALUE // 128, _BYTES
    types = torch.float8_e4m3fn, torch.float32, torch.bfloat16
    return [rows[..., begin:end].view(dtype) for begin, end, dtype in zip((0, *ends), ends, types)]


def _count_steps(most):
    return -(-most // _STEP)


def _count_heads(heads, rows):
    """How many heads are rows of one tile: a power of 2 that divides them, where all of their queries fit in it."""
    packed = 1
    while heads % (2 * packed) == 0 and 2 * packed * rows <= _ROWS:
        packed *= 2
    return packed


def _check_sinks(sinks, q):
    _op.check_types({"attn_sink": sinks})
    if sinks.dtype != torch.float32 or tuple(sinks.shape) != (q.shape[-2],) or not sinks.is_contiguous():
        raise ValueError(
            f"argument 'attn_sink' has shape {tuple(sinks.shape)} and type {sinks.dtype}; with this 'q' it is [{q.shape[-2]}], dense, of "
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


def _check_rows(q, cache, name="k_cache"):
    """Refuses queries [B, SQ, H, 576], and pages [PAGES, ROWS, 1, 576], or of bytes, that the argument `name` has, that kernels do not
    take."""
    _op.check_types({"q": q, name: cache})
    key = VALUE if tuple(q.shape[3:]) == (VALUE,) and not _has_bytes(cache) else KEY
    width = _BYTES if _has_bytes(cache) else key
    if width == _BYTES and q.dtype != torch.bfloat16:
        raise TypeError(f"argument 'q' has type {q.dtype}; beside rows of bytes, part of which is bfloat16, it is that")
    wide = KEY if width == _BYTES else f"{KEY} or {VALUE}"
    for own, tensor, form in (("q", q, f"[batch, queries, heads, {wide}]"), (name, cache, f"[pages, rows, 1, {width}]")):
        if tensor.dim() != 4 or tensor.shape[3] != (key if own == "q" else width):
            raise ValueError(f"argument '{own}' has shape {tuple(tensor.shape)}; it is {form}")
        if q.dtype not in TYPES or (width != _BYTES and tensor.dtype != q.dtype):
            raise TypeError(f"argument '{own}' has type {tensor.dtype}; q and {name} are float16, or both bfloat16")
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
    if cache.shape[2] != 1:
        raise ValueError(f"argument '{name}' has {cache.shape[2]} heads; all heads of 'q' read one row for each token")


def _check(q, k_cache, block_table, cache_seqlens):
    """The rows of a page; refuses what kernels do not take."""
    _check_rows(q, k_cache)
    page = k_cache.shape[1]
    if not 0 < page <= 1024:
        raise ValueError(f"argument 'k_cache' has pages of {page} rows; kernels take up to 1024")
    if q.shape[1] > _ROWS:
        raise ValueError(f"argument 'q' has {q.shape[1]} queries; kernels over a cache take up to {_ROWS}: pass them in parts")
    _checks.check_numbers("block_table", block_table, (q.shape[0], None), q)
    _checks.check_numbers("cache_seqlens", cache_seqlens, (q.shape[0],), q)
    return page
