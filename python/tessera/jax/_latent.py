"""Latent attention (DeepSeek-V2) over a cache in pages and over rows of lists, for JAX: arguments and results of tessera.torch."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from .._attention import _checks as _numbers
from .._attention import _latent, _shares, _variants
from .._attention._latent import ROWS, STEP, VALUE
from .._core import _library
from .._core._errors import raise_problem
from . import _call, _checks, _kernels
from ._kernels import new

_Array = jax.Array | np.ndarray


def get_mla_metadata(
    cache_seqlens: _Array, num_q_tokens_per_head_k: int, num_heads_k: int = 1, num_heads_q: int | None = None
) -> tuple[jax.Array, jax.Array]:
    """How `mla_with_kvcache` divides the keys of sequences, made once for all layers of a step: as that of tessera.torch."""
    _latent.check_counts(num_q_tokens_per_head_k, num_heads_k)
    _check_numbers("cache_seqlens", cache_seqlens, (None,))
    return _balance(cache_seqlens, num_q_tokens_per_head_k)


def _balance(lengths, rows):
    count, least = _latent.count_shares(rows, _call.count_multiprocessors()), _find_numbers()["LEAST_STEPS"]
    if not len(lengths):
        return jnp.zeros(_shares.shape_of(count), jnp.int32), jnp.zeros(1, jnp.int32)
    shares = [("r", new(_shares.shape_of(count)[1], dtype=jnp.int32))] * 3
    starts, *shares = _kernels.launch(
        "balance", {}, ("v", lengths), ("r", new(len(lengths) + 1, dtype=jnp.int32)), *shares, ("i", STEP), ("i", least), ("i", count)
    )
    return jnp.stack(shares), starts


def _find_numbers(*extents):
    """What calls of few queries go by: the parameters of serving.tile."""
    return _kernels.choose(_library.find_source("serving"), *extents)


def mla_with_kvcache(
    q: _Array,
    k_cache: _Array,
    block_table: _Array | None,
    cache_seqlens: _Array | None,
    head_dim_v: int = VALUE,
    tile_scheduler_metadata: _Array | None = None,
    num_splits: _Array | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    is_fp8_kvcache: bool | None = None,
    indices: _Array | None = None,
    attn_sink: _Array | None = None,
    *,
    topk_length: _Array | None = None,
    keys_per_part: int | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Latent attention of the last queries of sequences, whose heads share a row for each token: arguments and results of
    tessera.torch's. Numbers are constants of the program, and there are no gradients."""
    for name, value in (("softmax_scale", softmax_scale), ("causal", causal), ("keys_per_part", keys_per_part)):
        _checks.check_number(name, value)
    _latent.check_options(k_cache, head_dim_v, is_fp8_kvcache, causal, indices, topk_length)
    _check_rows(q, k_cache)
    if indices is not None:
        return _attend_listed(q, k_cache, indices, topk_length, softmax_scale, attn_sink, keys_per_part)
    _latent.check_pages(q, k_cache)
    _check_numbers("block_table", block_table, (len(q), None))
    _check_numbers("cache_seqlens", cache_seqlens, (len(q),))
    _check_sinks(attn_sink, q)
    metadata = _latent.list_metadata(tile_scheduler_metadata, num_splits, len(q))
    for given in metadata:
        _check_numbers(*given)
    batch, rows, heads, _ = q.shape
    most = block_table.shape[1] * k_cache.shape[1]
    if keys_per_part is not None:
        _latent.count_parts(most, keys_per_part)
    scale = _read_scale(softmax_scale, q)
    if 0 in (batch, rows, heads, most, len(k_cache)):
        return jnp.zeros((batch, rows, heads, VALUE), q.dtype), jnp.full((batch, heads, rows), -jnp.inf, jnp.float32)
    arrays = [q, k_cache, block_table, cache_seqlens, attn_sink, *(value for _, value, _ in metadata)]
    return _without_gradient(functools.partial(_attend_pages, most, scale, causal, keys_per_part), *arrays)


