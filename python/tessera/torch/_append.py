"""New keys and values into caches, and the rotary embedding of keys and queries on the way."""

from __future__ import annotations

import torch

from .._core import _layouts
from . import _append_recipes, _op, _prepared, _serving_ops
from ._types import TYPES

_SLOTS = torch.int32, torch.int64
_ANGLES = torch.float32, *TYPES


def has_rows(tensor):
    """Whether rows lie as kernels move them."""
    return _layouts.has_rows(tensor.shape, tensor.stride(), tensor.element_size(), tensor.data_ptr() % 16 == 0)


def kv_append(
    k: torch.Tensor,
    v: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slots: torch.Tensor,
    *,
    q: torch.Tensor | None = None,
    cos: torch.Tensor | None = None,
    sin: torch.Tensor | None = None,
    positions: torch.Tensor | None = None,
    interleaved: bool = False,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
) -> torch.Tensor | None:
    """Stores new keys and values in a cache, in one launch. Returns rotated queries where `q` is given.

    k, v:             [tokens, heads, head dimension], float16 or bfloat16.
    k_cache, v_cache: [pages, rows, heads, head dimension], of the type of k, or float8_e4m3fn.
    slots:            int32 or int64, [tokens]: page times rows plus the row in it. A token whose slot the cache does not have, as -1,
                      is padding. No two tokens have one slot.
    cos, sin:         [positions, n]: pairs of the first 2 n elements of keys, and of `q`, are rotated by the row of `positions`, which
                      has the type of `slots`. Pairs are elements i and i + n, or neighbours where `interleaved`.
    q:                [tokens, query heads, head dimension], which are rotated into a new tensor.
    k_scale, v_scale: float32 on the device, of one element: what keys and values are divided by before they are rounded to 8 bits.
    """
    given = k, v, k_cache, v_cache, slots, q, cos, sin, positions, k_scale, v_scale
    key, results = _prepared.recall(given, "kv_append", interleaved)
    if results is not None:
        return None if q is None else results
    if torch.compiler.is_compiling():
        return _serving_ops.append(k, v, k_cache, v_cache, slots, q, cos, sin, positions, interleaved, k_scale, v_scale)
    tensors = {"k": k, "v": v, "k_cache": k_cache, "v_cache": v_cache, "slots": slots}
    optional = {"q": q, "cos": cos, "sin": sin, "positions": positions, "k_scale": k_scale, "v_scale": v_scale}
    _op.check_types(tensors, optional)
    _op.check_derivatives("a cache", {**tensors, **optional})
    check(k, v, k_cache, v_cache)
    _check_numbers("slots", slots, k)
    check_rotary(k, {"cos": cos, "sin": sin, "positions": positions})
    _check_rotated(k, q, positions, slots)
    _check_scales(k, k_cache, k_scale, v_scale)
    if not k.shape[0]:
        return None if q is None else torch.empty_like(q, memory_format=torch.contiguous_format)
    names = "slots", "q", "cos", "sin", "positions", "k_scale", "v_scale"
    views = {name: x for name, x in zip(names, given[4:]) if x is not None}
    text = _append_recipes.write(views, bool(interleaved))
    results = _prepared.compute(key, given, text, (k, v, k_cache, v_cache, *views.values()))
    return None if q is None else results[0]


def check(k, v, k_cache, v_cache):
    for name, tensor, rank in (("k", k, 3), ("v", v, 3), ("k_cache", k_cache, 4), ("v_cache", v_cache, 4)):
        if tensor.dim() != rank:
            raise ValueError(f"argument '{name}' has {tensor.dim()} dimensions; it has {rank}")
        _op.raise_problem(_op.find_other_device(name, tensor, k, "k"))
        if not 0 < tensor.shape[-1] <= 256 or tensor.shape[-1] % 8:
            raise ValueError(f"argument '{name}' has head dimension {tensor.shape[-1]}; it is a multiple of 8 up to 256")
        if not has_rows(tensor):
            raise ValueError(
                f"argument '{name}' has strides {tuple(tensor.stride())}; its rows must be dense and begin at multiples of 16 bytes"
            )
    _op.raise_problem(_op.find_device_problem("k", k.device))
    if k.dtype not in TYPES or v.dtype != k.dtype:
        raise TypeError(f"arguments 'k' and 'v' have types {k.dtype} and {v.dtype}; both are float16, or both bfloat16")
    for name, cache, new in (("k_cache", k_cache, k), ("v_cache", v_cache, v)):
        if cache.dtype not in (k.dtype, torch.float8_e4m3fn) or cache.dtype != k_cache.dtype:
            raise TypeError(
                f"argument '{name}' has type {cache.dtype}; caches have that of 'k', {k.dtype}, or both float8_e4m3fn"
            )
        if cache.shape[2:] != new.shape[1:]:
            raise ValueError(
                f"argument '{name}' has rows {tuple(cache.shape[2:])} and new ones {tuple(new.shape[1:])}; they must be equal"
            )
    if v.shape[:2] != k.shape[:2] or v_cache.shape[:2] != k_cache.shape[:2]:
        raise ValueError(
            "arguments 'v' and 'v_cache' have other tokens, heads, pages or rows than 'k' and 'k_cache'; they must be equal"
        )


