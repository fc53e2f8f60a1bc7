"""Packed sequences of recurrences: rows [1, T, ...] of several sequences, one behind the other, and where each starts. They stay where they
are: walks begin each sequence with a chunk of its own, and find chunks and their tokens by tables."""

from __future__ import annotations

import torch

from .._attention._recurrences import CHUNK, count_chunks


def find_chunks(starts, tokens):
    """Tables of sequences that start at `starts`, of so many tokens in all: (None, None) where calls have no starts. That of chunks is None
    where there are no tokens, and nothing is launched."""
    if starts is None:
        return None, None
    table, chunks = make_tables(starts, tokens)
    return table, chunks if tokens else None


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
