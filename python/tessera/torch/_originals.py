"""Attention with the signatures and the meaning of functions that programs call already."""

from __future__ import annotations

from typing import Any

import torch

from .._attention import _variants
from . import _bias, _op
from ._attention import TORCH_NAMES, attend_as


def _refuse(name, value, reason):
    raise NotImplementedError(f"argument '{name}' is {value}; {reason}")


_FLASH_NAMES = "q", "k", "v", "alibi_slopes", "softmax_scale"


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """torch.nn.functional.scaled_dot_product_attention. Its causal mask is aligned at the first row and key. Rows of an
    `attn_mask` for each query and key begin at multiples of 16 bytes."""
    _op.check_types({"query": query, "key": key, "value": value}, {"attn_mask": attn_mask})
    if dropout_p:
        _refuse("dropout_p", dropout_p, "no kernel drops weights: pass 0")
    if attn_mask is not None and is_causal:
        raise ValueError("arguments 'attn_mask' and 'is_causal' are both given; let the mask say it")
    if query.dim() == 3:
        query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
        if attn_mask is not None and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        return scaled_dot_product_attention(query, key, value, attn_mask, 0.0, is_causal, scale, enable_gqa).squeeze(0)
    if not enable_gqa and query.dim() == key.dim() == 4 and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"argument 'key' has {key.shape[1]} heads and 'query' {query.shape[1]}; pass enable_gqa=True to share them"
        )
    return _attend(query, key, value, attn_mask, is_causal, scale)


def _attend(query, key, value, attn_mask, is_causal, scale):
    _op.check_forms({"query": query, "key": key, "value": value})
    if attn_mask is not None:
        _op.raise_problem(_bias.find_problem("attn_mask", attn_mask, query, key))
        make, kind = (_bias.make_mask, "mask") if attn_mask.dtype is torch.bool else (_bias.make_score, "score")
        mod, arguments = make(attn_mask)
        return attend_as(TORCH_NAMES, query, key, value, scale=scale, **{f"{kind}_mod": mod, f"{kind}_args": arguments})
    if not is_causal:
        return attend_as(TORCH_NAMES, query, key, value, scale=scale)
    # Aligned at the first row: keys past the last row are seen by none, rows past the last key see all.
    rows, keys = query.shape[2], key.shape[2]
    if rows == keys:
        return attend_as(TORCH_NAMES, query, key, value, causal=True, scale=scale)
    if rows < keys:
        return attend_as(TORCH_NAMES, query, key[:, :, :rows], value[:, :, :rows], causal=True, scale=scale)
    return attend_as(TORCH_NAMES, query, key, value, window=(None, rows - keys), scale=scale)


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> torch.Tensor | Any:
    """flash_attn.flash_attn_func: tensors are [B, S, H, D], masks are aligned at the last row and key. With
    `return_attn_probs` returns (output, LSE, None). Outputs are the same in each run in any case, gradients where
    `deterministic` asks for it."""
    _op.check_types({"q": q, "k": k, "v": v}, {"alibi_slopes": alibi_slopes})
    if dropout_p:
        _refuse("dropout_p", dropout_p, "no kernel drops weights: pass 0")
    if alibi_slopes is not None and alibi_slopes.dim() != 1:
        _refuse("alibi_slopes", f"of shape {tuple(alibi_slopes.shape)}", "kernels take one slope for each head")
    _op.check_forms({"q": q, "k": k, "v": v})
    _variants.read_window(causal, window_size, "window_size")
    results = attend_as(
        _FLASH_NAMES,
        q,
        k,
        v,
        causal=causal,
        window=window_size,
        softcap=0.0 if isinstance(softcap, (int, float)) and softcap < 0 else softcap,
        alibi=alibi_slopes,
        scale=softmax_scale,
        layout="BSHD",
        return_lse=return_attn_probs,
        deterministic=deterministic,
    )
    return (*results, None) if return_attn_probs else results


def _unpack(name, packed, count):
    _op.check_types({name: packed})
    if packed.dim() != 5 or packed.shape[2] != count:
        raise ValueError(f"argument '{name}' has shape {tuple(packed.shape)}; it is [B, S, {count}, heads, head dimension]")
    return packed.unbind(2)


def flash_attn_qkvpacked_func(qkv: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor | Any:
    """flash_attn.flash_attn_qkvpacked_func: `qkv` is [B, S, 3, H, D], the rest as in `flash_attn_func`."""
    return flash_attn_func(*_unpack("qkv", qkv, 3), *arguments, **named)


def flash_attn_kvpacked_func(
    q: torch.Tensor, kv: torch.Tensor, *arguments: Any, **named: Any
) -> torch.Tensor | Any:
    """flash_attn.flash_attn_kvpacked_func: `kv` is [B, S, 2, HK, D], the rest as in `flash_attn_func`."""
    return flash_attn_func(q, *_unpack("kv", kv, 2), *arguments, **named)