def _check_numbers(name, tensor, k):
    if tensor.dtype not in _SLOTS:
        raise TypeError(f"argument '{name}' has type {tensor.dtype}; it is int32 or int64")
    if tuple(tensor.shape) != (k.shape[0],) or tensor.stride(0) != 1:
        raise ValueError(
            f"argument '{name}' has shape {tuple(tensor.shape)}; it has a number for each of {k.shape[0]} tokens, dense"
        )
    _op.raise_problem(_op.find_other_device(name, tensor, k, "k"))


def check_rotary(k, given):
    """Refuses what rotates no keys: cosines, sines and, where they do not follow from lengths, positions, by their names."""
    missing = [name for name, tensor in given.items() if tensor is None]
    if len(missing) == len(given):
        return
    if missing:
        raise ValueError(f"argument '{missing[0]}' is missing; {', '.join(given)} are given together")
    (of_cos, cos), (of_sin, sin) = list(given.items())[:2]
    for name, tensor in ((of_cos, cos), (of_sin, sin)):
        _op.raise_problem(_op.find_other_device(name, tensor, k, "k"))
        if tensor.dtype not in _ANGLES or tensor.dtype != cos.dtype:
            raise TypeError(
                f"argument '{name}' has type {tensor.dtype}; {of_cos} and {of_sin} are float32, float16 or bfloat16, and alike"
            )
        if tensor.dim() != 2 or tensor.shape != cos.shape or not 0 < 2 * tensor.shape[1] <= k.shape[2] or tensor.stride(1) != 1:
            raise ValueError(
                f"argument '{name}' has shape {tuple(tensor.shape)}; {of_cos} and {of_sin} are [positions, n], dense, with 2 n up to "
                f"{k.shape[2]}"
            )


def _check_rotated(k, q, positions, slots):
    """Refuses positions of other numbers than slots, and queries that are not rotated with keys."""
    if positions is not None:
        _check_numbers("positions", positions, k)
        if positions.dtype != slots.dtype:
            raise TypeError(f"argument 'positions' has type {positions.dtype} and 'slots' {slots.dtype}; they must be equal")
    if q is None:
        return
    if positions is None:
        raise ValueError("argument 'q' is given without cos, sin and positions, by which it is rotated")
    if q.dtype != k.dtype or q.device != k.device:
        raise TypeError(f"argument 'q' has type {q.dtype} on {q.device} and 'k' {k.dtype} on {k.device}; they must be equal")
    if q.dim() != 3 or q.shape[0] != k.shape[0] or q.shape[2] != k.shape[2] or q.shape[1] % k.shape[1] or not has_rows(q):
        raise ValueError(
            f"argument 'q' has shape {tuple(q.shape)} and strides {tuple(q.stride())}; it is [tokens, a multiple of the heads of 'k', "
            "head dimension], with dense rows at multiples of 16 bytes"
        )


def _check_scales(k, k_cache, k_scale, v_scale):
    """Refuses what are no scales of a cache of 8 bits."""
    scales = {"k_scale": k_scale, "v_scale": v_scale}
    if k_cache.dtype != torch.float8_e4m3fn:
        for name, scale in scales.items():
            if scale is not None:
                raise ValueError(
                    f"argument '{name}' is given with a cache of {k_cache.dtype}, of which nothing is rounded; leave it out"
                )
        return
    for name, scale in scales.items():
        if scale is None:
            raise ValueError(f"argument '{name}' is missing; a cache of 8 bits has numbers of which its elements are multiples")
        if scale.dtype != torch.float32 or scale.numel() != 1 or scale.device != k.device:
            raise TypeError(
                f"argument '{name}' is of {scale.dtype}, shape {tuple(scale.shape)}, on {scale.device}; it is a float32 of one element on "
                f"{k.device}"
            )
