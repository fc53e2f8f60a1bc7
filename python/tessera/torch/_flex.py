"""torch.nn.attention.flex_attention by kernels that are compiled from its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from . import _block_mask, _listed, _op
from ._attention import TORCH_NAMES, attend_as

if TYPE_CHECKING:  # Where nobody has a mask of torch it takes a third of a second for nothing.
    import torch.nn.attention.flex_attention


def find_problem(query, key, block_mask, enable_gqa, return_lse, return_aux):
    """What keeps a call from the kernels whatever its functions are, as an exception; None when nothing does."""
    if query.dim() == key.dim() == 4 and query.shape[1] != key.shape[1] and not enable_gqa:
        return ValueError(
            f"argument 'key' has {key.shape[1]} heads and 'query' {query.shape[1]}; pass enable_gqa=True to share them"
        )
    if return_aux is not None and not hasattr(return_aux, "max_scores"):
        return TypeError(
            f"argument 'return_aux' is a {type(return_aux).__name__}; it is an AuxRequest of torch.nn.attention.flex_attention"
        )
    if return_aux is not None and return_lse:
        return ValueError("arguments 'return_lse' and 'return_aux' are both given; the second has the first")
    if return_aux is not None and return_aux.max_scores:
        return NotImplementedError("argument 'return_aux' asks for max_scores, which no kernel stores: ask for lse")
    if block_mask is not None and not hasattr(block_mask, "mask_mod"):
        return TypeError(f"argument 'block_mask' is a {type(block_mask).__name__}; it is a BlockMask")
    return _listed.find_problem(block_mask)


def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: _block_mask.BlockMask | torch.nn.attention.flex_attention.BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: Any = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor | Any:
    """torch.nn.attention.flex_attention. Tensors and numbers that its functions capture are arguments of the kernel. Of a
    BlockMask of torch the lists count, and the function in blocks that are not listed as full. One of `create_block_mask` here
    has lists for many calls. `kernel_options` are of torch's kernels and change no result: they are not looked at. `sinks` are
    those of `attention`, and none of torch's arguments."""
    _op.check_types({"query": query, "key": key, "value": value})
    _op.raise_problem(find_problem(query, key, block_mask, enable_gqa, return_lse, return_aux))
    out, lse = attend_as(
        TORCH_NAMES, query, key, value, score_mod=score_mod, block_mask=block_mask, scale=scale, return_lse=True,
        sinks=sinks,
    )  # fmt: skip
    if return_aux is not None:
        from torch.nn.attention.flex_attention import AuxOutput

        return out, AuxOutput(lse=lse if return_aux.lse else None)
    return (out, lse) if return_lse else out
