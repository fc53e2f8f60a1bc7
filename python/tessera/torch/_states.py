"""Outputs and LSE over disjoint sets of keys, joined (kernels/merge_states.tile)."""

from __future__ import annotations

import torch

from .._compiler import _choices
from .._core import _library
from . import _kernels, _op
from ._append import has_rows
from ._types import TYPES as _SHORT

#: Element types of states, as kernels call them.
TYPES = {torch.float32: "f32", **_SHORT}


def find_source():
    return _library.find_source("merge_states")


def merge_states(
    parts: torch.Tensor, lses: torch.Tensor, *, dtype: torch.dtype | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and LSE of attention over several disjoint sets of keys, from those over each.

    parts: [P, B, S, H, DV], the outputs over each of P sets, of float32, float16 or bfloat16.
    lses:  [P, B, H, S] in float32, natural logarithms of the softmax' sums. A part whose LSE is -inf may hold anything.
    dtype: of the output; that of `parts` when not given.

    Returns [B, S, H, DV] and [B, H, S]. Parts are joined in their order, so that results are the same in each run.
    """
    if torch.compiler.is_compiling():
        return torch.ops.tessera.merge_states(parts, lses, dtype)
    _op.check_types({"parts": parts, "lses": lses})
    if parts.dim() != 5:
        raise ValueError(f"argument 'parts' has shape {tuple(parts.shape)}; it is [parts, batch, queries, heads, head dimension]")
    count, batch, rows, heads, width = parts.shape
    if tuple(lses.shape) != (count, batch, heads, rows):
        raise ValueError(f"argument 'lses' has shape {tuple(lses.shape)}; with these 'parts' it is {(count, batch, heads, rows)}")
    if lses.dtype != torch.float32:
        raise TypeError(f"argument 'lses' has type {lses.dtype}; it is float32")
    dtype = parts.dtype if dtype is None else dtype
    for name, kind in (("parts", parts.dtype), ("dtype", dtype)):
        if kind not in TYPES:
            raise TypeError(f"argument '{name}' has type {kind}; states are of float32, float16 or bfloat16")
    most = max(_choices.list_allowed(find_source(), "D"))
    if not 0 < width <= most or width % 8:
        raise ValueError(f"argument 'parts' has head dimension {width}; it is a multiple of 8 up to {most}")
    if not count:
        raise ValueError("argument 'parts' has no parts; it has one at least")
    problem = _op.find_other_device("lses", lses, parts, "parts") or _op.find_device_problem("parts", parts.device)
    if problem is not None:
        raise problem
    if lses.stride(-1) != 1 and rows > 1:
        lses = lses.contiguous()
    if not has_rows(parts) or parts.stride(2) != heads * parts.stride(3):
        parts = parts.contiguous()
    out = torch.empty((batch, rows, heads, width), dtype=dtype, device=parts.device)
    lse = torch.empty((batch, heads, rows), dtype=torch.float32, device=parts.device)
    if out.numel():
        merge(parts, lses, out, lse)
    return out, lse


def find_merge(find, is_cpu, device, extents, element, out, **options):
    """The kernel that joins parts of element type `element` to an output of type `out`. Extents are those of parts and columns."""
    chosen = _kernels.choose(device, find_source(), tuple(zip(("P", "DV"), extents)))
    return find(is_cpu, find_source(), "merge_states", T=element, OUT=out, D=chosen["D"], BP=chosen["BP"], **options)


def merge(parts, lses, out, lse, sinks=None):
    """Joins parts [P, B, S, H, DV] whose queries and heads are one dimension; `sinks`, [H], are scores that have no value."""
    extents, options = (parts.shape[0], parts.shape[4]), {} if sinks is None else {"SINK": True}
    is_cpu, kinds = parts.device.type == "cpu", (TYPES[parts.dtype], TYPES[out.dtype])
    kernel = find_merge(_kernels.find, is_cpu, parts.device, extents, *kinds, **options)
    kernel(parts.flatten(2, 3).permute(1, 2, 0, 3), lses, out, lse, *(() if sinks is None else (sinks,)))
