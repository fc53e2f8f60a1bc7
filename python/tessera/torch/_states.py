"""Outputs and LSE over disjoint sets of keys, joined (kernels/merge_states.tile)."""

from __future__ import annotations

import torch

from .._compiler import _choices
from . import _op, _prepared, _state_recipes
from ._types import TYPES as _SHORT

# Element types of states, as kernels call them.
_TYPES = {torch.float32: "f32", **_SHORT}


def merge_states(
    parts: torch.Tensor, lses: torch.Tensor, *, dtype: torch.dtype | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and LSE of attention over several disjoint sets of keys, from those over each.

    parts: [P, B, S, H, DV], the outputs over each of P sets, of float32, float16 or bfloat16.
    lses:  [P, B, H, S] in float32, natural logarithms of the softmax' sums. A part whose LSE is -inf may hold anything.
    dtype: of the output; that of `parts` when not given.

    Returns [B, S, H, DV] and [B, H, S]. Parts are joined in their order, so that results are the same in each run.
    """
    given = parts, lses
    key, results = _prepared.recall(given, "merge_states", getattr(parts, "dtype", None) if dtype is None else dtype)
    if results is not None:
        return results
    if torch.compiler.is_compiling():
        return torch.ops.tessera.merge_states(parts, lses, dtype)
    _op.check_types({"parts": parts, "lses": lses})
    _op.check_derivatives("the merge of states", {"parts": parts, "lses": lses})
    if parts.dim() != 5:
        raise ValueError(f"argument 'parts' has shape {tuple(parts.shape)}; it is [parts, batch, queries, heads, head dimension]")
    count, batch, rows, heads, width = parts.shape
    if tuple(lses.shape) != (count, batch, heads, rows):
        raise ValueError(f"argument 'lses' has shape {tuple(lses.shape)}; with these 'parts' it is {(count, batch, heads, rows)}")
    if lses.dtype != torch.float32:
        raise TypeError(f"argument 'lses' has type {lses.dtype}; it is float32")
    dtype = parts.dtype if dtype is None else dtype
    for name, kind in (("parts", parts.dtype), ("dtype", dtype)):
        if kind not in _TYPES:
            raise TypeError(f"argument '{name}' has type {kind}; states are of float32, float16 or bfloat16")
    most = max(_choices.list_allowed(_state_recipes.find_source(), "D"))
    if not 0 < width <= most or width % 8:
        raise ValueError(f"argument 'parts' has head dimension {width}; it is a multiple of 8 up to {most}")
    if not count:
        raise ValueError("argument 'parts' has no parts; it has one at least")
    _op.raise_problem(_op.find_other_device("lses", lses, parts, "parts") or _op.find_device_problem("parts", parts.device))
    if 0 in (batch, rows, heads):
        return torch.empty((batch, rows, heads, width), dtype=dtype, device=parts.device), lses.new_empty((batch, heads, rows))
    return _prepared.compute(key, given, _state_recipes.write(_TYPES[dtype], parts.device), (parts, lses))
