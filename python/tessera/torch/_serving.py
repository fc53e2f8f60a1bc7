"""Attention as serving engines call it: over caches of keys and values, in pages or not, with lengths that lie on the device.

What a call launches follows from types, shapes and strides alone. So nothing waits for the device, and graphs that are captured
take other lengths and tables when they are replayed.
"""

from __future__ import annotations

from typing import Any

import torch

from .._attention import _variants
from .._compiler import _frontend
from . import _append, _cache_recipes, _checks, _direct, _kept, _kernels, _op, _prepared, _serving_ops
from ._append import has_rows
from ._cache_recipes import ROWS, STEP
from ._types import TYPES

_are_transforms_active = torch._C._are_functorch_transforms_active
_is_grad_enabled = torch.is_grad_enabled
_NO_OTHERS, _WINDOWS = (None,) * 6, (tuple, list)
# What calls name keys, values, their lengths and the table of their pages.
_NAMES = "k_cache", "v_cache", "cache_seqlens", "page_table"


def _read_length(number, q, k_cache, table):
    """A number of keys that all sequences have, as a call has it that gives them for each: None for all that there is room for, and the
    number itself where it fits to nothing, which is refused as it is."""
    if _direct.is_seen() or not isinstance(q, torch.Tensor):
        return number
    try:
        batch, most = q.shape[0], k_cache.shape[1] * (1 if table is None else table.shape[1])
    except (AttributeError, IndexError):
        return number
    if not 0 <= number < most:
        return None if number == most else number
    return _kept.full((batch,), number, torch.int32, q.device)


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
                      float8_e4m3fn.
    k_descale, v_descale: float32, [B, HK]: what elements of such caches are multiplied by; 1 where they are not given.
    cache_seqlens:    int32, [B], how many keys each sequence has; a number for all, or None for all rows.
    cache_batch_idx:  int32, [B], the batch of the caches that is each sequence's. Not beside a page table.
    k, v:             [B, SN, HK, D] and [..., DV]: new keys and values, which are stored behind those of `cache_seqlens` first, and
                      attended to. Those that a sequence has no room for are neither.
    rotary_cos, rotary_sin: [positions, n]: new keys are rotated by their places, and queries, of which there are as many as new keys
                      and which have the same places. Pairs are neighbours where `rotary_interleaved`.
    sinks:            [H], a number for each head: the score of a key more that every query sees, with the value 0.
    causal:           True, False, or int32, [B]: a flag for each sequence.
    attention_chunk:  queries see the keys of their own chunk of so many alone, up to their own; 0 for no chunks.
    prefix_lens:      int32, [B], of how many first keys of each sequence a window hides none.
    out:              [B, SQ, H, DV], of the type of q, where the output is stored.
    num_splits:       into how many parts the keys of a sequence are divided; 0 lets the call find it. It is found from shapes alone.
    keys_per_part:    how many keys a part has instead, a multiple of 128: then the bits of a query depend on it and its keys alone.

    Masks are aligned at the last query and the last key. A row that sees no key gives zeros, and an LSE of -inf. What lies behind
    the last key of a sequence, and entries of a table behind its last page, may be anything, NaN too. `pack_gqa`, `sm_margin` and
    `scheduler_metadata` change nothing. Has no gradient.
    """
    table = block_table if page_table is None else page_table
    if type(cache_seqlens) is int:
        cache_seqlens = _read_length(cache_seqlens, q, k_cache, table)
    flags, is_causal = (causal, None) if isinstance(causal, torch.Tensor) else (None, causal)
    given = (
        q, k_cache, v_cache, cache_seqlens, table, cache_batch_idx, alibi_slopes, sinks, k_descale, v_descale, flags, prefix_lens, k, v,
        rotary_cos, rotary_sin, out,
    )  # fmt: skip
    key, others = None, (qv, cache_leftpad, cu_seqlens_q, cu_seqlens_k_new, rotary_seqlens, q_descale)
    if type(window_size) in _WINDOWS and others == _NO_OTHERS and (page_table is None or block_table is None):
        # Elements of a cache of 8 bits are multiplied by 1 where nothing else is given.
        short = None if k_descale is not None and v_descale is not None else getattr(k_cache, "dtype", None)
        options = softmax_scale, is_causal, softcap, num_splits, keys_per_part, attention_chunk, rotary_interleaved, short
        key, results = _prepared.recall(given, "flash_attn_with_kvcache", *options, *window_size)
        if results is not None:
            found, lse = results if out is None else (out, results)
            return (found, lse) if return_softmax_lse else found
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
    if torch.compiler.is_compiling():
        found, lse = _serving_ops.attend_cache(
            q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, rotary_interleaved, cache_seqlens, window_size, cache_batch_idx, table,
            softmax_scale, causal, softcap, num_splits, alibi_slopes, sinks, keys_per_part, attention_chunk, prefix_lens, k_descale,
            v_descale,
        )  # fmt: skip
        out = found if out is None else out.copy_(found)
        return (out, lse) if return_softmax_lse else out
    names = _NAMES if block_table is None else (*_NAMES[:3], "block_table")
    call = Call(
        q, k_cache, v_cache, cache_seqlens, cache_batch_idx, table, alibi_slopes, sinks, descales=(k_descale, v_descale), names=names
    )  # fmt: skip
    window = call.read_masks(causal, window_size, attention_chunk, prefix_lens)
    if k is not None or v is not None:
        call.append(k, v, rotary_cos, rotary_sin, rotary_interleaved, window != (None, None) or call.variant is not None)
    elif rotary_cos is not None or rotary_sin is not None:
        name = "rotary_cos" if rotary_sin is None else "rotary_sin"
        raise ValueError(f"argument '{name}' is given without new keys; queries alone are rotated before the call")
    if out is not None:
        _checks.check_output(out, q, v_cache)
    softcap = _checks.read_softcap(softcap)
    call.key, call.given = key, given
    out, lse = call.run(_checks.read_scale(softmax_scale), window, softcap, num_splits, keys_per_part, out)
    return (out, lse) if return_softmax_lse else out


def has_few(q, k):
    """Whether calls of `attention` may take the kernels of this file: for few queries of many keys, [B, H, S, D]."""
    rows = q.shape[2]
    if rows > ROWS:
        return False
    numbers = _kernels.find_numbers(q.device)
    return rows <= numbers["MOST_QUERIES"] and k.shape[2] >= numbers["LEAST_KEYS"]


def attend_few(q, k, v, window, scale, return_lse, softcap=0.0):
    """What `attention` gives for few queries of many keys, [B, H, S, D], where nothing sees ops: query heads that share keys are
    rows of one tile, and keys are divided where tiles are few. None where that gains nothing, or for what the kernels of this file
    do not take."""
    if not type(q) is type(k) is type(v) is torch.Tensor or not q.dim() == k.dim() == v.dim() == 4:
        return None
    if _is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return None
    tensors = q, k, v
    key, results = _prepared.recall(tensors, "attention", scale, softcap, *window)
    if results is not None:
        return results if return_lse else results[0]
    if _are_transforms_active() or _op.may_have_tangents() or not _op.runs_on(q.device):
        return None
    heads, key_heads = q.shape[1], k.shape[1]
    tiles = q.shape[0] * heads
    is_filled = not key_heads or (heads == key_heads and _cache_recipes.is_full(tiles, q.device))
    if is_filled or 0 in q.shape or not _frontend.may_compile():
        return None
    try:
        call = Call(*(x.transpose(1, 2) for x in tensors), None, None, None)
        numbers = _checks.read_scale(scale), window, softcap
    except (NotImplementedError, TypeError, ValueError):
        return None  # Others say what is wrong with it.
    call.key, call.given = key, tensors
    try:
        out, lse = call.run(*numbers, turned=tensors)
    except _cache_recipes.NotReady:
        return None
    return (out, lse) if return_lse else out


class Call:
    """Checked tensors of a call: q [B, SQ, H, D], caches [pages, rows, HK, D], numbers. With `starts` q is [1, tokens, H, D], and has
    the queries of all sequences one behind the other, at most `rows` of each, and `slots` are where their keys begin: packed ones, or
    as many as sequences have in pages."""

    def __init__(
        self, q, k_cache, v_cache, lengths, slots, table, slopes=None, sinks=None, starts=None, rows=0, descales=(None, None),
        names=_NAMES,
    ):  # fmt: skip
        #: What further calls are known by, and the tensors that they are given.
        self.key, self.given = None, ()
        #: New keys, values, cosines and sines by their names, and whether pairs are neighbours.
        self.new, self.is_interleaved = {}, None
        #: Where packed keys begin, and the tensors of queries, keys and values as they were given.
        self.key_starts, self.own = None, None
        #: Of packed queries, whether the bits of each depend on nothing but it and its keys.
        self.is_invariant = False
        #: A mask that has a source of its own: its name, what it takes, and its parameters.
        self.variant = None
        of_keys, of_values, of_lengths, of_table = names
        tensors = {"q": q, of_keys: k_cache, of_values: v_cache}
        others = {"alibi_slopes": slopes, "sinks": sinks, **dict(zip(("k_descale", "v_descale"), descales))}
        _op.check_types(tensors, others)
        _op.check_forms(tensors)
        self._check(q, k_cache, v_cache, tensors)
        _op.check_derivatives("attention over a cache", {**tensors, **others})
        self.q, self.k, self.v, self.slopes, self.sinks = q, k_cache, v_cache, slopes, None
        self.batch, self.rows, self.heads, self.width = q.shape
        self.starts = starts
        if starts is not None:
            _checks.check_numbers("cu_seqlens_q", starts, (None,), q)
            self.batch, self.rows = len(starts) - 1, rows
            self.key_starts, slots = slots, None
        self.key_heads, self.value = k_cache.shape[2], v_cache.shape[3]
        self.table = table
        #: What elements of a cache of 8 bits stand for, by name, and what calls like this one have beside what they are given.
        self.constants, self.descales = {}, {}
        self._read_descales(*descales)
        self._read_places(slots, table, k_cache, of_table)
        #: How many keys each sequence has; None where all have as many as there is room for.
        self.lengths = self._read_lengths(lengths, of_lengths)
        if slopes is not None and (slopes.dtype != torch.float32 or tuple(slopes.shape) != (self.heads,)):
            _checks.refuse(
                "alibi_slopes",
                f"of type {slopes.dtype} and shape {tuple(slopes.shape)}",
                "kernels take a float32 slope for each head",
            )
        if sinks is not None:
            _op.raise_problem(_op.find_sinks_problem(sinks, q.transpose(1, 2)))
            self.sinks = sinks

    def _read_places(self, slots, table, k_cache, of_table):
        """Where the keys of sequences are: in pages of a table, or in a row of the cache each."""
        if table is not None:
            if slots is not None:
                raise ValueError(
                    f"arguments 'cache_batch_idx' and '{of_table}' are both given; a table says which pages are a sequence's"
                )
            _checks.check_numbers(of_table, table, (self.batch, None), self.q)
            self.most = table.shape[1] * k_cache.shape[1]
            self.slots = None
        else:
            if slots is self.starts is None and k_cache.shape[0] != self.batch:
                raise ValueError(
                    f"argument 'k_cache' has {k_cache.shape[0]} batches and 'q' {self.batch}; pass cache_batch_idx, which says whose "
                    "is which"
                )
            self.most = k_cache.shape[1]
            self.slots = slots
            if slots is not None:
                _checks.check_numbers("cache_batch_idx", slots, (self.batch,), self.q)

    def _read_lengths(self, lengths, of_lengths):
        if isinstance(lengths, torch.Tensor):
            _checks.check_numbers(of_lengths, lengths, (self.batch,), self.q)
        elif self.key_starts is None:
            number = self.most if lengths is None else lengths
            if type(number) is not int or not 0 <= number <= self.most:
                raise ValueError(f"argument '{of_lengths}' is {number!r}; it is a tensor, or a number of keys up to {self.most}")
            lengths = None if number == self.most else _kept.full((self.batch,), number, torch.int32, self.q.device)
        return lengths

    @staticmethod
    def _check(q, k_cache, v_cache, tensors):
        _, of_keys, of_values = tensors
        for name, tensor in tensors.items():
            is_short = name != "q" and k_cache.dtype == torch.float8_e4m3fn
            if tensor.dtype not in TYPES and not is_short:
                raise TypeError(f"argument '{name}' has type {tensor.dtype}; attention takes float16 and bfloat16")
            if tensor.dtype != (k_cache.dtype if is_short else q.dtype):
                raise TypeError(
                    f"argument '{name}' has type {tensor.dtype}; with a 'q' of {q.dtype} both '{of_keys}' and '{of_values}' have its "
                    "type, or float8_e4m3fn"
                )
            _op.raise_problem(_op.find_other_device(name, tensor, q) or _variants.find_head_problem(name, tensor.shape[3]))
            if not has_rows(tensor):
                raise ValueError(
                    f"argument '{name}' has strides {tuple(tensor.stride())}; its rows must be dense and begin at multiples of 16 bytes: "
                    f"pass {name}.contiguous()"
                )
        _op.raise_problem(_op.find_device_problem("q", q.device))
        if k_cache.shape[:3] != v_cache.shape[:3]:
            raise ValueError(
                f"arguments '{of_keys}' and '{of_values}' have shapes {tuple(k_cache.shape)} and {tuple(v_cache.shape)}; all but their "
                "last dimensions are equal"
            )
        if q.shape[3] != k_cache.shape[3]:
            raise ValueError(f"argument '{of_keys}' has head dimension {k_cache.shape[3]} and 'q' {q.shape[3]}; they must be equal")
        if not k_cache.shape[2] or q.shape[2] % k_cache.shape[2]:
            raise ValueError(
                f"argument 'q' has {q.shape[2]} heads and '{of_keys}' {k_cache.shape[2]}; the first must be a multiple of the second"
            )

    def _read_descales(self, *given):
        """Notes numbers of [B, HK], where the cache has 8 bits."""
        names, is_short = ("k_descale", "v_descale"), self.k.dtype == torch.float8_e4m3fn
        if not is_short:
            for name, tensor in zip(names, given):
                if tensor is not None:
                    _checks.refuse(name, "given", "caches of 16 bits stand for themselves: leave it out")
            return
        for name, tensor in zip(names, given):
            if tensor is None:
                self.constants = {"ones": _kept.full((1, 1), 1.0, torch.float32, self.q.device)}
                continue
            _op.raise_problem(_op.find_other_device(name, tensor, self.q))
            if tensor.dtype != torch.float32 or tuple(tensor.shape) != (self.batch, self.key_heads):
                raise ValueError(
                    f"argument '{name}' has type {tensor.dtype} and shape {tuple(tensor.shape)}; it is float32, "
                    f"[{self.batch}, {self.key_heads}]"
                )
            self.descales[name] = tensor

    def read_masks(self, causal, window, chunk=0, prefixes=None):
        """The window, where it says all of the mask; otherwise notes the variant that does."""
        flags, causal = (causal, False) if isinstance(causal, torch.Tensor) else (None, causal)
        left, right = _variants.read_window(causal, window, "window_size")
        if type(chunk) is not int or not 0 <= chunk < 2**31:
            raise ValueError(f"argument 'attention_chunk' is {chunk!r}; it is a number of keys below 2^31, or 0")
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
        if self.k.dtype == torch.float8_e4m3fn:
            _checks.refuse("k", "given", "a cache of 8 bits takes new keys by kv_append, which rounds them: leave it out")
        angles = {"rotary_cos": cos, "rotary_sin": sin}
        _op.check_types({"k": k, "v": v}, angles)
        _op.check_derivatives("a cache", {"k": k, "v": v, **angles})
        if k.dim() != 4:
            raise ValueError(f"argument 'k' has {k.dim()} dimensions; it has 4")
        for name, new, cache in (("k", k, self.k), ("v", v, self.v)):
            if new.dim() != 4 or new.shape[0] != self.batch or new.shape[2:] != cache.shape[2:] or new.shape[1] != k.shape[1]:
                raise ValueError(
                    f"argument '{name}' has shape {tuple(new.shape)}; with these 'q' and caches it is "
                    f"[{self.batch}, {k.shape[1]}, {cache.shape[2]}, {cache.shape[3]}]"
                )
        count = k.shape[1]
        if cos is not None or sin is not None:
            _append.check_rotary(k.flatten(0, 1), angles)
        if cos is not None and (count != self.rows or not (is_masked or count == 1)):
            _checks.refuse(
                "rotary_cos",
                "given",
                "queries are rotated as new keys are, of which there are as many, and see them by a causal mask",
            )
        if self.lengths is None:
            self.lengths = _kept.full((self.batch,), self.most, torch.int32, self.q.device)
        _append.check(k.flatten(0, 1), v.flatten(0, 1), self.k, self.v)
        if not count:
            return
        self.new, self.is_interleaved = {"new_k": k, "new_v": v}, bool(interleaved)
        if cos is not None:
            self.new.update(cos=cos, sin=sin)

    def _see_nothing(self, out, lse):
        """The results of rows that see no key: `lse` is [..., H, rows]."""
        return out.zero_(), lse.fill_(float("-inf")) if self.sinks is None else lse.copy_(self.sinks[:, None])

    def run(self, scale, window, softcap=0.0, count=0, share=None, out=None, turned=None):
        """Output and LSE. `turned` are q, k and v [B, H, S, D], whose layout the output has then: a call that goes on without
        kernels that are not compiled yet."""
        if share is not None and (type(share) is not int or not STEP <= share < 2**31 or share % STEP):
            raise ValueError(f"argument 'keys_per_part' is {share!r}; it is a multiple of {STEP} below 2^31")
        if type(count) is not int or count < 0:
            raise ValueError(f"argument 'num_splits' is {count!r}; it is a number of parts, or 0 to let the call find it")
        if 0 in (self.batch, self.heads, self.most, len(self.k)) or (not self.rows and not self.new):
            out = self.q.new_empty((*self.q.shape[:3], self.value)) if out is None else out
            return self._see_nothing(out, self.q.new_empty((self.batch, self.heads, self.rows), dtype=torch.float32))
        options = {
            "count": count, "share": share, "most": None, "invariant": share is not None,
            "layout": "BSHD" if turned is None else "BHSD", "aside": turned is not None,
        }  # fmt: skip
        return self._compute(turned, scale, window, softcap, out, **options)

    def run_tokens(self, scale, window, softcap, out=None):
        """Output [tokens, H, DV] and LSE [H, tokens]."""
        q = self.q[0]
        if 0 in (self.batch, self.rows, len(q), self.most, len(self.k)):
            sums = q.new_empty((self.heads, len(q)), dtype=torch.float32)
            return self._see_nothing(q.new_empty((len(q), self.heads, self.value)) if out is None else out, sums)
        if self.is_invariant and self.batch > _cache_recipes.MOST_SEQUENCES:
            _checks.refuse(
                "invariant", True, f"a kernel that serves all batches finds one of {_cache_recipes.MOST_SEQUENCES} sequences: "
                f"'cu_seqlens_q' has {self.batch}"
            )  # fmt: skip
        options = {
            "count": 0, "share": None, "most": _cache_recipes.round_most(self.rows), "invariant": self.is_invariant, "layout": "BSHD",
            "aside": False,
        }  # fmt: skip
        own = self.own or (q, *((self.k, self.v) if self.table is not None else (self.k[0], self.v[0])))
        return self._compute(own, scale, window, softcap, out, **options)

    def _compute(self, own, scale, window, softcap, out, **options):
        """What a recipe gives: output and LSE."""
        if softcap and self.slopes is not None:
            _checks.refuse("softcap", softcap, "no kernel over a cache has slopes too: leave one of them out")
        name, given, parameters = self.variant or (None, {}, {})
        views = {
            "lengths": self.lengths, "pages": self.table, "slots": self.slots, "slopes": self.slopes, "sinks": self.sinks,
            **self.descales, "query_starts": self.starts, "key_starts": self.key_starts,
            **{each: x for each, x in given.items() if isinstance(x, torch.Tensor)}, **self.new, "out": out,
        }  # fmt: skip
        views = {each: x for each, x in views.items() if x is not None}
        numbers = {each: x for each, x in given.items() if each not in views}
        text = _cache_recipes.write(
            (*views, *self.constants), device=str(self.q.device), left=window[0], right=window[1], softcap=bool(softcap),
            variant=name and (name, numbers, parameters), new=self.is_interleaved, **options,
        )  # fmt: skip
        tensors = *((self.q, self.k, self.v) if own is None else own), *views.values()
        constants = tuple(self.constants.values())
        results = _prepared.compute(self.key, self.given, text, tensors, (scale, softcap), "sf", constants)
        return results if out is None else (out, *results)
