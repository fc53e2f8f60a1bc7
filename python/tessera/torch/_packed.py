"""Packed sequences of recurrences: rows [1, T, ...] of several sequences, one behind the other, and where each starts. They stay where they
are: walks begin each sequence with a chunk of its own, and find chunks and their tokens by tables (kernels/linear/tables.tile)."""

from __future__ import annotations

import torch

from .._attention._recurrences import CHUNK
from . import _walk_recipes

_NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32", torch.int64: "i64"}


def find_chunks(starts, tokens):
    """Tables of sequences that start at `starts`, of so many tokens in all: the first chunk of each and that behind its last, [2, sequences]
    of int32, and the first token of each chunk and that behind the last of its sequence, [2, chunks]. (None, None) where calls have no
    starts. That of chunks is None where there are no tokens, and nothing is launched."""
    if starts is None:
        return None, None
    sequences = starts.shape[0] - 1
    table, chunks = (
        torch.empty((2, count), dtype=torch.int32, device=starts.device)
        for count in (sequences, _walk_recipes.count_rows(tokens, sequences) // CHUNK)
    )
    if tokens == 0:
        return table, None
    kernel = _walk_recipes.find_kernel(starts.device.type == "cpu", "tables", BEGIN=_NAMES[starts.dtype])
    kernel(starts.contiguous(), *table.unbind(), *chunks.unbind())
    return table, chunks


def take_chunks(x, chunks):
    """The rows of each chunk, [1, H, CHUNK * chunks] of float32 of [1, T, H], with zeros behind the last token of its sequence."""
    rows = x.new_empty((1, x.shape[2], CHUNK * chunks.shape[1]), dtype=torch.float32)
    _launch_gates(x[0].contiguous(), rows, chunks, GATE=_NAMES[x.dtype])
    return rows


def restore_chunks(x, chunks, tokens):
    """The rows of so many tokens, [1, T, H], of those of chunks, [1, CHUNK * chunks, H]; 0 where a token is of no sequence."""
    if chunks is None:
        return x
    restored = x.new_zeros((1, tokens, x.shape[2]))
    _launch_gates(restored[0], x.transpose(1, 2).contiguous(), chunks, BACK=True)
    return restored


def _launch_gates(tokens, rows, chunks, **parameters):
    kernel = _walk_recipes.find_kernel(tokens.device.type == "cpu", "gates", **parameters)
    kernel(tokens, rows[0], *chunks.unbind())


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
