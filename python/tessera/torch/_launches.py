"""Launches of kernels of recurrences one by one, where PyTorch computes between them: of gradients and of segments.

Tensors are [B, T, H, D] in any strides but the innermost, which is 1.
"""

from __future__ import annotations

import functools

import torch

from .._attention import _recurrences
from . import _compute, _kernels, _packed, _walk_recipes
from ._types import TYPES


def heads_first(tensor):
    return tensor.transpose(1, 2)


def new_gates(like, batch, heads, tokens):
    """Memory for [B, H, T] of float32, of which each head starts at a multiple of 16 bytes."""
    padded = _walk_recipes.pad_gates(tokens)
    return like.new_empty((batch, heads, padded), dtype=torch.float32)[:, :, :tokens]


def lay_out_gates(tensor, chunks=None):
    """Gates of heads, [B, T, H], as kernels take them, [B, H, T]: with `chunks` in rows of these."""
    if chunks is not None:
        return _packed.take_chunks(tensor, chunks)
    batch, tokens, heads = tensor.shape
    return new_gates(tensor, batch, heads, tokens).copy_(heads_first(tensor))


class Beside:
    """A stream beside that of a call, for a walk that others do not wait for: few blocks walk over few sequences, and leave multiprocessors
    idle. Its tensors are of the call's stream, which waits for its end."""

    def __init__(self, device):
        self.own = torch.cuda.current_stream(device) if device.type == "cuda" else None
        self.held = None

    def begin(self, *held):
        """What a launch is given. Tensors that are `held` stay until the end."""
        if self.own is None:
            return {}
        self.held = held
        other = _find_beside(self.own)
        other.wait_stream(self.own)
        return {"stream": other}

    def end(self):
        if self.held is not None:
            self.own.wait_stream(_find_beside(self.own))
            self.held = None


@functools.lru_cache(maxsize=64)
def _find_beside(stream):
    """One for each stream, so that what one captures holds no launch of another."""
    return torch.cuda.Stream(stream.device)


def launch(name, q, k, v, others, scale, state, wants_state, out=None, heads=None, given=(), results=(), table=None,
           chunks=None, beside=None, **parameters):
    """The outputs of a kernel and the state behind the last token, or None. `heads` are those of the states, if values share them;
    `given` and `results` are further tensors, before the outputs and behind them. `table` says which chunks packed sequences have, and
    `chunks` which tokens these have, where they lie as the caller has them. `beside` is the Beside that a kernel without workspaces runs
    on."""
    batch, _, _, columns = v.shape
    heads = v.shape[2] if heads is None else heads
    if table is not None:
        batch = table.shape[1]
        state = v.new_zeros((batch, heads, q.shape[3], columns), dtype=torch.float32) if state is None else state
        results = (*results, *table.unbind())
        parameters["PACKED"] = True
    if chunks is not None:
        results = (*results, *chunks.unbind())
        parameters["IN_PLACE"] = True
    out = torch.empty_like(v, memory_format=torch.contiguous_format) if out is None else out
    last = v.new_empty((batch, heads, q.shape[3], columns), dtype=torch.float32) if wants_state else None
    if 0 in v.shape or 0 in q.shape:
        return out, None if last is None else last.zero_() if state is None else last.copy_(state)
    form = {"T": TYPES[q.dtype], "INITIAL": state is not None, "FINAL": wants_state, **parameters}
    kernel = _walk_recipes.find_walk(q.device.type == "cpu", name, q.device, (batch, heads, q.shape[3], columns), **form)
    states = [x for x in (None if state is None else state.contiguous(), last) if x is not None]
    named = {} if beside is None else beside.begin(*states)
    _compute.launch(kernel, *map(heads_first, (q, k, v)), *others, *scale, *states, *given, heads_first(out), *results, **named)
    return out, last


def launch_chunks(name, q, v, *arguments, chunks=None, **parameters):
    """Launches a kernel of chunks beside each other, where there are any. `chunks` says which tokens they have."""
    if chunks is not None:
        arguments, parameters["IN_PLACE"] = (*arguments, *chunks.unbind()), True
    if v.numel() and q.numel():
        _walk_recipes.find_kernel(q.device.type == "cpu", name, T=TYPES[q.dtype], **parameters)(*arguments)
