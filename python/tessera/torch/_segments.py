"""Walks of recurrences in segments of a sequence side by side, where heads are fewer than multiprocessors.

Each segment is walked over twice: for the state that it leaves by itself, and, when these are joined by what states fade by, with the
state before it. A walk from the end begins with the last segment.
"""

from __future__ import annotations

import torch

from .._attention import _recurrences
from .._attention._recurrences import CHUNK
from . import _kept, _kernels, _linear


def walk(name, q, k, v, others, scale, state, wants_state, logarithms, table=None, chunks=None,
         **parameters):
    """What `_linear.launch` gives. `logarithms` are those of the factors of tokens, [B, T, H] or [B, T, HK, K]."""
    segments = cut(v, table)
    if segments is None:
        return _linear.launch(name, q, k, v, others, scale, state, wants_state, table=table, chunks=chunks, **parameters)
    before = segments.find_states(name, q, k, v, others, scale, state, logarithms, **parameters)
    out, last = _linear.launch(name, q, k, v, others, scale, before, wants_state, table=segments.table, **parameters)
    return out, last[-1:] if wants_state else None


def cut(v, table):
    """The segments of one sequence, None where it is walked over whole."""
    if table is not None or v.shape[0] != 1:
        return None
    numbers = _kernels.choose(v.device, _recurrences.find_source("segments"))
    own = _recurrences.cut(*v.shape[1:], _kernels.count_multiprocessors(v.device), numbers)
    return None if own is None else Segments(v.shape[1], own, v.device)


@_kept.kept
def _make_table(tokens, own, device):
    """`_recurrences.list_segments` on a device, where graphs that are captured make it too."""
    first = torch.arange(0, tokens, own, dtype=torch.int32, device=device)
    past = (first + own).clamp(max=tokens)
    return torch.stack((first // CHUNK, (past + (CHUNK - 1)) // CHUNK))


class Segments:
    """Segments of so many tokens each, and their table, as packed sequences have it."""

    def __init__(self, tokens, own, device):
        self.own = own
        self.table = _make_table(tokens, own, device)

    def find_states(self, name, q, k, v, others, scale, state, logarithms, REVERSE=False, **parameters):
        """The states before segments, from `state` before the first, in the direction of the walk."""
        given = {**parameters, "REVERSE": True} if REVERSE else parameters
        _, left = _linear.launch(name, q, k, v, others, scale, None, True, table=self.table, **given)
        padded = torch.nn.functional.pad(logarithms[0], (0, 0) * (logarithms.dim() - 2) + (0, -v.shape[1] % self.own))
        return _recurrences.join_segments(torch, left, padded.unflatten(0, (-1, self.own)), state, REVERSE)
