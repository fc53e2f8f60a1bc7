"""Packed sequences of recurrences: rows [1, T, ...] of several sequences, one behind the other, and where each starts.

Walks begin each sequence with a chunk of its own. Where all kernels of a call find these by tables, rows stay where they are (`InPlace`).
Else they are laid out anew, with zeros behind the last row of each sequence (`InChunks`).
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


def make_tables(starts, tokens):
    """Of sequences that start at `starts`, of `tokens` in all: the first chunk of each and that behind its last, [2, sequences] of int32,
    and the first token of each chunk and that behind the last of its sequence, [2, chunks]. A sequence without tokens has a chunk without
    any, and so have chunks behind all others."""
    starts = starts.int()
    sequences = starts.shape[0] - 1
    count = tokens // CHUNK + sequences
    pasts = count_chunks(starts.diff()).clamp(min=1).cumsum(0, dtype=torch.int32).clamp(max=count)
    firsts = torch.nn.functional.pad(pasts[:-1], (1, 0))
    chunks = torch.arange(count, dtype=torch.int32, device=starts.device)
    own = torch.searchsorted(pasts, chunks, right=True).clamp(max=sequences - 1)
    begins = starts[own] + CHUNK * (chunks - firsts[own])
    return torch.stack((firsts, pasts)), torch.stack((begins, starts[own + 1]))


def take_chunks(x, chunks):
    """The rows of each chunk, [1, CHUNK * chunks, ...] of [1, T, ...], with zeros behind the last token of its sequence."""
    begins, ends = chunks.unbind()
    places = begins[:, None] + torch.arange(CHUNK, dtype=torch.int32, device=x.device)
    inside = (places < ends[:, None]).view(-1, *(1,) * (x.dim() - 2))
    return x.index_select(1, places.flatten().clamp(0, x.shape[1] - 1)).where(inside, 0)


def restore_chunks(x, chunks, tokens):
    """The rows of so many tokens, [1, T, ...], of those of chunks, [1, CHUNK * chunks, ...]; 0 where a token is of no sequence."""
    if chunks is None:
        return x
    begins, ends = chunks.unbind()
    places = torch.arange(tokens, dtype=torch.int32, device=x.device)
    own = (torch.searchsorted(begins, places, right=True) - 1).clamp(min=0)
    row = (places - begins[own]).clamp(0, CHUNK - 1)
    inside = ((places >= begins[own]) & (places < ends[own])).view(-1, *(1,) * (x.dim() - 2))
    return x.index_select(1, CHUNK * own + row).where(inside, 0)


def keep_tokens(x, chunks):
    """x, [1, T, ...], with zeros where a token is of no sequence."""
    if chunks is None:
        return x
    places = torch.arange(x.shape[1], dtype=torch.int32, device=x.device)
    inside = (places >= chunks[0, 0]) & (places < chunks[1, -1])
    return x.where(inside.view(-1, *(1,) * (x.dim() - 2)), 0)


class InPlace:
    """Sequences that start at `starts`, of `tokens` in all, whose rows stay where they are."""

    def __init__(self, starts, tokens):
        self.table, self.chunks = make_tables(starts, tokens)

    def align(self, x):
        return x

    restore = align


class InChunks:
    """Where the rows of sequences go that start at `starts`, of `tokens` in all."""

    chunks = None

    def __init__(self, starts, tokens):
        sequences = starts.shape[0] - 1
        starts = starts.long()
        first = starts[:-1] // CHUNK + torch.arange(sequences, device=starts.device)
        # Rows behind the last sequence go to a chunk behind all others.
        self.count = CHUNK * (tokens // CHUNK + sequences + 1)
        past = torch.cat((first[1:], first[-1:] + count_chunks(starts[-1:] - starts[-2:-1])))
        #: [2, sequences]: the first chunk of each and that behind its last.
        self.table = torch.stack((first, past)).int()
        rows = torch.arange(tokens, device=starts.device)
        own = torch.searchsorted(starts[1:].contiguous(), rows, right=True)
        inside = own < sequences
        own = own.clamp(max=sequences - 1)
        self.places = torch.where(inside, rows - starts[own] + CHUNK * first[own], self.count - CHUNK)

    def align(self, x):
        return _apply(x, self.places, self.count, False)

    def restore(self, x):
        return _apply(x, self.places, self.count, True)


class Whole:
    """Tensors of sequences that are not packed, which stay as they are."""

    table = chunks = None

    def align(self, x):
        return x

    restore = align


def lay_out(starts, v, in_place):
    if starts is None or not v.shape[1]:
        in_place = False
    return Whole() if starts is None else (InPlace if in_place else InChunks)(starts, v.shape[1])


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
