"""Packed sequences of recurrences: rows [1, T, ...] of several sequences, one behind the other, and where each starts.

Walks begin each sequence with a chunk of its own. So rows are laid out anew, with zeros behind the last row of each sequence.
"""

from __future__ import annotations

import torch

from .._attention._recurrences import CHUNK, count_chunks

_are_transforms_active = torch._C._are_functorch_transforms_active


class _Align(torch.autograd.Function):
    """Rows at their places among `count` rows, of which others are 0; with `back` the rows at these places."""

    @staticmethod
    def forward(ctx, x, places, count, back):
        ctx.save_for_backward(places)
        ctx.form = x.shape[1], back
        return _move(x, places, count, back)

    @staticmethod
    def backward(ctx, grad):
        count, back = ctx.form
        (places,) = ctx.saved_tensors
        return _move(grad, places, count, not back), None, None, None


def _apply(x, places, count, back):
    if _are_transforms_active():  # torch.func takes PyTorch's own gradients: setup_context would cost each call host time.
        return _move(x, places, count, back)
    return _Align.apply(x, places, count, back)


def _move(x, places, count, back):
    if back:
        return x.index_select(1, places)
    aligned = x.new_zeros((x.shape[0], count, *x.shape[2:])).index_copy_(1, places, x)
    aligned[:, -CHUNK:] = 0
    return aligned


class Sequences:
    """Where the rows of sequences go that start at `starts`, of `tokens` in all."""

    def __init__(self, starts, tokens):
        sequences = starts.shape[0] - 1
        starts = starts.long()
        first = starts[:-1] // CHUNK + torch.arange(sequences, device=starts.device)
        lengths = starts[1:] - starts[:-1]
        # Rows behind the last sequence go to a chunk behind all others.
        self.chunks = tokens // CHUNK + sequences + 1
        past = torch.cat((first[1:], first[-1:] + count_chunks(lengths[-1:])))
        #: [3, sequences]: the first chunk of each and that behind its last, and its rows.
        self.table = torch.stack((first, past, lengths)).int()
        rows = torch.arange(tokens, device=starts.device)
        own = torch.searchsorted(starts[1:].contiguous(), rows, right=True)
        inside = own < sequences
        own = own.clamp(max=sequences - 1)
        self.places = torch.where(inside, rows - starts[own] + CHUNK * first[own], CHUNK * (self.chunks - 1))

    def align(self, x):
        return _apply(x, self.places, CHUNK * self.chunks, False)

    def restore(self, x):
        return _apply(x, self.places, CHUNK * self.chunks, True)


class Whole:
    """Tensors of sequences that are not packed, which stay as they are."""

    table = None

    def align(self, x):
        return x

    restore = align


def lay_out(starts, v):
    return Whole() if starts is None else Sequences(starts, v.shape[1])


def refuse(starts, batch, device):
    """Refuses what are no starts of sequences."""
    if starts.dim() != 1 or starts.shape[0] < 2:
        raise ValueError(f"argument 'cu_seqlens' has shape {tuple(starts.shape)}; (sequences + 1,) would work")
    if starts.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"argument 'cu_seqlens' has type {starts.dtype}; torch.int32 and torch.int64 would work")
    if starts.device != device:
        raise ValueError(f"argument 'cu_seqlens' is on {starts.device} and another one on {device}; they must be equal")
    if batch != 1:
        raise ValueError(
            f"argument 'cu_seqlens' is given for a batch of {batch}; sequences one behind the other in a batch of 1 would work"
        )
