"""Attention as serving engines call it: over caches of keys and values, in pages or not, with lengths that lie on the device.

What a call launches follows from types, shapes and strides alone. So nothing waits for the device, and graphs that are captured
take other lengths and tables when they are replayed.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch

from .._attention import _variants
from .._compiler import _choices, _frontend
from .._core import _library
from . import _checks, _kernels, _op, _serving_ops, _states
from ._append import has_rows, kv_append
from ._types import TYPES

_are_transforms_active = torch._C._are_functorch_transforms_active
#: A window that does not end.
_FARTHEST = 2**30
# Rows of the smallest tile, and what the steps of all kernels divide.
_ROWS, _STEP = 64, 128

# What is compiled beside the program, by source and parameters.
_begun = {}


class _NotReady(Exception):
    """A kernel is compiled beside the program, or cannot be."""


def _find_ready(is_cpu, source, kernel, **parameters):
    """`_kernels.find` of what need not be waited for. Raises _NotReady."""
    if is_cpu:
        return _kernels.find(is_cpu, source, kernel, **parameters)
    key = source, *sorted(parameters.items())
    future = _begun.get(key)
    if future is None:
        future = _begun[key] = _variants.begin_aside(_kernels.find, is_cpu, source, kernel, **parameters)
    if not future.done():
        raise _NotReady
    if future.exception() is not None:
        # As each warning, Python says it once.
        warnings.warn(f"calls of few queries go on with kernels for others: {future.exception()}", RuntimeWarning)
        raise _NotReady
    return future.result()


def _make_numbers(count, first, step, device):
    """`count` numbers on a device, which calls do not change. In a graph that is captured they are made in each replay, since its
    memory is its own."""
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        if not step:
            return torch.full((count,), first, device=device, dtype=torch.int32)
        return torch.arange(first, first + count * step, step, device=device, dtype=torch.int32)
    return _keep_numbers(count, first, step, device)


@functools.lru_cache(maxsize=256)
def _keep_numbers(count, first, step, device):
    # By a copy that has ended when it returns: later calls may run on another stream.
    return (torch.arange(count, dtype=torch.int32) * step + first).to(device)


@functools.lru_cache(maxsize=16)
def _keep_ones(device):
    return torch.ones(1, 1).to(device)


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    qv: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: torch.Tensor | int | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    page_table: torch.Tensor | None = None,
    cu_seqlens_q: torch.Tensor | None = None,
    cu_seqlens_k_new: torch.Tensor | None = None,
    max_seqlen_q: int | None = None,
    rotary_seqlens: torch.Tensor | None = None,
    q_descale: torch.Tensor | None = None,
    k_descale: torch.Tensor | None = None,
    v_descale: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool | torch.Tensor = False,
    window_size: tuple[int | None, int | None] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    scheduler_metadata: torch.Tensor | None = None,
    num_splits: int = 0,
    pack_gqa: bool | None = None,
    sm_margin: int = 0,
    return_softmax_lse: bool = False,
    *,
    block_table: torch.Tensor | None = None,
    alibi_slopes: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    prefix_lens: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    keys_per_part: int | None = None,
) -> torch.Tensor | Any:
    """flash_attn.flash_attn_with_kvcache: attention of the last queries of sequences over caches of their keys and values.

    q:                [B, SQ, H, D], float16 or bfloat16.
    k_cache, v_cache: [batches, rows, HK, D] and [..., DV], or [pages, rows, HK, D] with a `page_table` (`block_table` in
                      FlashAttention-2), of int32, [B, pages of a sequence]. The heads of q are a multiple of HK. Of the type of q, or
                      float8_e4m3fn, in pages of a multiple of 64 rows.
    k_descale, v_descale: float32, [B, HK]: what elements of such caches are multiplied by; 1 where they are not given.
    cache_seqlens:    int32, [B], how many keys each sequence has; a number for all, or None for all rows.
    cache_batch_idx:  int32, [B], the batch of the caches that is each sequence's. Not beside a page table.
    k, v:             [B, SN, HK, D] and [..., DV]: new keys and values, which are stored behind those of `cache_seqlens` first, and
                      attended to. Where a sequence has no room for them they are not stored.
    rotary_cos, rotary_sin: [positions, n]: new keys are rotated by their places, and queries, of which there are as many as new keys
                      and which have the same places. Pairs are neighbours where `rotary_interleaved`.
    sinks:            [H], a number for each head: the score of a key more that every query sees, with the value 0.
    causal:           True, False, or int32, [B]: a flag for each sequence.
    attention_chunk:  queries see the keys of their own chunk of so many alone, up to their own; 0 for no chunks.
    prefix_lens:      int32, [B], of how many first keys of each sequence a window hides none.
    out:              [B, SQ, H, DV], of the type of q, where the output is stored.
    num_splits:       into how many parts the keys of a sequence are divided; 0 lets the call find it. It is found from shapes alone.
    keys_per_part:    how many keys a part has instead, a multiple of 128: then the bits of a query depend on it and its keys alone, and
                      with caches of 8 bits on how many keys its sequence has.

    Masks are aligned at the last query and the last key. A row that sees no key gives zeros, and an LSE of -inf. What lies behind
    the last key of a sequence, and entries of a table behind its last page, may be anything, NaN too. `pack_gqa`, `sm_margin` and
    `scheduler_metadata` change nothing. Has no gradient.
    """
    for name, value, reason in (
        ("qv", qv, "kernels multiply one tensor of queries: leave it out"),
        ("cache_leftpad", cache_leftpad, "kernels take sequences that begin at the first row of their cache: leave it out"),
        ("cu_seqlens_q", cu_seqlens_q, "queries lie in [B, SQ, H, D]: leave it out"),
        ("cu_seqlens_k_new", cu_seqlens_k_new, "new keys lie in [B, SN, HK, D]: leave it out"),
        ("rotary_seqlens", rotary_seqlens, "new keys are rotated by their places behind cache_seqlens: leave it out"),
        ("q_descale", q_descale, "queries have 16 bits: leave it out"),
    ):  # fmt: skip
        if value is not None:
            _checks.refuse(name, "given", reason)
    if page_table is not None and block_table is not None:
        raise ValueError("arguments 'page_table' and 'block_table' are both given; they are two names of one")
    table = page_table if page_table is not None else block_table
    if torch.compiler.is_compiling():
        found, lse = _serving_ops.attend_cache(
            q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, rotary_interleaved, cache_seqlens, window_size, cache_batch_idx, table,
            softmax_scale, causal, softcap, num_splits, alibi_slopes, sinks, keys_per_part, attention_chunk, prefix_lens, k_descale,
            v_descale,
        )  # fmt: skip
        out = found if out is None else out.copy_(found)
        return (out, lse) if return_softmax_lse else out
    call = Call(q, k_cache, v_cache, cache_seqlens, cache_batch_idx, table, alibi_slopes, sinks, descales=(k_descale, v_descale))
    window = call.read_masks(causal, window_size, attention_chunk, prefix_lens)
    if k is not None or v is not None:
        call.append(k, v, rotary_cos, rotary_sin, rotary_interleaved, window != (None, None) or call.variant is not None)
    elif rotary_cos is not None or rotary_sin is not None:
        raise ValueError("argument 'rotary_cos' is given without new keys; queries alone are rotated before the call")
    if out is not None:
        _checks.check_output(out, q, v_cache)
    out, lse = call.run(
        _checks.read_scale(softmax_scale, q), window, _variants.read_softcap(max(softcap, 0.0)), num_splits, keys_per_part, out
    )
    return (out, lse) if return_softmax_lse else out


def has_few(q, k):
    """Whether calls of `attention` may take the kernels of this file: for few queries of many keys, [B, H, S, D]."""
    rows = q.shape[2]
    if rows > _ROWS:
        return False
    numbers = _kernels.find_numbers(q.device)
    return rows <= numbers["MOST_QUERIES"] and k.shape[2] >= numbers["LEAST_KEYS"]


def attend_few(q, k, v, window, scale, return_lse, softcap=0.0):
    """What `attention` gives for few queries of many keys, [B, H, S, D], where nothing sees ops: query heads that share keys are
    rows of one tile, and keys are divided where tiles are few. None where that gains nothing, or for what the kernels of this file
    do not take."""
    if not type(q) is type(k) is type(v) is torch.Tensor or not q.dim() == k.dim() == v.dim() == 4:
        return None
    if _are_transforms_active() or _op.may_have_tangents() or not _op.runs_on(q.device):
        return None
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return None
    heads, key_heads = q.shape[1], k.shape[1]
    tiles = q.shape[0] * heads
    if not key_heads or (heads == key_heads and _is_full(tiles, q.device)) or not _frontend.may_compile():
        return None
    try:
        call = Call(*(x.transpose(1, 2) for x in (q, k, v)), None, None, None)
        scale = q.shape[3] ** -0.5 if scale is None else _checks.read_scale(scale, q)
    except (NotImplementedError, TypeError, ValueError):
        return None  # Others say what is wrong with it.
    out = _op.allocate_results(q, v, lse=False)[0]
    call.find = _find_ready
    try:
        _, lse = call.run(scale, window, softcap, out=out.transpose(1, 2))
    except _NotReady:
        return None
    return (out, lse) if return_lse else out


class Call:
    """Checked tensors of a call: q [B, SQ, H, D], caches [pages, rows, HK, D], numbers. With `starts` q is [1, tokens, H, D], and has
    the queries of all sequences one behind the other, at most `rows` of each."""

    def __init__(
        self, q, k_cache, v_cache, lengths, slots, table, slopes=None, sinks=None, starts=None, rows=0, descales=(None, None)
    ):  # fmt: skip
        #: How kernels are found.
        self.find = _kernels.find
        #: Whether the bits of a query depend on nothing but it and its keys.
        self.is_invariant = False
        #: A mask that has a source of its own: its name, what it takes, and its parameters.
        self.variant = None
        tensors = {"q": q, "k_cache": k_cache, "v_cache": v_cache}
        _op.check_types(tensors)
        _op.check_forms(tensors)
        self._check(q, k_cache, v_cache, tensors)
        self.q, self.k, self.v, self.slopes, self.sinks = q, k_cache, v_cache, slopes, None
        self.batch, self.rows, self.heads, self.width = q.shape
        self.starts = starts
        if starts is not None:
            _checks.check_numbers("cu_seqlens_q", starts, (None,), q)
            self.batch, self.rows = len(starts) - 1, rows
        self.key_heads, self.value = k_cache.shape[2], v_cache.shape[3]
        self.table = table
        #: What elements of a cache of 8 bits stand for, by name.
        self.descales = self._read_descales(*descales)
        if table is not None:
            if slots is not None:
                raise ValueError(
                    "arguments 'cache_batch_idx' and 'page_table' are both given; a table says which pages are a sequence's"
                )
            _checks.check_numbers("page_table", table, (self.batch, None), q)
            self.most = table.shape[1] * k_cache.shape[1]
            self.slots = None
        else:
            if slots is None and k_cache.shape[0] != self.batch:
                raise ValueError(
                    f"argument 'k_cache' has {k_cache.shape[0]} batches and 'q' {self.batch}; pass cache_batch_idx, which says whose "
                    "is which"
                )
            self.most = k_cache.shape[1]
            self.slots = slots
            if slots is not None:
                _checks.check_numbers("cache_batch_idx", slots, (self.batch,), q)
        if isinstance(lengths, torch.Tensor):
            _checks.check_numbers("cache_seqlens", lengths, (self.batch,), q)
        else:
            number = self.most if lengths is None else lengths
            if type(number) is not int or not 0 <= number <= self.most:
                raise ValueError(f"argument 'cache_seqlens' is {number!r}; it is a tensor, or a number of keys up to {self.most}")
            lengths = None if number == self.most else _make_numbers(self.batch, number, 0, q.device)
        #: How many keys each sequence has; None where all have as many as there is room for.
        self.lengths = lengths
        if slopes is not None and (slopes.dtype != torch.float32 or tuple(slopes.shape) != (self.heads,)):
            _checks.refuse(
                "alibi_slopes",
                f"of type {slopes.dtype} and shape {tuple(slopes.shape)}",
                "kernels take a float32 slope for each head",
            )
        if sinks is not None:
            problem = _op.find_sinks_problem(sinks, q.transpose(1, 2))
            if problem is not None:
                raise problem
            self.sinks = sinks.to(torch.float32)

    @staticmethod
    def _check(q, k_cache, v_cache, tensors):
        for name, tensor in tensors.items():
            is_short = name != "q" and k_cache.dtype == torch.float8_e4m3fn
            if tensor.dtype not in TYPES and not is_short:
                raise TypeError(f"argument '{name}' has type {tensor.dtype}; attention takes float16 and bfloat16")
            if tensor.dtype != (k_cache.dtype if is_short else q.dtype):
                raise TypeError(
                    f"argument '{name}' has type {tensor.dtype}; with a 'q' of {q.dtype} both caches have its type, or float8_e4m3fn"
                )
            problem = _op.find_other_device(name, tensor, q) or _variants.find_head_problem(name, tensor.shape[3])
            if problem is None and torch.is_grad_enabled() and tensor.requires_grad:
                problem = NotImplementedError(
                    f"argument '{name}' requires a gradient, and attention over a cache has none: detach it"
                )
            if problem is not None:
                raise problem
            if not has_rows(tensor):
                raise ValueError(
                    f"argument '{name}' has strides {tuple(tensor.stride())}; its rows must be dense and begin at multiples of 16 bytes: "
                    f"pass {name}.contiguous()"
                )
        problem = _op.find_device_problem("q", q.device)
        if problem is not None:
            raise problem
        if k_cache.shape[:3] != v_cache.shape[:3]:
            raise ValueError(
                f"arguments 'k_cache' and 'v_cache' have shapes {tuple(k_cache.shape)} and {tuple(v_cache.shape)}; all but their last "
                "dimensions are equal"
            )
        if q.shape[3] != k_cache.shape[3]:
            raise ValueError(f"argument 'k_cache' has head dimension {k_cache.shape[3]} and 'q' {q.shape[3]}; they must be equal")
        if not k_cache.shape[2] or q.shape[2] % k_cache.shape[2]:
            raise ValueError(
                f"argument 'q' has {q.shape[2]} heads and 'k_cache' {k_cache.shape[2]}; the first must be a multiple of the second"
            )

    def _read_descales(self, *given):
        """Numbers of [B, HK, 1] by their names, where the cache has 8 bits."""
        names, is_short = ("k_descale", "v_descale"), self.k.dtype == torch.float8_e4m3fn
        if not is_short:
            for name, tensor in zip(names, given):
                if tensor is not None:
                    _checks.refuse(name, "given", "caches of 16 bits stand for themselves: leave it out")
            return {}
        if self.starts is not None and self.table is None:
            _checks.refuse("k", self.k.dtype, "packed keys have 16 bits, and caches in pages 8 too")
        if self.table is not None and self.k.shape[1] % _ROWS:
            _checks.refuse("k_cache", f"of 8 bits in pages of {self.k.shape[1]} rows", f"pages of 8 bits have a multiple of {_ROWS}")
        found = {}
        for name, tensor in zip(names, given):
            if tensor is None:
                tensor = _keep_ones(self.q.device).expand(self.batch, self.key_heads)
            _op.check_types({name: tensor})
            problem = _op.find_other_device(name, tensor, self.q)
            if problem is not None:
                raise problem
            if tensor.dtype != torch.float32 or tuple(tensor.shape) != (self.batch, self.key_heads):
                raise ValueError(
                    f"argument '{name}' has type {tensor.dtype} and shape {tuple(tensor.shape)}; it is float32, "
                    f"[{self.batch}, {self.key_heads}]"
                )
            found[name] = tensor[..., None]
        return found

    def read_masks(self, causal, window, chunk=0, prefixes=None):
        """The window, where it says all of the mask; otherwise notes the variant that does."""
        flags, causal = (causal, False) if isinstance(causal, torch.Tensor) else (None, causal)
        left, right = _variants.read_window(causal, window, "window_size")
        if type(chunk) is not int or chunk < 0:
            raise ValueError(f"argument 'attention_chunk' is {chunk!r}; it is a number of keys, or 0")
        if flags is not None:
            _checks.check_numbers("causal", flags, (self.batch,), self.q)
            if chunk or prefixes is not None or (left, right) != (None, None):
                _checks.refuse("causal", "a tensor", "no kernel has flags beside windows, chunks and prefixes: leave one of them out")
            self.variant = "causal_flags", {"causal": flags}, {}
        elif prefixes is not None:
            _checks.check_numbers("prefix_lens", prefixes, (self.batch,), self.q)
            if chunk or left is None or right != 0:
                _checks.refuse("prefix_lens", "given", "it is for a causal window, without chunks: pass window_size=(left, 0)")
            self.variant = "prefix_window", {"left": left, "prefixes": prefixes}, {}
        elif chunk:
            if left is not None or right != 0:
                _checks.refuse("attention_chunk", chunk, "chunks are causal and have no window: pass causal=True alone")
            self.variant = "chunks", {}, {"CHUNK_KEYS": chunk}
        return (left, right) if self.variant is None else (None, None)

    def append(self, k, v, cos, sin, interleaved, is_masked):
        """Stores new keys and values, and rotates queries."""
        if self.descales:
            _checks.refuse("k", "given", "a cache of 8 bits takes new keys by kv_append, which rounds them: leave it out")
        _op.check_types({"k": k, "v": v})
        for name, new, cache in (("k", k, self.k), ("v", v, self.v)):
            if new.dim() != 4 or new.shape[0] != self.batch or new.shape[2:] != cache.shape[2:] or new.shape[1] != k.shape[1]:
                raise ValueError(
                    f"argument '{name}' has shape {tuple(new.shape)}; with these 'q' and caches it is "
                    f"[{self.batch}, {k.shape[1]}, {cache.shape[2]}, {cache.shape[3]}]"
                )
        count, device = k.shape[1], self.q.device
        if cos is not None and (count != self.rows or not (is_masked or count == 1)):
            _checks.refuse(
                "rotary_cos",
                "given",
                "queries are rotated as new keys are, of which there are as many, and see them by a causal mask",
            )
        lengths = _make_numbers(self.batch, self.most, 0, device) if self.lengths is None else self.lengths
        places = lengths[:, None] + _make_numbers(count, 0, 1, device)
        rows = self.k.shape[1]
        if self.table is None:
            slots = _make_numbers(self.batch, 0, 1, device) if self.slots is None else self.slots
            slots = slots[:, None].to(torch.int64) * rows + places
        else:
            pages = self.table.gather(1, (places // rows).clamp_(max=self.table.shape[1] - 1).to(torch.int64)).to(torch.int64)
            slots = pages * rows + places % rows
        slots = torch.where(places < self.most, slots, -1).flatten()
        named = {}
        if cos is not None:
            named = {
                "cos": cos,
                "sin": sin,
                "interleaved": interleaved,
                "positions": places.flatten().to(torch.int64),
                "q": self.q.flatten(0, 1),
            }
        rotated = kv_append(k.flatten(0, 1), v.flatten(0, 1), self.k, self.v, slots, **named)
        if rotated is not None:
            self.q = rotated.unflatten(0, (self.batch, self.rows))
        self.lengths = lengths + count

    def _see_nothing(self, out, lse):
        """The results of rows that see no key: `lse` is [..., H, rows]."""
        return out.zero_(), lse.fill_(float("-inf")) if self.sinks is None else lse.copy_(self.sinks[:, None])

    def run(self, scale, window, softcap=0.0, count=0, share=None, out=None):
        """Output and LSE."""
        shape = self.batch, self.rows, self.heads
        out = self.q.new_empty((*shape, self.value)) if out is None else out
        lse = self.q.new_empty((self.batch, self.heads, self.rows), dtype=torch.float32)
        if 0 in (*shape, self.most):
            return self._see_nothing(out, lse)
        # The heads of one query are rows of a tile, whatever their number; of several queries as many as fill it. Nothing of this
        # may depend on the number of queries where the bits of one may not.
        self.is_invariant = share is not None
        grouped = self.rows == 1 and self.slopes is None and self.sinks is None and not self.is_invariant
        group = self.heads // self.key_heads
        packed = 1 if grouped else _count_packed(group, 1 if self.is_invariant else self.rows)
        rows = group if grouped else self.rows * packed
        source, extras, parameters = self._describe_kernel(window, softcap, grouped, packed)
        tiles = self.batch * (self.key_heads if grouped else self.heads // packed) * -(-rows // parameters["BM"])
        share = self._find_share(count, share, tiles, parameters["BN"])
        is_divided = self.is_invariant or share < self.most
        kernel = self._find_kernel(source, parameters, is_divided)
        call = functools.partial(self._launch, kernel, grouped, scale, extras)
        if not is_divided:
            call(out, lse)
            return out, lse
        count = -(-self.most // share)
        parts = self.q.new_empty((count, *shape, self.value), dtype=torch.float32)
        lses = self.q.new_empty((count, self.batch, self.heads, self.rows), dtype=torch.float32)
        extras["share"] = share
        # Before anything is launched: it may have to be compiled.
        merge = _states.find_merge(self.find, parts, out.dtype, 1 if self.is_invariant else count)
        call(parts.flatten(0, 1), lses.flatten(0, 1))
        _states.launch_merge(merge, parts, lses, out, lse)
        return out, lse

    def run_tokens(self, scale, window, softcap, out=None):
        """Output [tokens, H, DV] and LSE [H, tokens]."""
        q = self.q[0]
        out = q.new_empty((len(q), self.heads, self.value)) if out is None else out
        sums = q.new_empty((self.heads, len(q)), dtype=torch.float32)
        if 0 in (self.batch, self.rows, len(q), self.most):
            return self._see_nothing(out, sums)
        packed = _count_packed(self.heads // self.key_heads, 1 if self.is_invariant else self.rows)
        source, extras, parameters = self._describe_kernel(window, softcap, False, packed)
        kernel = self._find_kernel(source, parameters, False)
        # Of the LSE of each sequence only the extents count.
        shape = sums.new_empty(self.rows).expand(self.batch, self.heads, self.rows)
        extras.update(query_starts=self.starts, sums=sums)
        self._launch_on(kernel, q.transpose(0, 1), out.transpose(0, 1), shape, scale, extras)
        return out, sums

    def _find_run(self, tile_rows):
        """How many rows of pages that are shorter than a step are copied at once; 1 where each thread copies some of one."""
        page, widths = self.k.shape[1], (self.width, self.value)
        allowed = _choices.list_allowed(_library.find_source("attention_cache"), "RUN")
        run = max(run for run in allowed if page % run == 0)
        least = 1 if tile_rows <= _ROWS else _kernels.find_numbers(self.q.device)["LEAST_LONG_RUN"]
        return run if run >= least and all(_variants.find_width("k_cache", width) % 64 == 0 for width in widths) else 1

    def _find_share(self, count, share, tiles, step):
        """How many keys a part has; all of them where they are not divided."""
        if share is not None:
            if type(share) is not int or share < _STEP or share % _STEP:
                raise ValueError(f"argument 'keys_per_part' is {share!r}; it is a multiple of {_STEP}")
            return share
        if type(count) is not int or count < 0:
            raise ValueError(f"argument 'num_splits' is {count!r}; it is a number of parts, or 0 to let the call find it")
        count = count or _count_parts(tiles, self.most, self.q.device)
        return -(-self.most // (count * step)) * step

    def _describe_kernel(self, window, softcap, grouped, packed):
        """The source of the kernel, what its variant takes, and parameters, those of tiles by rules."""
        left, right = (_FARTHEST if bound is None else bound for bound in window)
        extras, imports = {}, ["attention_cache"]
        if grouped and right >= 0:
            right = _FARTHEST
        if left != _FARTHEST or right not in (0, _FARTHEST):
            imports.append("variants/window")
            extras.update(left=left, right=right)
        elif right == 0:
            imports.append("variants/causal")
        if softcap and self.slopes is not None:
            _checks.refuse("softcap", softcap, "no kernel over a cache has slopes too: leave one of them out")
        if softcap:
            imports.append("variants/softcap")
            extras["cap"] = softcap
        if self.slopes is not None:
            imports.append("variants/alibi")
            extras["slopes"] = self.slopes
        if self.sinks is not None:
            imports.append("variants/sink")
            extras["sinks"] = self.sinks
        width, value = (_variants.find_width(name, size) for name, size in (("q", self.width), ("v_cache", self.value)))
        parameters = {"T": TYPES[self.q.dtype], "D": width, "DV": value}
        flags = {
            "PADDED": (width, value) != (self.width, self.value), "GROUPED": grouped, "PAGED": self.table is not None,
            "TOKENS": self.starts is not None, "INVARIANT": self.is_invariant,
        }  # fmt: skip
        parameters.update({name: True for name, is_set in flags.items() if is_set})
        if self.variant is not None:
            name, given, more = self.variant
            imports.append(f"variants/{name}")
            extras.update(given)
            parameters.update(more)
        parameters.update({name: False for name, given in (("LENGTHS", self.lengths), ("SLOTS", self.slots)) if given is None})
        if self.descales:
            parameters["CACHED"] = "f8E4M3FN"
        if packed > 1:
            parameters["HEADS"] = packed
        source = "".join(['$rules "choices/serving.json" as "cache.tile"\n', *(f'$import "{name}.tile"\n' for name in imports)])
        # What the kernel calls rows are those of a query of all heads that share keys.
        rows, page = self.heads // self.key_heads if grouped else self.rows, self.k.shape[1]
        # Blocks of gathered keys begin where they do whatever the length is; those of 8 bits end with the last key.
        is_gathered = self.is_invariant and not self.descales and (self.table is not None or self.starts is None)
        extents = (("SQ", 1 if self.is_invariant else rows), ("ROWS", 1 if is_gathered else page))
        chosen = _kernels.choose(self.q.device, source, extents, **parameters)
        parameters.update({name: chosen[name] for name in ("BM", "BN", "BLOCKS")})
        if is_gathered or (self.table is not None and page % chosen["BN"]):
            # Without pages all rows of a block follow each other.
            parameters.update(GATHERED=True, **({} if self.table is None else {"RUN": self._find_run(chosen["BM"])}))
        return source, extras, parameters

    def _find_kernel(self, source, parameters, divided):
        """The kernel, of parts of keys where these are divided."""
        if divided:
            parameters = {**parameters, "PARTS": True, "OUT": "f32"}
        return self.find(self.q.device.type == "cpu", source, "attention", **parameters)

    def _launch(self, kernel, grouped, scale, extras, out, lse):
        """Launches the kernel for results [B, SQ, H, DV] and [B, H, SQ] of all parts."""
        if grouped:
            group = (self.key_heads, self.heads // self.key_heads)
            q, o = (x.squeeze(1).unflatten(1, group) for x in (self.q, out))
            lse = lse.squeeze(2).unflatten(1, group)
        else:
            q, o = self.q.transpose(1, 2), out.transpose(1, 2)
        self._launch_on(kernel, q, o, lse, scale, extras)

    def _launch_on(self, kernel, q, o, lse, scale, extras):
        given = {"lengths": self.lengths, "pages": self.table, "slots": self.slots, **self.descales, **extras}
        named = {name: given[name] for name in kernel.names[6:]}
        k, v = (x.permute(2, 0, 1, 3) for x in (self.k, self.v))
        kernel(q, k, v, o, lse, scale, *named.values())


def _count_packed(group, rows):
    """How many heads of a group are rows of one tile: a power of 2 that divides the group, where all of their rows fit in it."""
    packed = 1
    while group % (2 * packed) == 0 and 2 * packed * rows <= _ROWS:
        packed *= 2
    return packed


def _is_full(tiles, device):
    """Whether tiles fill a GPU as they are."""
    return 100 * tiles >= _kernels.find_numbers(device)["FULL"] * _kernels.count_multiprocessors(device)


def _count_parts(tiles, keys, device):
    """Into how many parts keys are divided so that tiles fill the GPU: as few as come near to the best."""
    numbers, multiprocessors = _kernels.find_numbers(device), _kernels.count_multiprocessors(device)
    most = min(numbers["MOST_PARTS"], keys // numbers["LEAST_SHARE"])
    if _is_full(tiles, device) or most <= 1:
        return 1
    fills = []
    for count in range(1, most + 1):
        waves = tiles * count / multiprocessors
        fills.append(waves / -(-tiles * count // multiprocessors))
    return 1 + next(i for i, fill in enumerate(fills) if 100 * fill >= numbers["ENOUGH"] * max(fills))
