"""Walks of recurrences in segments of a sequence side by side, where heads are fewer than multiprocessors.

Each segment is walked over twice: for the state that it leaves by itself, and, when these are joined by what states fade by, with the
state before it.
"""

from __future__ import annotations

import functools

import torch

from .._attention._recurrences import CHUNK, count_chunks
from . import _kernels, _linear

# The columns of a state that a grid point has where they are few.
_COLUMNS = 32
# Chunks of a segment, and segments, that are worth two walks.
_FEWEST_CHUNKS, _FEWEST = 16, 4


def walk(name, q, k, v, others, scale, state, wants_state, logarithms, table=None, **parameters):
    """What `_linear.launch` gives. `logarithms` are those of the factors of tokens, [B, T, H] or [B, T, HK, K]."""
    count = 1 if table is not None or v.shape[0] != 1 else _count(v)
    if count < _FEWEST:
        return _linear.launch(name, q, k, v, others, scale, state, wants_state, table=table, **parameters)
    tokens, heads = v.shape[1:3]
    own = -(-tokens // (CHUNK * count)) * CHUNK
    table = _make_table(tokens, own, v.device)
    sums = torch.nn.functional.pad(logarithms[0].transpose(0, -1), (0, -tokens % own)).unflatten(-1, (-1, own)).sum(-1)
    sums = sums.movedim(-1, 0) if sums.dim() == 2 else sums.permute(2, 1, 0).repeat_interleave(heads // sums.shape[1], 1)
    launch = functools.partial(_linear.launch, name, q, k, v, others, scale, table=table, **parameters)
    _, left = launch(None, True)
    out, last = launch(_join(left, sums, state), wants_state)
    return out, last[-1:] if wants_state else None


def _count(v):
    """How many segments the multiprocessors have room for."""
    _, tokens, heads, columns = v.shape
    points = max(1, heads * -(-columns // _COLUMNS))
    count = min(_kernels.count_multiprocessors(v.device) // points, tokens // (CHUNK * _FEWEST_CHUNKS))
    return -(-tokens // (-(-tokens // (CHUNK * count)) * CHUNK)) if count > 0 else 1


@functools.lru_cache(maxsize=64)
def _make_table(tokens, own, device):
    """[3, segments]: the first chunk of each and that behind its last, and its tokens."""
    firsts = torch.arange(0, tokens, own)
    pasts = (firsts + own).clamp(max=tokens)
    return torch.stack((firsts // CHUNK, count_chunks(pasts), pasts - firsts)).int().to(device)


def _join(left, sums, state):
    """The states before segments, from what each leaves, [S, H, K, V], and the sums of its logarithms, [S, H] or [S, H, K]."""
    behind = sums.cumsum(0)
    before = torch.cat((torch.zeros_like(behind[:1]), behind[:-1]))
    earlier = torch.ones(len(sums), len(sums), dtype=torch.bool, device=sums.device).tril(-1)
    between = (before[:, None] - behind[None]).masked_fill(~earlier.reshape(*earlier.shape, *[1] * (sums.dim() - 1)), float("-inf"))
    channels = "k" * (sums.dim() - 2)
    joined = torch.einsum(f"srh{channels},rhkv->shkv", between.exp(), left)
    if state is not None:
        joined += before.exp().reshape(*before.shape, *[1] * (4 - before.dim())) * state
    return joined