def _attend_pages(most, scale, causal, keys_per_part, q, cache, table, lengths, sinks, *metadata):
    described = _latent.describe(q, cache, **_latent.describe_pages(q.shape[1], cache.shape[1], causal))
    call = _Call("mla_decode", described, q, cache, (table, lengths), scale, sinks)
    extents = ("TILES", len(q) * call.groups), ("STEPS", most // STEP)
    if keys_per_part is None and _find_numbers(*extents)["BALANCED"]:
        return call.attend_shares(*(metadata or _balance(lengths, call.groups * ROWS)))
    return call.attend_parts(most, keys_per_part, _latent.count_steps(most) * STEP)


def _attend_listed(q, cache, indices, lengths, scale, sinks, keys_per_part):
    """mla_with_kvcache over the rows of lists."""
    batch, count, heads, width = q.shape
    _check_numbers("indices", indices, (batch, count, None))
    if lengths is not None:
        _check_numbers("topk_length", lengths, (batch,))
        lengths = jnp.repeat(lengths, count)
    _check_sinks(sinks, q)
    rows = cache.reshape(-1, 1, cache.shape[3])
    out, _, lse = _attend_rows(
        q.reshape(-1, heads, width), rows, indices.reshape(batch * count, -1), lengths, scale, sinks, keys_per_part
    )  # fmt: skip
    return out.reshape(batch, count, heads, VALUE), lse.reshape(batch, count, heads).swapaxes(1, 2)


def mla_sparse(
    q: _Array,
    kv: _Array,
    indices: _Array,
    sm_scale: float,
    d_v: int = VALUE,
    attn_sink: _Array | None = None,
    topk_length: _Array | None = None,
    *,
    keys_per_part: int | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Latent attention of tokens, each over rows that a list names: arguments and results of tessera.torch's. Numbers are constants of the
    program, and there are no gradients."""
    for name, value in (("sm_scale", sm_scale), ("keys_per_part", keys_per_part)):
        _checks.check_number(name, value)
    _latent.check_values("d_v", d_v)
    _checks.check_arrays({"q": q, "kv": kv, "indices": indices})
    _latent.check_tokens(q, kv)
    _check_rows(q[:, None], kv[:, None], "kv")
    _check_numbers("indices", indices, (len(q), 1, None))
    if topk_length is not None:
        _check_numbers("topk_length", topk_length, (len(q),))
    _check_sinks(attn_sink, q)
    return _attend_rows(q, kv, indices[:, 0], topk_length, _read_scale(sm_scale, q, "sm_scale"), attn_sink, keys_per_part)


def _attend_rows(q, kv, lists, lengths, scale, sinks, keys_per_part):
    """Output [N, H, 512], largest scores and LSE [N, H] of queries [N, H, 576] over rows [ROWS, 1, 576], or of bytes, that lists
    [N, topk] name."""
    count, heads, _ = q.shape
    most = lists.shape[1]
    if keys_per_part is not None:
        _latent.count_parts(most, keys_per_part)
    scale = _read_scale(scale, q)
    # Lists begin at 16 bytes.
    lists = jnp.pad(lists, ((0, 0), (0, -most % 4)), constant_values=-1)
    if 0 in (count, heads, most, len(kv)):
        return jnp.zeros((count, heads, VALUE), q.dtype), *[jnp.full((count, heads), -jnp.inf, jnp.float32)] * 2
    attend = functools.partial(_attend_lists, most, scale, keys_per_part)
    out, lse, largest = _without_gradient(attend, q[:, None], kv[:, None], lists, lengths, sinks)
    return out[:, 0], largest[:, :, 0], lse[:, :, 0]


def _attend_lists(most, scale, keys_per_part, q, cache, lists, lengths, sinks):
    given = (lists,) if lengths is None else (lists, lengths)
    described = _latent.describe(q, cache, **_latent.describe_lists(lengths is not None))
    call = _Call("mla_sparse", described, q, cache, given, scale, sinks)
    tiles, least = len(q) * call.groups, _find_numbers()["LEAST_OF_PART"]
    found = _latent.find_keys_per_part(most, tiles, _call.count_multiprocessors(), least)
    return call.attend_parts(most, keys_per_part, found, has_maxima=True)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _without_gradient(function, *arrays):
    return function(*arrays)


@_without_gradient.defjvp
def _refuse_gradient(*_):
    raise NotImplementedError("attention over a cache has no gradient: take jax.lax.stop_gradient of 'q' and of the cache")


class _Call:
    """Latent attention of queries [B, SQ, H, 576] over pages [PAGES, ROWS, 1, 576], or of bytes, by the kernels of a source. `given` are
    the table and, where there are, the lengths of sequences."""

    def __init__(self, source, described, q, cache, given, scale, sinks):
        self.source, (self.groups, self.parameters) = source, described
        batch, rows, heads, _ = q.shape
        self.out, self.lse = new(batch, rows, heads, VALUE, dtype=q.dtype), new(batch, heads, rows)
        self.arguments = [("t", q), ("t", cache), *(("v", numbers) for numbers in given)]
        self.page, self.is_bytes = cache.shape[1], _latent.has_bytes(cache)
        self.details = {"parts": {"1": _latent.PARTS}} if self.is_bytes else {}
        self.scale, self.sinks = scale, sinks

    def launch(self, out, lse, *more, source=None, of_parts=False, **parameters):
        """Results of whole sequences, out [B, SQ, H, 512] and lse [B, H, SQ], and what `more` has of them; or of parts, without sinks."""
        sinks = () if self.sinks is None or of_parts else (("v", self.sinks),)
        parameters = {**self.parameters, **parameters, **({"SINK": True} if sinks else {})}
        arguments = *self.arguments, ("o", out), ("r", lse), ("f", self.scale), *sinks, *more
        return _kernels.launch(source or self.source, parameters, *arguments, **self.details)

    def attend_shares(self, shares, starts):
        """(output, LSE) by equal shares of all keys."""
        batch, rows, heads, _ = self.out.shape
        slots = _shares.count_slots(batch, shares.shape[1])
        numbers = [("v", starts), *(("v", row) for row in shares)]
        parts = ("o", new(slots, rows, heads, VALUE, dtype=self.out.dtype)), ("r", new(slots, heads, rows))
        source, parameters = _latent.describe_shares(heads, rows, self.page, self.is_bytes, _find_numbers()["FEW_ROWS"])
        out, lse, *of_parts = self.launch(self.out, self.lse, *numbers, *parts, source=source, **parameters)
        return self._merge(*of_parts, -(-shares.shape[1] // batch), (out, lse), (starts, shares[2]))

    def attend_parts(self, most, asked, found, has_maxima=False):
        """(output, LSE) of up to `most` keys of each sequence in parts, which are joined in their order, and the largest scores where the
        kernel has them. A part has as many keys as is `asked`, so that bits depend on no batch, or without that as is `found`."""
        keys_per_part = found if asked is None else asked
        count = _latent.count_parts(most, keys_per_part)
        share = "i", keys_per_part
        if count == 1:
            return self.launch(self.out, self.lse, share, *([("r", self.lse)] if has_maxima else []))
        batch, rows, heads, columns = self.out.shape
        parts, logs = new(count * batch, rows, heads, columns, dtype=self.out.dtype), new(count * batch, heads, rows)
        maxima = [("r", logs)] if has_maxima else []
        parts, logs, *maxima = self.launch(parts, logs, share, *maxima, of_parts=True)
        return self._merge(parts, logs, count if asked is None else None, scores=maxima)

    def _merge(self, parts, logs, count, whole=(), shares=(), scores=()):
        """(output, LSE) of parts: part p of sequence b has number p * B + b, or that of `shares`, (starts, sizes), beside what is `whole`
        already. And the largest of `scores`. Of `count` parts for most sequences, None where bits depend on no batch."""
        batch, rows, heads, columns = self.out.shape
        name, parameters, own = _shares.choose_merge(_choose, self.out.shape, count, bool(shares))
        element = _library.QUERY_TYPES[_numbers.name_type(self.out.dtype)]
        parameters.update({"T": element, "OUT": element})
        parameters.update({flag: True for flag, has in (("SINK", self.sinks is not None), ("MAXIMA", scores)) if has})
        of_heads, of_rows, of_out, details = (heads,), (rows * heads,), (rows, heads), {"orders": {"0": [1, 0, 2]}}
        if own is not None:
            of_heads, of_rows, of_out, details = (heads // own, own), *[(rows * heads // own, own)] * 2, {}
        of_numbers = *of_heads, rows
        lse = new(batch, *of_numbers)
        results = ("r", new(batch, *of_out, columns, dtype=self.out.dtype)), ("r", lse)
        if whole:
            results = [("a", x.reshape(like.shape)) for x, (_, like) in zip(whole, results)]
        sinks = () if self.sinks is None else (("v", self.sinks.reshape(of_heads)),)
        arguments = ("v", parts.reshape(-1, *of_rows, columns)), ("v", logs.reshape(-1, *of_numbers)), *results
        of_scores = [pair for x in scores for pair in (("v", x.reshape(-1, *of_numbers)), ("r", lse))]
        found = _kernels.launch(name, parameters, *arguments, *(("v", x) for x in shares), *sinks, *of_scores, **details)
        return tuple(x.reshape(like.shape) for x, like in zip(found, (self.out, self.lse, self.lse)))


def _choose(source, extents, **parameters):
    return _kernels.choose(source, *extents, **parameters)


def _check_rows(q, cache, name="k_cache"):
    _checks.check_arrays({"q": q, name: cache})
    _latent.check_rows(q, cache, name)


def _check_numbers(name, value, shape):
    _checks.check_arrays({name: value})
    _numbers.check_numbers(name, value, shape)


def _check_sinks(sinks, q):
    if sinks is not None:
        _checks.check_arrays({"attn_sink": sinks})
        _latent.check_sinks(sinks, q.shape[-2])


def _read_scale(scale, q, name="softmax_scale"):
    if scale is None:
        return q.shape[-1] ** -0.5
    raise_problem(_variants.find_scale_problem(scale, name))
    return float(scale)
