"""Packed sequences of recurrences: rows [1, T, ...] of several sequences, one behind the other, and where each starts.

Walks begin each sequence with a chunk of its own, at its first row, and end it at its last. Rows stay where they are.
"""

from __future__ import annotations

import torch

from .._attention._recurrences import CHUNK


def make_tables(starts, tokens):
    """Of sequences that start at `starts`, of `tokens` in all: the first chunk of each and that behind its last, [2, sequences] of int32,
    and of each chunk the first token and that behind the last of its sequence, [2, chunks], of which chunks behind all have none."""
    starts = starts.int()
    sequences = starts.shape[0] - 1
    count = tokens // CHUNK + sequences
    pasts = ((starts.diff() + (CHUNK - 1)) // CHUNK).cumsum(0, dtype=torch.int32).clamp(max=count)
    firsts = torch.nn.functional.pad(pasts[:-1], (1, 0))
    chunks = torch.arange(count, dtype=torch.int32, device=starts.device)
    own = torch.searchsorted(pasts, chunks, right=True).clamp(max=sequences - 1)
    begins = starts[own] + CHUNK * (chunks - firsts[own])
    return torch.stack((firsts, pasts)), torch.stack((begins, starts[own + 1]))


class Packed:
    """What kernels take of the tables of packed sequences."""

    parameters = {"PACKED": True}

    def __init__(self, table, chunks):
        self.sequences, self.chunks = table.shape[1], chunks.shape[1]
        #: Rows that kernels keep for each other, in chunks of their own.
        self.rows = CHUNK * self.chunks
        self.starts, self.ends = self.of_chunks = chunks.unbind()
        self.arguments = *table.unbind(), *self.of_chunks

    def lay_out(self, x):
        """The rows [1, T, ...] in those of chunks, [1, rows, ...], with 0 behind the end of each sequence."""
        places = self.starts[:, None] + torch.arange(CHUNK, device=x.device)
        own = x[:, places.clamp(max=x.shape[1] - 1)]
        inside = (places < self.ends[:, None]).view(places.shape + (1,) * (x.dim() - 2))
        return own.where(inside, 0).flatten(1, 2)

    def new_rows(self, x):
        """Zeros of the shape of x, in the rows of chunks."""
        return x.new_zeros((1, self.rows, *x.shape[2:]))

    def cut(self, x):
        """The rows of chunks, [1, chunks, CHUNK, ...]."""
        return x.unflatten(1, (-1, CHUNK))

    def restore(self, x, tokens):
        """The rows [1, T, ...] of `tokens`, of [1, chunks, CHUNK, ...]; 0 where a token is of no sequence."""
        places = torch.arange(tokens, dtype=torch.int32, device=x.device)
        own = (torch.searchsorted(self.starts, places, right=True) - 1).clamp(min=0)
        place = (places - self.starts[own]).clamp(0, CHUNK - 1)
        inside = (places < self.ends[own]).view((tokens,) + (1,) * (x.dim() - 3))
        return x[:, own, place].where(inside, 0)

    def restore_rows(self, x, tokens):
        return self.restore(self.cut(x), tokens)


class Whole:
    """Sequences of a batch that are not packed."""

    parameters, arguments, of_chunks = {}, (), ()

    def __init__(self, batch, tokens):
        self.sequences, self.rows, self.chunks = batch, tokens, -(-tokens // CHUNK)

    def lay_out(self, x):
        return x

    new_rows = lay_out

    def cut(self, x):
        padding = (0, 0) * (x.dim() - 2) + (0, CHUNK * self.chunks - x.shape[1])
        return torch.nn.functional.pad(x, padding).unflatten(1, (-1, CHUNK))

    def restore(self, x, tokens):
        return x.flatten(1, 2)[:, :tokens]

    def restore_rows(self, x, tokens):
        return x


def lay_out(v, table, chunks):
    """How the sequences of values [B, T, H, V] lie: packed where there are tables."""
    return Whole(*v.shape[:2]) if table is None else Packed(table, chunks)


def refuse(starts, batch, device):
    """Refuses what are no starts of sequences."""
    if starts.dim() != 1 or starts.shape[0] < 2:
        raise ValueError(f"argument 'cu_seqlens' has shape {tuple(starts.shape)}; (sequences + 1,) would work")
    if starts.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"argument 'cu_seqlens' has type {starts.dtype}; torch.int32 and torch.int64 would work")
    if starts.device != device:
        raise ValueError(f"argument 'cu_seqlens' is on {starts.device} and another one on {device}; they must be equal")
    if batch != 1:
        raise ValueError(f"argument 'cu_seqlens' is given for a batch of {batch}; sequences one behind the other in a batch of 1 would work")
